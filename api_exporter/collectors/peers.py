"""The machines of the network: who is connected, on what, and until when."""

from collections import Counter
from collections.abc import Iterable, Iterator

from api_exporter.exposition import (
    Family,
    Labels,
    Metric,
    Sample,
    boolean,
    labels,
    timestamp,
    timestamps,
)
from api_exporter.inventory import Inventory
from api_exporter.records import Peer

READS = ("peers",)

PEERS = Metric(
    name="netbird_api_peers",
    help="Number of peers by whether they hold a stream to the management service.",
    source="peers[].connected",
    alert="a share of the fleet that is not connected",
)
BY_OS = Metric(
    name="netbird_api_peers_by_os",
    help="Number of peers by operating system, without its version.",
    source="peers[].os",
)
BY_VERSION = Metric(
    name="netbird_api_peers_by_version",
    help="Number of peers by client version.",
    source="peers[].version",
    alert="peers on versions that should be gone",
)
BY_COUNTRY = Metric(
    name="netbird_api_peers_by_country",
    help="Number of peers by the country code of their public address.",
    source="peers[].country_code",
)
LOGIN_EXPIRED_PEERS = Metric(
    name="netbird_api_peers_login_expired",
    help="Number of peers whose login has expired.",
    source="peers[].login_expired",
)
APPROVAL_REQUIRED_PEERS = Metric(
    name="netbird_api_peers_approval_required",
    help="Number of peers that wait for approval.",
    source="peers[].approval_required",
    alert="anything above 0 for long",
)
SSH_ENABLED_PEERS = Metric(
    name="netbird_api_peers_ssh_enabled",
    help="Number of peers with the SSH server enabled.",
    source="peers[].ssh_enabled",
)
EPHEMERAL_PEERS = Metric(
    name="netbird_api_peers_ephemeral",
    help="Number of peers that are removed when they have been offline for a while.",
    source="peers[].ephemeral",
    alert="ephemeral peers that pile up",
)
NEVER_LOGGED_IN_PEERS = Metric(
    name="netbird_api_peers_never_logged_in",
    help="Number of peers that belong to a user and have never logged in.",
    source="peers[].user_id, peers[].last_login",
)
INFO = Metric(
    name="netbird_api_peer_info",
    help="Properties of a peer, to be joined by peer_id. Always 1.",
    source="peers[]",
)
CONNECTED = Metric(
    name="netbird_api_peer_connected",
    help="Whether the peer holds a stream to the management service.",
    source="peers[].connected",
    alert="0 for longer than a reboot takes, for peers that should always be there",
)
LAST_SEEN = Metric(
    name="netbird_api_peer_last_seen_timestamp_seconds",
    help="When the peer last connected or disconnected: "
    "the start of its absence only while it is not connected.",
    source="peers[].last_seen",
    alert="peers not connected whose last change is months old",
)
CREATED = Metric(
    name="netbird_api_peer_created_timestamp_seconds",
    help="When the peer was registered.",
    source="peers[].created_at",
)
LAST_LOGIN = Metric(
    name="netbird_api_peer_last_login_timestamp_seconds",
    help="When the peer's user last logged in; absent when never.",
    source="peers[].last_login",
)
LOGIN_EXPIRED = Metric(
    name="netbird_api_peer_login_expired",
    help="Whether the peer's login has expired.",
    source="peers[].login_expired",
    alert="1 for a peer that somebody needs",
)
APPROVAL_REQUIRED = Metric(
    name="netbird_api_peer_approval_required",
    help="Whether the peer waits for approval.",
    source="peers[].approval_required",
)

_KEYS_AT_ONCE = 1000
"""Peers whose labels are made between two places to pause: about a millisecond."""


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the peers, or none while the peers are unknown."""
    peers = inventory.peers
    if peers is None:
        return
    yield from _counts(peers)
    yield Family(INFO, ((_info(peer), 1) for peer in peers))
    keys: list[Labels] = []
    for start in range(0, len(peers), _KEYS_AT_ONCE):
        yield None
        keys += [_key(peer) for peer in peers[start : start + _KEYS_AT_ONCE]]
    yield Family(
        CONNECTED, ((k, int(p.connected)) for k, p in zip(keys, peers, strict=True))
    )
    for metric, instants in (
        (LAST_SEEN, (peer.last_seen for peer in peers)),
        (CREATED, (peer.created_at for peer in peers)),
        (LAST_LOGIN, (peer.last_login for peer in peers)),
    ):
        yield Family(metric, timestamps(zip(keys, instants, strict=True)))
    yield Family(
        LOGIN_EXPIRED,
        ((k, int(p.login_expired)) for k, p in zip(keys, peers, strict=True)),
    )
    yield Family(
        APPROVAL_REQUIRED,
        ((k, int(p.approval_required)) for k, p in zip(keys, peers, strict=True)),
    )


def _counts(peers: tuple[Peer, ...]) -> Iterator[Family]:
    connected = sum(peer.connected for peer in peers)
    yield Family(
        PEERS,
        [
            (labels(connected=boolean(True)), connected),
            (labels(connected=boolean(False)), len(peers) - connected),
        ],
    )
    systems = Counter(peer.os for peer in peers)
    by_name: Counter[str] = Counter()
    for full_name, count in systems.items():
        by_name[system(full_name)] += count
    yield Family(BY_OS, [(labels(os=os), n) for os, n in sorted(by_name.items())])
    versions = Counter(peer.version or "unknown" for peer in peers)
    yield Family(BY_VERSION, [(labels(version=v), n) for v, n in sorted(versions.items())])
    countries = Counter(peer.country_code or "unknown" for peer in peers)
    yield Family(BY_COUNTRY, [(labels(country=c), n) for c, n in sorted(countries.items())])
    yield _total(LOGIN_EXPIRED_PEERS, (peer.login_expired for peer in peers))
    yield _total(APPROVAL_REQUIRED_PEERS, (peer.approval_required for peer in peers))
    yield _total(SSH_ENABLED_PEERS, (peer.ssh_enabled for peer in peers))
    yield _total(EPHEMERAL_PEERS, (peer.ephemeral for peer in peers))
    yield _total(NEVER_LOGGED_IN_PEERS, (_never_logged_in(peer) for peer in peers))


def _total(metric: Metric, which: Iterable[bool]) -> Family:
    samples: list[Sample] = [("", sum(which))]
    return Family(metric, samples)


def _never_logged_in(peer: Peer) -> bool:
    return peer.user_id != "" and timestamp(peer.last_login) is None


def system(os: str) -> str:
    """The operating system without its version: the words before the first number."""
    words = []
    for word in os.split():
        if word[0].isdigit():
            break
        words.append(word)
    return " ".join(words) or "unknown"


def _key(peer: Peer) -> Labels:
    return labels(peer_id=peer.id, peer=peer.name)


def _info(peer: Peer) -> Labels:
    return labels(
        peer_id=peer.id,
        peer=peer.name,
        dns_label=peer.dns_label,
        ip=peer.ip,
        os=peer.os,
        version=peer.version,
        ui_version=peer.ui_version,
        country=peer.country_code,
        user_id=peer.user_id,
        ssh_enabled=boolean(peer.ssh_enabled),
        ephemeral=boolean(peer.ephemeral),
    )
