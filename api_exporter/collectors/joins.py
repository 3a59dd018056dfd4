"""Who stands behind what: the joins that several collectors make."""

from collections.abc import Iterable, Mapping

from api_exporter.netbird.records import Group, Peer

Members = Mapping[str, Iterable[str]]
"""The ids of a group's members, by the group's id."""


def connected(peers: Iterable[Peer]) -> frozenset[str]:
    """The ids of the connected peers."""
    return frozenset([peer.id for peer in peers if peer.connected])


def existing(peers: Iterable[Peer]) -> frozenset[str]:
    """The ids of the peers that the upstream lists."""
    return frozenset([peer.id for peer in peers])


def members(groups: Iterable[Group], wanted: frozenset[str]) -> Members:
    """The members of the groups with these ids; others are not looked at."""
    return {
        group.id: [member.id for member in group.peers or ()]
        for group in groups
        if group.id in wanted
    }


def routing_peers(
    peer: str, groups: Iterable[str] | None, members: Members
) -> frozenset[str]:
    """The ids behind a router: its peer and the members of its groups, each once."""
    found = {peer} if peer else set()
    for group in groups or ():
        found.update(members.get(group, ()))
    return frozenset(found)
