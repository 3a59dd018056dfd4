"""Groups of which each peer matters, and those whose peers route."""

from collections.abc import Collection, Iterator

from api_exporter.attention.finding import Finding, Seen, counted, plain
from api_exporter.exposition.text import timestamp
from api_exporter.netbird.records import Group, Peer


def presence(seen: Seen) -> Iterator[Finding]:
    """Peers of important groups that are offline, routers that all are."""
    for group in _of(seen, seen.important):
        peers = _peers(seen, group)
        gone = [peer for peer in peers if not peer.connected]
        if gone:
            left = [timestamp(peer.last_seen) for peer in gone]
            verb = "is" if len(gone) == 1 else "are"
            number = f"{len(gone):,} of {counted(len(peers), 'peer')}"
            yield seen.finding(
                "NetBirdImportantPeerOffline",
                f"Group {plain(group.name or group.id)}",
                f"{number} {verb} not connected{seen.names(gone)}.",
                since=min(filter(None, left), default=None),
            )
    for group in _of(seen, seen.thresholds.groups.routers):
        peers = _peers(seen, group)
        if not any(peer.connected for peer in peers):
            left = [timestamp(peer.last_seen) for peer in peers]
            lost = "None of its routers is connected" if peers else "It has no routers"
            yield seen.finding(
                "NetBirdRouterGroupDown",
                f"Group {plain(group.name or group.id)}",
                f"{lost}: what is routed through it cannot be reached.",
                since=max(filter(None, left), default=None),
            )
    names = {name for g in seen.inventory.groups or () for name in (g.id, g.name)}
    for role, wanted in (
        ("important", seen.important),
        ("a group of routers", seen.thresholds.groups.routers),
    ):
        for name in wanted:
            if name not in names:
                yield seen.finding(
                    "NetBirdImportantGroupMissing",
                    f"Group {plain(name)}",
                    f"It is named as {role}, but no group has that name or id.",
                )


def expired(seen: Seen) -> Iterator[Finding | None]:
    """Peers of important groups that are cut off until somebody logs in."""
    yield from seen.gather()
    for group in _of(seen, (*seen.important, *seen.thresholds.groups.routers)):
        out = [peer for peer in _peers(seen, group) if peer.login_expired]
        if out:
            login = "login has" if len(out) == 1 else "logins have"
            yield seen.finding(
                "NetBirdImportantLoginExpired",
                f"Group {plain(group.name or group.id)}",
                f"{counted(len(out), 'peer')} of it cannot connect, as the {login}"
                f" expired{seen.names(out)}.",
            )


def _of(seen: Seen, wanted: Collection[str]) -> list[Group]:
    return [
        group
        for group in seen.inventory.groups or ()
        if group.name in wanted or group.id in wanted
    ]


def _peers(seen: Seen, group: Group) -> list[Peer]:
    """The members that the upstream lists as peers."""
    peers = seen.peers
    if group.id not in seen.members:
        found = {m.id: peers[m.id] for m in group.peers or () if m.id in peers}
        seen.members[group.id] = list(found.values())
    return seen.members[group.id]
