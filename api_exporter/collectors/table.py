"""What is published: the table of contents. One subject a file."""

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

from msgspec import Struct

from api_exporter.collectors import (
    account,
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
from api_exporter.collectors.drop_in import collector as drop_in
from api_exporter.exposition.text import Family, Metric
from api_exporter.netbird.bodies import Body
from api_exporter.netbird.inventory import Inventory

Measure = Callable[[Inventory], Iterator[Family | None]]
"""Families from records. None: not done counting, a good place to pause."""


class Collector(Struct, frozen=True):
    """A subject: the resources that it reads and the families that it makes of them.

    Attributes:
        families: what it may tell of, known without measuring.
        default: whether it is on unless the settings say otherwise.
        bodies: for resources of which it needs more than others do, what decodes that.
    """

    name: str
    reads: tuple[str, ...]
    measure: Measure
    families: tuple[Metric, ...]
    default: bool = True
    bodies: Mapping[str, Body] = {}


def families(subject: ModuleType) -> tuple[Metric, ...]:
    """Those that a collector's module defines."""
    return tuple(m for m in vars(subject).values() if isinstance(m, Metric))


COLLECTORS: tuple[Collector, ...] = (
    Collector("peers", peers.READS, peers.measure, families(peers)),
    Collector("groups", groups.READS, groups.measure, families(groups)),
    Collector("users", users.READS, users.measure, families(users)),
    Collector("setup_keys", setup_keys.READS, setup_keys.measure, families(setup_keys)),
    Collector("networks", networks.READS, networks.measure, families(networks)),
    Collector("routes", routes.READS, routes.measure, families(routes)),
    Collector("policies", policies.READS, policies.measure, families(policies)),
    Collector("dns", dns.READS, dns.measure, families(dns)),
    Collector("account", account.READS, account.measure, families(account)),
    Collector(
        "reverse_proxy",
        reverse_proxy.READS,
        reverse_proxy.measure,
        families(reverse_proxy),
    ),
    Collector(
        "memberships",
        memberships.READS,
        memberships.measure,
        families(memberships),
        default=False,
    ),
    Collector(
        "drop_in",
        drop_in.READS,
        drop_in.measure,
        drop_in.FAMILIES,
        default=False,
        bodies=drop_in.BODIES,
    ),
    Collector("events", events.READS, events.measure, families(events), default=False),
)
"""In the order of the page."""
