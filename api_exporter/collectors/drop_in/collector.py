"""The metrics of netbird-api-exporter 0.2.4 under their own names, for dashboards and
alerts that were made for it; `migrating.md` says what differs.
"""

from collections.abc import Iterator

from api_exporter.collectors.drop_in import (
    dns,
    groups,
    networks,
    peers,
    policies,
    routes,
    setup_keys,
    users,
)
from api_exporter.exposition.text import Family
from api_exporter.netbird import records
from api_exporter.netbird.bodies import Body, Listing
from api_exporter.netbird.inventory import Inventory

READS = (
    "peers",
    "groups",
    "users",
    "nameservers",
    "dns_settings",
    "networks",
    "setup_keys",
    "policies",
    "routes",
)

BODIES: dict[str, Body] = {"peers": Listing(records.GroupedPeer, nullable=False)}


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families, those of each resource as soon as it is known."""
    told = inventory.personal
    if inventory.peers is not None:
        yield from peers.families(inventory.peers, told)
    if inventory.groups is not None:
        yield from groups.families(inventory.groups)
    if inventory.users is not None:
        yield from users.families(inventory.users, told)
    if inventory.nameservers is not None:
        yield from dns.families(inventory.nameservers)
    for settings in inventory.dns_settings or ():
        yield dns.disabled(settings)
    if inventory.networks is not None:
        yield from networks.families(inventory.networks)
    if inventory.setup_keys is not None:
        yield from setup_keys.families(inventory.setup_keys)
    if inventory.policies is not None:
        yield from policies.families(inventory.policies)
    if inventory.routes is not None:
        yield from routes.families(inventory.routes)
