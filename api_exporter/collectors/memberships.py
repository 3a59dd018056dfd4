"""Who is in which group: one series per peer and group, so only on request."""

from collections.abc import Iterator

from api_exporter.exposition.text import Family, Metric, cut, labels
from api_exporter.netbird.inventory import Inventory

READS = ("groups",)

MEMBER = Metric(
    name="netbird_api_group_member",
    help="Which peer is in which group. Always 1.",
    source="groups[].peers[]",
    alert="joined with netbird_api_peer_connected: every offline peer of one group",
    of_peer=True,
)


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """A sample for each peer of each group; absent while the groups are unknown.

    A peer without series of its own has none here, either.
    """
    groups = inventory.groups
    if groups is None:
        return
    detailed = yield from inventory.detailed_ids()
    yield Family(
        MEMBER,
        (
            (
                labels(
                    group_id=group.id,
                    group=group.name,
                    peer_id=member.id,
                    peer=member.name,
                ),
                1,
            )
            for group in groups
            for member in {cut(m.id): m for m in group.peers or ()}.values()
            if member.id and (detailed is None or member.id in detailed)
        ),
    )
