"""One round through the resources, in front of somebody: `--check` and `--once`."""

from collections.abc import AsyncIterator, Iterable

from msgspec import Struct
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import Resource
from api_exporter.ports import Fetch, UpstreamError
from api_exporter.refresh.slices import Slicer

log = Logger()

PATIENCE = 60.0
"""Seconds after which somebody who waits wants no further attempt."""


class Finding(Struct, frozen=True, kw_only=True):
    """How it went with one resource.

    Attributes:
        error: None where it went well, or where nothing could be asked.
        records: how many could be read, None for none at all.
        rejected: how many could not be.
        complaints: the places of the first ones of them, and what was wrong.
        inventory: what is known after it.
    """

    resource: Resource
    inventory: Inventory
    seconds: float = 0.0
    error: UpstreamError | None = None
    records: int | None = None
    rejected: int = 0
    complaints: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """In a word."""
        if self.error is not None:
            return self.error.reason
        return "not asked" if self.records is None else "ok"


async def survey(
    resources: Iterable[Resource],
    inventory: Inventory,
    *,
    fetch: Fetch,
    clock: IReactorTime,
) -> AsyncIterator[Finding]:
    """Read each resource once, until the upstream asks for a pause."""
    for resource in resources:
        finding = await visit(resource, inventory, fetch=fetch, clock=clock)
        inventory = finding.inventory
        yield finding
        if finding.error is not None and finding.error.reason == "rate_limited":
            return


async def visit(
    resource: Resource, inventory: Inventory, *, fetch: Fetch, clock: IReactorTime
) -> Finding:
    """Read a resource once."""
    path = resource.located(inventory)
    if path is None:
        return Finding(resource=resource, inventory=inventory)
    begin = clock.seconds()
    try:
        body = await fetch(path, PATIENCE)
        decoded = await Slicer(clock).run(resource.body.decode(body))
    except CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - a defect of ours is a row, too
        if not isinstance(error, UpstreamError):
            log.failure("a defect while reading {resource}", resource=resource.name)
            error = UpstreamError("internal", f"a defect: {type(error).__name__}")
        return Finding(
            resource=resource,
            inventory=inventory,
            seconds=clock.seconds() - begin,
            error=error.kept(),
        )
    return Finding(
        resource=resource,
        inventory=inventory.with_(resource.name, decoded.records),
        seconds=clock.seconds() - begin,
        records=len(decoded.records),
        rejected=decoded.rejected,
        complaints=decoded.complaints,
    )
