"""Groups: their members, and how many of the members are connected."""

from collections.abc import Callable

from api_exporter.collectors.rows import ObjectKind, or_unknown
from api_exporter.exposition.memo import MemoFunction
from api_exporter.exposition.text import count_by, labels
from api_exporter.netbird.facts.members import distinct
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group

GROUPS = ObjectKind[Group](
    "groups", "groups[]", lambda group: labels(group_id=group.id, group=group.name)
)


def _members(inventory: Inventory) -> Callable[[Group], tuple[int, int]]:
    """Return a function that counts connected and offline members of a group."""
    peers = inventory.peers or ()
    connected = {peer.id for peer in peers if peer.connected}
    offline = {peer.id for peer in peers if not peer.connected}

    def count(group: Group) -> tuple[int, int]:
        ids = [member.id for member in group.peers or ()]
        return len(connected.intersection(ids)), len(offline.intersection(ids))

    return MemoFunction(count)


ROWS = (
    GROUPS.count(
        "netbird_api_groups",
        "Number of groups by source",
        {"issued": "issued"},
        or_unknown,
    ),
    GROUPS.each(
        "netbird_api_group_info",
        "Properties of a group, to join on group_id (always 1)",
        "groups[]",
        labels=lambda g: labels(group_id=g.id, group=g.name, issued=g.issued),
    ),
    GROUPS.field(
        "netbird_api_group_peers",
        "Number of peers in the group, as NetBird counts them",
        "peers_count",
        alert="0 in a group that policies or setup keys use",
    ),
    GROUPS.joined(
        "netbird_api_group_peers_connected",
        "Number of the group's peers that are connected",
        "groups[].peers[].id among the connected peers[]",
        _members,
        lambda count, group: count(group)[0],
        needs=("peers",),
        alert="0 in a group of routing peers",
    ),
    GROUPS.joined(
        "netbird_api_group_peers_offline",
        "Number of the group's peers that are offline",
        "groups[].peers[].id among the peers[] that are not connected",
        _members,
        lambda count, group: count(group)[1],
        needs=("peers",),
        alert="above 0 in a group that must be complete",
    ),
    GROUPS.field(
        "netbird_api_group_resources",
        "Number of network resources in the group, as NetBird counts them",
        "resources_count",
    ),
    GROUPS.family(
        "netbird_api_group_resources_by_type",
        "Number of network resources in the group by type",
        "groups[].resources[].type",
        lambda metric, groups: count_by(
            metric,
            (
                labels(group_id=group.id, group=group.name, resource_type=resource.type)
                for group in groups
                for resource in distinct(group.resources)
            ),
        ),
    ),
)
