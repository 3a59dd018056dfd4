"""The machines of the network: who is connected, on what, and until when."""

from collections.abc import Iterator
from functools import partial

from api_exporter.collectors.once import OnceEach
from api_exporter.exposition.each import Blocks, Each
from api_exporter.exposition.text import (
    Family,
    Labels,
    Metric,
    boolean,
    count_true,
    counted,
    halves,
    labels,
    never,
    timestamp,
)
from api_exporter.netbird.facts.account import login_end, login_lifetime
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Peer

READS = ("peers", "accounts")

PEERS = Metric(
    name="netbird_api_peers",
    help="Number of peers by whether the management service counts them as connected.",
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
    self_hosted="0",
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
BY_ENROLMENT = Metric(
    name="netbird_api_peers_by_enrolment",
    help="Number of peers that are not ephemeral, by whether a person or a setup key"
    " enrolled them and whether they are connected.",
    source="peers[].user_id, peers[].connected, where not peers[].ephemeral",
    alert="a third of those that a setup key enrolled is lost within minutes",
)
INFO = Metric(
    name="netbird_api_peer_info",
    help="Properties of a peer, to be joined by peer_id. Always 1.",
    source="peers[]",
    of_peer=True,
)
CONNECTED = Metric(
    name="netbird_api_peer_connected",
    help="Whether the management service counts the peer as connected.",
    source="peers[].connected",
    alert="0 for longer than a reboot takes, for peers that should always be there",
    of_peer=True,
)
LAST_SEEN = Metric(
    name="netbird_api_peer_last_seen_timestamp_seconds",
    help="When the peer was lost, while it is not connected; when it connected or was"
    " last heard of, while it is.",
    source="peers[].last_seen",
    alert="peers not connected whose last change is months old",
    of_peer=True,
)
CREATED = Metric(
    name="netbird_api_peer_created_timestamp_seconds",
    help="When the peer was registered.",
    source="peers[].created_at",
    of_peer=True,
)
LAST_LOGIN = Metric(
    name="netbird_api_peer_last_login_timestamp_seconds",
    help="When somebody last logged in on the peer, or a setup key enrolled it; absent"
    " when never.",
    source="peers[].last_login",
    of_peer=True,
)
LOGIN_EXPIRED = Metric(
    name="netbird_api_peer_login_expired",
    help="Whether the peer's login has expired.",
    source="peers[].login_expired",
    alert="1 for a peer that somebody needs",
    of_peer=True,
)
LOGIN_EXPIRATION = Metric(
    name="netbird_api_peer_login_expiration_timestamp_seconds",
    help="When the peer's login will expire; absent where it never does.",
    source="peers[].last_login + accounts[].settings.peer_login_expiration,"
    " where peers[].login_expiration_enabled, peers[].user_id and"
    " accounts[].settings.peer_login_expiration_enabled",
    alert="a login that expires within the next working day",
    of_peer=True,
)
APPROVAL_REQUIRED = Metric(
    name="netbird_api_peer_approval_required",
    help="Whether the peer waits for approval.",
    source="peers[].approval_required",
    of_peer=True,
    self_hosted="0",
)


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the peers, or none while the peers are unknown.

    Counts are of all peers; PEER_DETAIL says which have series of their own.
    """
    peers = inventory.peers
    if peers is None:
        return
    yield from _counts(peers)
    told = inventory.personal
    info = partial(_personal_info, told) if told else _info
    blocks = Blocks((yield from inventory.detailed()))
    yield Each(INFO, blocks, lambda p: labels(**info(p)), lambda _: 1, given=told)
    key = OnceEach(_key)
    yield Each(CONNECTED, blocks, key, lambda p: int(p.connected))
    yield Each(LAST_SEEN, blocks, key, lambda p: timestamp(p.last_seen))
    yield Each(CREATED, blocks, key, lambda p: timestamp(p.created_at))
    yield Each(LAST_LOGIN, blocks, key, lambda p: timestamp(p.last_login))
    yield Each(LOGIN_EXPIRED, blocks, key, lambda p: int(p.login_expired))
    lifetime = login_lifetime(inventory.accounts or ())
    if lifetime is not None:
        end = partial(login_end, lifetime)
        yield Each(LOGIN_EXPIRATION, blocks, key, end, given=lifetime)
    yield Each(APPROVAL_REQUIRED, blocks, key, lambda p: int(p.approval_required))


def _counts(peers: tuple[Peer, ...]) -> Iterator[Family]:
    yield halves(PEERS, "connected", (peer.connected for peer in peers))
    yield counted(BY_OS, (peer.os for peer in peers), lambda os: labels(os=system(os)))
    yield counted(
        BY_VERSION,
        (peer.version or "unknown" for peer in peers),
        lambda version: labels(version=version),
    )
    yield counted(
        BY_COUNTRY,
        (peer.country_code or "unknown" for peer in peers),
        lambda country: labels(country=country),
    )
    yield count_true(LOGIN_EXPIRED_PEERS, (peer.login_expired for peer in peers))
    yield count_true(
        APPROVAL_REQUIRED_PEERS, (peer.approval_required for peer in peers)
    )
    yield count_true(SSH_ENABLED_PEERS, (peer.ssh_enabled for peer in peers))
    yield count_true(EPHEMERAL_PEERS, (peer.ephemeral for peer in peers))
    yield count_true(
        NEVER_LOGGED_IN_PEERS,
        (peer.user_id != "" and never(peer.last_login) for peer in peers),
    )
    yield counted(
        BY_ENROLMENT,
        ((p.user_id != "", p.connected) for p in peers if not p.ephemeral),
        lambda key: labels(
            enrolled_by="user" if key[0] else "setup_key", connected=boolean(key[1])
        ),
        always=((False, False), (False, True), (True, False), (True, True)),
    )


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


def _info(peer: Peer) -> dict[str, str]:
    return {
        "peer_id": peer.id,
        "peer": peer.name,
        "dns_label": peer.dns_label,
        "ip": peer.ip,
        "os": peer.os,
        "version": peer.version,
        "ui_version": peer.ui_version,
        "country": peer.country_code,
        "user_id": peer.user_id,
        "ssh_enabled": boolean(peer.ssh_enabled),
        "ephemeral": boolean(peer.ephemeral),
        "ipv6": peer.ipv6,
        "kernel_version": peer.kernel_version,
    }


def _personal_info(told: frozenset[str], peer: Peer) -> dict[str, str]:
    personal = {
        "city": peer.city_name,
        "hostname": peer.hostname,
        "connection_ip": "" if peer.connection_ip == "<nil>" else peer.connection_ip,
        "serial_number": peer.serial_number,
    }
    return _info(peer) | {k: v for k, v in personal.items() if k in told}
