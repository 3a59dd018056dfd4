"""Groups: who is in them, and how many of those are connected."""

from collections.abc import Callable, Iterable, Iterator, Set

from api_exporter.collectors.once import Once, OnceInSteps
from api_exporter.exposition.text import (
    Family,
    Labels,
    Metric,
    Sample,
    counted,
    labels,
)
from api_exporter.netbird.facts.members import Presence, distinct
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group

READS = ("groups", "peers")

GROUPS = Metric(
    name="netbird_api_groups",
    help="Number of groups by where they come from.",
    source="groups[].issued",
)
INFO = Metric(
    name="netbird_api_group_info",
    help="Properties of a group, to be joined by group_id. Always 1.",
    source="groups[]",
)
PEERS = Metric(
    name="netbird_api_group_peers",
    help="Number of peers in the group, as the upstream counts them.",
    source="groups[].peers_count",
    alert="0 in a group that policies or setup keys use",
)
PEERS_CONNECTED = Metric(
    name="netbird_api_group_peers_connected",
    help="Number of the group's peers that are connected.",
    source="groups[].peers[].id among the connected peers[]",
    alert="0 in a group of routers",
)
PEERS_OFFLINE = Metric(
    name="netbird_api_group_peers_offline",
    help="Number of the group's peers that are listed and not connected.",
    source="groups[].peers[].id among the peers[] that are not connected",
    alert="above 0 in a group that must be complete",
)
RESOURCES = Metric(
    name="netbird_api_group_resources",
    help="Number of network resources in the group, as the upstream counts them.",
    source="groups[].resources_count",
)
RESOURCES_BY_TYPE = Metric(
    name="netbird_api_group_resources_by_type",
    help="Number of network resources in the group by type.",
    source="groups[].resources[].type",
)


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the groups; those of connected members need the peers."""
    groups = inventory.groups
    if groups is None:
        return
    yield counted(GROUPS, (labels(issued=g.issued or "unknown") for g in groups))
    yield Family(
        INFO,
        (
            (labels(group_id=group.id, group=group.name, issued=group.issued), 1)
            for group in groups
        ),
    )
    keyed = Once(
        (labels(group_id=group.id, group=group.name), group) for group in groups
    )
    yield Family(PEERS, ((key, group.peers_count) for key, group in keyed))
    if inventory.peers is not None:
        presence = OnceInSteps(Presence.of(inventory.peers))
        for metric, some in (
            (PEERS_CONNECTED, lambda found: found.connected),
            (PEERS_OFFLINE, lambda found: found.offline.keys()),
        ):
            yield Family(metric, _among(presence, some, keyed), 1, presence.steps)
    yield Family(RESOURCES, ((key, group.resources_count) for key, group in keyed))
    yield counted(
        RESOURCES_BY_TYPE,
        (
            labels(group_id=group.id, group=group.name, resource_type=resource.type)
            for group in groups
            for resource in distinct(group.resources)
        ),
    )


def _among(
    presence: OnceInSteps[Presence],
    some: Callable[[Presence], Set[str]],
    keyed: Iterable[tuple[Labels, Group]],
) -> Iterator[Sample]:
    """A group may have as many members as there are peers: each is much work."""
    present = some(presence.whole())
    for key, group in keyed:
        yield key, len(present & {member.id for member in group.peers or ()})
