"""Memberships: one series for each peer of each group."""

from collections.abc import Iterable

from api_exporter.collectors.rows import ObjectKind
from api_exporter.exposition.text import labels, truncate
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group, Member
from api_exporter.subjects import Subject


def _members(inventory: Inventory) -> Iterable[tuple[Group, Member]]:
    ids = inventory.detailed_peer_ids()
    return (
        (group, member)
        for group in inventory.groups or ()
        for member in {truncate(m.id): m for m in group.peers or ()}.values()
        if member.id and (ids is None or member.id in ids)
    )


MEMBER = ObjectKind[tuple[Group, Member]](
    None, find=_members, needs=("groups",), of_peer=True
)
"""Memberships of the peers that may have series of their own."""

FAMILIES = (
    MEMBER.each(
        "netbird_api_group_member",
        "Membership of a peer in a group (always 1)",
        "groups[].peers[]",
        labels=lambda m: labels(
            group_id=m[0].id, group=m[0].name, peer_id=m[1].id, peer=m[1].name
        ),
        alert="joined with netbird_api_peer_connected: every offline peer of one group",
    ),
)

SUBJECT = Subject(__name__, families=FAMILIES, default=False)
