"""The table of collectors. One subject a file."""

from types import ModuleType

from msgspec import Struct

from api_exporter.collectors import (
    account,
    agent_network,
    dns,
    events,
    groups,
    memberships,
    networks,
    peers,
    policies,
    reverse_proxy,
    routes,
    setup_keys,
    users,
)
from api_exporter.collectors.rows import Measure, measurement
from api_exporter.exposition.text import Metric


class Collector(Struct, frozen=True):
    """A subject: the resources that it reads and the families that it makes of them.

    Attributes:
        families: what it may tell of, known without measuring.
        default: whether it is on unless the settings say otherwise.
    """

    name: str
    reads: tuple[str, ...]
    measure: Measure
    families: tuple[Metric, ...]
    default: bool = True


def _collector(subject: ModuleType, *, default: bool = True) -> Collector:
    """Of a module, by its name and its rows."""
    name = subject.__name__.rpartition(".")[2]
    families = tuple(row.metric for row in subject.ROWS)
    reads = tuple(dict.fromkeys(need for row in subject.ROWS for need in row.needs))
    measure = measurement(subject.ROWS)
    return Collector(name, reads, measure, families, default)


COLLECTORS: tuple[Collector, ...] = (
    *map(
        _collector,
        (
            peers,
            groups,
            users,
            setup_keys,
            networks,
            routes,
            policies,
            dns,
            account,
            reverse_proxy,
            agent_network,
        ),
    ),
    _collector(memberships, default=False),
    _collector(events, default=False),
)
"""In the order of the page."""
