"""The program's page: bodies decoded, measured and rendered, and the page parsed."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from api_exporter.collectors.collector import MetricFilter
from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import Resource
from api_exporter.ports import UpstreamError
from api_exporter.subjects.table import COLLECTORS, selection
from tests.collectors.samples import page, parsed
from tests.inventories import inventory_of
from tests.reference.page import Key, Settings


def program(bodies: Mapping[str, bytes], settings: Settings) -> dict[Key, float]:
    """Return the samples of all collectors; a resource without a body is unknown."""
    on = selection(
        [collector.name for collector in COLLECTORS],
        {},
        metric_filter=MetricFilter(detail=settings.detail),
    )
    samples = parsed(page(decoded(bodies, settings, on.resources), on.collectors))
    twice = [
        key for key, count in Counter(key for key, _ in samples).items() if count > 1
    ]
    assert not twice, f"stand twice on the page: {twice[:3]}"
    return dict(samples)


def decoded(
    bodies: Mapping[str, bytes], settings: Settings, resources: Iterable[Resource[Any]]
) -> Inventory:
    """Return the inventory after one reading of each resource that has a body."""
    inventory = inventory_of(
        personal=settings.personal,
        detail=settings.detail,
        now=settings.now,
        intervals={"agent_consumption": settings.consumption_interval},
    )

    def body(name: str, path: str) -> bytes | None:
        if name in bodies and "end_date" in path:
            return bodies.get(f"{name}_earlier", b"[]")
        return bodies.get(name)

    return all_read(inventory, resources, settings.asked, body)


def all_read(
    inventory: Inventory,
    resources: Iterable[Resource[Any]],
    now: float,
    body: Callable[[str, str], bytes | None],
) -> Inventory:
    """Return the inventory after all requests.

    Args:
        body: returns the response for a resource's name and a path.
    """
    for resource in resources:
        last = None
        while (path := resource.request_path(inventory, now)) not in {None, last}:
            last = path
            text = body(resource.name, path or "")
            if text is None:
                break
            before = inventory.records.get(resource.name) or ()
            try:
                found = resource.decoder.decode(text, DecodeContext(before, now=now))
            except UpstreamError:
                break
            inventory = inventory.replacing(resource.name, found.records)
    return inventory
