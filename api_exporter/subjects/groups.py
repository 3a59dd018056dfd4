"""Groups: their members, and how many of the members are connected."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from api_exporter.attention.finding import (
    Finder,
    Finding,
    FindingKind,
    Members,
    Snapshot,
)
from api_exporter.collectors.rows import ObjectKind, id_and_name, once_each, or_unknown
from api_exporter.exposition.text import count_by, labels, timestamp
from api_exporter.formatting import with_noun
from api_exporter.netbird.bodies import ListDecoder
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.members import distinct, named
from api_exporter.netbird.records import Group
from api_exporter.netbird.resources import MINUTE, Resource
from api_exporter.subjects import Subject

GROUPS = Resource(
    "groups",
    "api/groups",
    ListDecoder(Group, nullable=False),
    5 * MINUTE,
    permission="groups",
    place=3,
)

PEER_GROUP = ObjectKind[Group](GROUPS, id_and_name("group"))


def _members(inventory: Inventory) -> Callable[[Group], tuple[int, int]]:
    peers = inventory.peers or ()
    connected = {peer.id for peer in peers if peer.connected}
    offline = {peer.id for peer in peers if not peer.connected}

    def count(group: Group) -> tuple[int, int]:
        # The event loop may run inside a comprehension, not inside an intersection.
        ids = [member.id for member in group.peers or ()]
        up = {one for one in ids if one in connected}
        return len(up), len({one for one in ids if one in offline})

    return once_each(count)


FAMILIES = (
    PEER_GROUP.count(
        "netbird_api_groups",
        "Number of groups by source",
        {"issued": "issued"},
        or_unknown,
    ),
    PEER_GROUP.info(
        "netbird_api_group_info",
        "Properties of a group, to join on group_id (always 1)",
        {"issued": "issued"},
    ),
    PEER_GROUP.field(
        "netbird_api_group_peers",
        "Number of peers in the group, as NetBird counts them",
        "peers_count",
        alert="0 in a group that policies or setup keys use",
    ),
    PEER_GROUP.joined(
        "netbird_api_group_peers_connected",
        "Number of the group's peers that are connected",
        "groups[].peers[].id among the connected peers[]",
        _members,
        lambda count, group: count(group)[0],
        needs=("peers",),
        alert="0 in a group of routing peers",
    ),
    PEER_GROUP.joined(
        "netbird_api_group_peers_offline",
        "Number of the group's peers that are offline",
        "groups[].peers[].id among the peers[] that are not connected",
        _members,
        lambda count, group: count(group)[1],
        needs=("peers",),
        alert="above 0 in a group that must be complete",
    ),
    PEER_GROUP.field(
        "netbird_api_group_resources",
        "Number of network resources in the group, as NetBird counts them",
        "resources_count",
    ),
    PEER_GROUP.samples(
        "netbird_api_group_resources_by_type",
        "Number of network resources in the group by type",
        "groups[].resources[].type",
        lambda groups: count_by(
            labels(group_id=group.id, group=group.name, resource_type=resource.type)
            for group in groups
            for resource in distinct(group.resources)
        ),
    ),
)


class GroupCount(Struct, frozen=True, kw_only=True):
    """The numbers of peers in an important group; the id of a missing group is ""."""

    id: str = ""
    name: str
    peers: int = 0
    connected: int = 0


def count_important(snapshot: Snapshot) -> tuple[GroupCount, ...] | None:
    """Return the numbers of each important group; None while they are unknown."""
    inventory = snapshot.inventory
    if inventory.groups is None or inventory.peers is None:
        return None
    found: list[GroupCount] = []
    for name in snapshot.important:
        found += [
            GroupCount(
                id=group.id,
                name=group.name,
                peers=members.peer_count,
                connected=members.peer_count - len(members.offline),
            )
            for group in named(inventory.groups, (name,))
            for members in [_members_of(snapshot, group)]
        ] or [GroupCount(name=name)]
    return tuple(dict.fromkeys(found))  # the settings may name a group twice


PEER_OFFLINE = FindingKind(
    "NetBirdImportantPeerOffline",
    "Group",
    "group",
    lasts="15m",
    summary="Group {{ $labels.group }} has offline peers",
    description="The important group {{ $labels.group }} has offline peers.",
    keep="10m",
)
ROUTERS_DOWN = FindingKind(
    "NetBirdRouterGroupDown",
    "Group",
    "group",
    lasts="5m",
    summary="Group {{ $labels.group }} has no connected routing peer",
    description="Networks behind group {{ $labels.group }} alone cannot be reached.",
    keep="10m",
)
GROUP_MISSING = FindingKind(
    "NetBirdImportantGroupMissing",
    "Group",
    "group",
    lasts="30m",
    summary="Group {{ $labels.group }} does not exist",
    description="The settings name group {{ $labels.group }}, but no group has that"
    " name or id.",
    own_labels=(("group", "object", "(.+)"),),
)
LOGIN_EXPIRED = FindingKind(
    "NetBirdImportantLoginExpired",
    "Peer",
    "peer",
    lasts="5m",
    summary="The login of {{ with $labels.peer }}{{ . }}{{ else }}a peer{{ end }} has"
    " expired",
    description="{{ with $labels.peer }}{{ . }}{{ else }}A peer{{ end }} of an"
    " important group cannot connect until its user logs in.",
    many=("Logins of {} important peers", "have expired"),
)


def offline_peers(snapshot: Snapshot) -> Iterator[Finding]:
    groups = snapshot.inventory.groups or ()
    for group in named(groups, snapshot.important):
        members = _members_of(snapshot, group)
        if offline := members.offline:
            names = snapshot.names(offline)
            number = f"{len(offline):,} of {with_noun(members.peer_count, 'peer')}"
            yield snapshot.finding(
                PEER_OFFLINE,
                f"has {number} offline{names}.",
                group,
                since=min(members.offline_since, default=None),
            )
    for group in named(groups, snapshot.thresholds.groups.routers):
        members = _members_of(snapshot, group)
        if len(members.offline) == members.peer_count:
            lost = "connected routing peer" if members.offline else "routing peer"
            yield snapshot.finding(
                ROUTERS_DOWN,
                f"has no {lost}: networks behind this group alone cannot be reached.",
                group,
                since=max(members.offline_since, default=None),
            )


def missing_groups(snapshot: Snapshot) -> Iterator[Finding]:
    groups = snapshot.inventory.groups or ()
    known = {name for g in groups for name in (g.id, g.name)}
    for role, group_names in (
        ("important", snapshot.important),
        ("a group of routing peers", snapshot.thresholds.groups.routers),
    ):
        for name in group_names:
            if name not in known:
                yield snapshot.finding(
                    GROUP_MISSING,
                    f"does not exist, but the settings name it as {role}.",
                    object_id=name,
                    name=name,
                )


def expired_logins(snapshot: Snapshot) -> Iterator[Finding]:
    groups = snapshot.inventory.groups or ()
    for group in named(
        groups, (*snapshot.important, *snapshot.thresholds.groups.routers)
    ):
        for peer in _members_of(snapshot, group).expired:
            yield snapshot.finding(
                LOGIN_EXPIRED,
                "of an important group cannot connect: its login has expired.",
                object_id=peer.id,
                name=snapshot.peer_name(peer),
            )


def _members_of(snapshot: Snapshot, group: Group) -> Members:
    if group.id in snapshot.members:
        return snapshot.members[group.id]
    ids = dict.fromkeys(member.id for member in group.peers or ())
    peers = [snapshot.peers[id_] for id_ in ids if id_ in snapshot.peers]
    offline = [peer for peer in peers if not peer.connected]
    times = [timestamp(peer.last_seen) for peer in offline]
    found = Members(
        peer_count=len(peers),
        offline=offline,
        offline_since=[at for at in times if at is not None],
        expired=[peer for peer in peers if peer.login_expired],
    )
    snapshot.members[group.id] = found
    return found


FINDERS = (
    Finder(
        offline_peers,
        (PEER_OFFLINE, ROUTERS_DOWN),
        ("groups", "peers"),
        hidden_in_outage=True,
    ),
    Finder(missing_groups, (GROUP_MISSING,), ("groups",), hidden_in_outage=True),
    Finder(expired_logins, (LOGIN_EXPIRED,), ("groups", "peers")),
)

SUBJECT = Subject(__name__, (GROUPS,), FAMILIES, FINDERS)
