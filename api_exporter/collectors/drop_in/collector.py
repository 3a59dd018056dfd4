"""The metrics of netbird-api-exporter 0.2.4 under their own names, for dashboards and
alerts that were made for it; `migrating.md` says what differs.
"""

from collections.abc import Iterator

from api_exporter.collectors.drop_in import subjects
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

FAMILIES = subjects.FAMILIES

BODIES: dict[str, Body] = {
    "peers": Listing(records.GroupedPeer, nullable=False, cut_times=True),
    "users": Listing(records.User, cut_times=True),
    "setup_keys": Listing(records.SetupKey, cut_times=True),
}
"""Peers with the groups that they name, and times whose seconds are Go's."""


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families, those of each resource as soon as it is known."""
    return subjects.families(inventory)
