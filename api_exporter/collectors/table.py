"""What is published: the table of contents. One subject a file."""

from collections.abc import Callable, Iterator, Mapping

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
from api_exporter.exposition.text import Family
from api_exporter.netbird.bodies import Body
from api_exporter.netbird.inventory import Inventory

Measure = Callable[[Inventory], Iterator[Family | None]]
"""Families from records. None: not done counting, a good place to pause."""


class Collector(Struct, frozen=True):
    """A subject: the resources that it reads and the families that it makes of them.

    Attributes:
        default: whether it is on unless the settings say otherwise.
        bodies: for resources of which it needs more than others do, what decodes that.
    """

    name: str
    reads: tuple[str, ...]
    measure: Measure
    default: bool = True
    bodies: Mapping[str, Body] = {}


COLLECTORS: tuple[Collector, ...] = (
    Collector("peers", peers.READS, peers.measure),
    Collector("groups", groups.READS, groups.measure),
    Collector("users", users.READS, users.measure),
    Collector("setup_keys", setup_keys.READS, setup_keys.measure),
    Collector("networks", networks.READS, networks.measure),
    Collector("routes", routes.READS, routes.measure),
    Collector("policies", policies.READS, policies.measure),
    Collector("dns", dns.READS, dns.measure),
    Collector("account", account.READS, account.measure),
    Collector("reverse_proxy", reverse_proxy.READS, reverse_proxy.measure),
    Collector("memberships", memberships.READS, memberships.measure, default=False),
    Collector(
        "drop_in", drop_in.READS, drop_in.measure, default=False, bodies=drop_in.BODIES
    ),
    Collector("events", events.READS, events.measure, default=False),
)
"""In the order of the page."""
