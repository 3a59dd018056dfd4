"""Groups."""

from collections.abc import Iterator

from api_exporter.exposition.text import Family, Metric, counted, labels, single
from api_exporter.netbird.records import Group

GROUPS = Metric(
    name="netbird_groups",
    help="Number of groups.",
    source="groups[]",
)
PEERS = Metric(
    name="netbird_group_peers_count",
    help="Number of peers in the group, as the upstream counts them.",
    source="groups[].peers_count",
)
RESOURCES = Metric(
    name="netbird_group_resources_count",
    help="Number of network resources in the group, as the upstream counts them.",
    source="groups[].resources_count",
)
INFO = Metric(
    name="netbird_group_info",
    help="Properties of a group. Always 1.",
    source="groups[]",
)
RESOURCES_BY_TYPE = Metric(
    name="netbird_group_resources_by_type",
    help="Number of network resources in the group by type.",
    source="groups[].resources[].type",
)


def families(groups: tuple[Group, ...]) -> Iterator[Family]:
    yield single(GROUPS, len(groups))
    yield Family(PEERS, ((_labels(group), group.peers_count) for group in groups))
    yield Family(
        RESOURCES, ((_labels(group), group.resources_count) for group in groups)
    )
    yield Family(INFO, ((_labels(group), 1) for group in groups))
    yield counted(
        RESOURCES_BY_TYPE,
        (
            labels(group_id=group.id, group_name=group.name, resource_type=found.type)
            for group in groups
            for found in group.resources or ()
        ),
    )


def _labels(group: Group) -> str:
    return labels(group_id=group.id, group_name=group.name, issued=group.issued)
