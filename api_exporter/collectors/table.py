"""The table of collectors. Each file is one collector."""

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
from api_exporter.collectors.rows import Measure, measure_function
from api_exporter.exposition.text import Metric


class Collector(Struct, frozen=True):
    """The resources that a collector reads and the families that it makes of them.

    Attributes:
        families: all families that it may publish, known without measuring.
        default: true if it is enabled unless the settings disable it.
    """

    name: str
    reads: tuple[str, ...]
    measure: Measure
    families: tuple[Metric, ...]
    default: bool = True


def _collector(subject: ModuleType, *, default: bool = True) -> Collector:
    name = subject.__name__.rpartition(".")[2]
    families = tuple(row.metric for row in subject.ROWS)
    reads = tuple(dict.fromkeys(need for row in subject.ROWS for need in row.needs))
    measure = measure_function(subject.ROWS)
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
"""All collectors, in the order of the page."""
