"""Machines. There is no `peer_accessible_peers_count`, which was never set, either."""

from collections.abc import Container, Iterable, Iterator
from functools import partial

from api_exporter.exposition.each import Blocks, Each
from api_exporter.exposition.text import (
    Family,
    Labels,
    Metric,
    boolean,
    counted,
    halves,
    labels,
    single,
    whole,
)
from api_exporter.netbird.records import GroupedPeer, Peer

PEERS = Metric(
    name="netbird_peers",
    help="Number of peers.",
    source="peers[]",
)
CONNECTED = Metric(
    name="netbird_peers_connected",
    help="Number of peers by whether they are connected.",
    source="peers[].connected",
)
LAST_SEEN = Metric(
    name="netbird_peer_last_seen_timestamp",
    help="When the peer connected, was last heard of or was lost; absent when never.",
    source="peers[].last_seen",
    of_peer=True,
)
BY_OS = Metric(
    name="netbird_peers_by_os",
    help="Number of peers by operating system, its version included.",
    source="peers[].os",
)
BY_COUNTRY = Metric(
    name="netbird_peers_by_country",
    help="Number of peers by country, and by city where that may be told.",
    source="peers[].country_code, peers[].city_name",
)
BY_GROUP = Metric(
    name="netbird_peers_by_group",
    help="Number of peers by group, as the peers name their groups.",
    source="peers[].groups[].{id,name}",
)
SSH_ENABLED = Metric(
    name="netbird_peers_ssh_enabled",
    help="Number of peers by whether the SSH server is enabled.",
    source="peers[].ssh_enabled",
)
LOGIN_EXPIRED = Metric(
    name="netbird_peers_login_expired",
    help="Number of peers by whether their login has expired.",
    source="peers[].login_expired",
)
APPROVAL_REQUIRED = Metric(
    name="netbird_peers_approval_required",
    help="Number of peers by whether they wait for approval.",
    source="peers[].approval_required",
)
STATUS = Metric(
    name="netbird_peer_connection_status_by_name",
    help="Whether the peer is connected, as a label and as the value.",
    source="peers[].connected",
    of_peer=True,
)


def families(
    peers: tuple[Peer, ...], detailed: Iterable[Peer], told: Container[str]
) -> Iterator[Family]:
    """Counts are of all peers, of which those with detail have series of their own.

    Host names and cities only where these kinds of personal data may be told.
    """
    yield single(PEERS, len(peers))
    yield halves(CONNECTED, "connected", (peer.connected for peer in peers))
    blocks = Blocks(detailed)
    named = "hostname" in told
    seen = partial(_seen, named=named)
    yield Each(LAST_SEEN, blocks, seen, lambda p: whole(p.last_seen), given=named)
    yield counted(
        BY_OS, (peer.os or "unknown" for peer in peers), lambda os: labels(os=os)
    )
    yield counted(
        BY_COUNTRY,
        ((peer.country_code, peer.city_name) for peer in peers),
        lambda place: _place(*place, city_told="city" in told),
    )
    yield counted(
        BY_GROUP,
        _groups(peers),
        lambda group: labels(group_id=group[0], group_name=group[1]),
    )
    yield halves(SSH_ENABLED, "ssh_enabled", (peer.ssh_enabled for peer in peers))
    yield halves(LOGIN_EXPIRED, "login_expired", (peer.login_expired for peer in peers))
    yield halves(
        APPROVAL_REQUIRED,
        "approval_required",
        (peer.approval_required for peer in peers),
    )
    yield Each(STATUS, blocks, _status, lambda peer: int(peer.connected))


def _seen(peer: Peer, *, named: bool) -> Labels:
    return labels(
        peer_id=peer.id,
        peer_name=peer.name,
        hostname=peer.hostname if named else "",
        user_id=peer.user_id,
    )


def _status(peer: Peer) -> Labels:
    return labels(
        peer_name=peer.name,
        peer_id=peer.id,
        user_id=peer.user_id or "unknown",
        connected=boolean(peer.connected),
    )


def _groups(peers: Iterable[Peer]) -> Iterator[tuple[str, str]]:
    """Ids and names of the peers' groups; what a peer names twice counts once."""
    for peer in peers:
        groups = peer.groups or () if isinstance(peer, GroupedPeer) else ()
        for id_, name in {group.id: group.name for group in groups}.items():
            if id_:
                yield id_, name


def _place(country: str, city: str, *, city_told: bool) -> Labels:
    if not country:
        country = city = "unknown"
    return labels(country_code=country, city_name=city if city_told else "")
