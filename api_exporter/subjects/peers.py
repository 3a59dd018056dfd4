"""Peers: their state, versions and logins."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from math import ceil

from api_exporter.attention.finding import Finder, Finding, FindingKind, Snapshot
from api_exporter.attention.thresholds import DAY, HOUR
from api_exporter.collectors.rows import ObjectKind, or_unknown, personal_kinds
from api_exporter.exposition.text import Labels, Sample, boolean, labels, timestamp
from api_exporter.formatting import with_noun
from api_exporter.netbird.bodies import ListDecoder
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import NO_FLAGS, Peer, personal_labels
from api_exporter.netbird.resources import PEERS, Resource
from api_exporter.subjects import Subject

NETWORK_PEERS = Resource(
    PEERS,
    "api/peers",
    ListDecoder(Peer, nullable=False),
    30,
    permission="peers",
    place=0,
)


def login_lifetime_seconds(inventory: Inventory) -> int | None:
    """Return the seconds after which a login expires; None if logins do not expire."""
    for account in inventory.accounts or ():  # a token sees one
        settings = account.settings
        enabled = settings.peer_login_expiration_enabled
        return settings.peer_login_expiration if enabled else None
    return None


def login_expires_at(lifetime: int | None, peer: Peer) -> float | None:
    """Return when the login of a user's peer expires; None if it does not."""
    if lifetime is None or not (peer.login_expiration_enabled and peer.user_id):
        return None
    login = timestamp(peer.last_login)
    if login is None or login + lifetime < 0:
        return None
    return login + lifetime


PEER_FIELDS = {
    "city_name": "city",
    "hostname": "hostname",
    "connection_ip": "connection_ip",
    "serial_number": "serial_number",
}
"""The kind of personal data in fields of a peer."""

PEER = ObjectKind[Peer](NETWORK_PEERS)

DETAILED = ObjectKind[Peer](
    NETWORK_PEERS,
    lambda peer: labels(peer_id=peer.id, peer=peer.name),
    find=Inventory.detailed_peers,
    keeps_lines=True,
    of_peer=True,
)
"""Peers that may have series of their own, as PEER_DETAIL says. Their rows do not use
`ObjectKind.field`, which would cost one more call for each of very many peers."""


def system(os: str) -> str:
    """Return the system without its version: the words before the first number."""
    words = []
    for word in os.split():
        if word[0].isdigit():
            break
        words.append(word)
    return " ".join(words) or "unknown"


_REMOTE_JOBS = {None: "", False: "false", True: "true"}


def _info(kinds: frozenset[str], peer: Peer) -> Labels:
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
        ipv6=peer.ipv6,
        kernel_version=peer.kernel_version,
        remote_jobs_allowed=_REMOTE_JOBS[peer.local_flags.remote_jobs_allowed],
        **personal_labels(PEER_FIELDS, peer, kinds),
    )


def _remote_jobs_allowed(peers: Iterable[Peer]) -> Iterator[Sample]:
    sent = [p.local_flags for p in peers if p.local_flags is not NO_FLAGS]
    if sent:
        yield "", sum(flags.remote_jobs_allowed is True for flags in sent)


def _by_enrolment(peers: Iterable[Peer]) -> Iterator[Sample]:
    counts = Counter((p.user_id != "", p.connected) for p in peers if not p.ephemeral)
    for is_user, connected in product((False, True), repeat=2):
        by = "user" if is_user else "setup_key"
        sample = labels(enrolled_by=by, connected=boolean(connected))
        yield sample, counts[is_user, connected]


FAMILIES = (
    PEER.count_true_and_false(
        "netbird_api_peers",
        "Number of peers by whether NetBird counts them as connected",
        "connected",
        alert="a share of the fleet that is not connected",
    ),
    PEER.count(
        "netbird_api_peers_by_os",
        "Number of peers by operating system, without its version",
        {"os": "os"},
        system,
    ),
    PEER.count(
        "netbird_api_peers_by_version",
        "Number of peers by client version",
        {"version": "version"},
        or_unknown,
        alert="peers with versions that you no longer allow",
    ),
    PEER.count(
        "netbird_api_peers_by_country",
        "Number of peers by the country code of their public address",
        {"country": "country_code"},
        or_unknown,
    ),
    PEER.count_true(
        "netbird_api_peers_login_expired",
        "Number of peers whose login has expired",
        "login_expired",
    ),
    PEER.count_true(
        "netbird_api_peers_approval_required",
        "Number of peers that wait for approval",
        "approval_required",
        alert="anything above 0 for long",
        self_hosted="0",
    ),
    PEER.count_true(
        "netbird_api_peers_ssh_enabled",
        "Number of peers with the SSH server enabled",
        "ssh_enabled",
    ),
    PEER.count_true(
        "netbird_api_peers_ephemeral",
        "Number of ephemeral peers, which NetBird removes after some minutes offline",
        "ephemeral",
        alert="a number that only grows",
    ),
    PEER.samples(
        "netbird_api_peers_remote_jobs_allowed",
        "Number of peers that accept remote jobs (absent before NetBird 0.78)",
        "peers[].local_flags.remote_jobs_allowed",
        _remote_jobs_allowed,
    ),
    PEER.samples(
        "netbird_api_peers_never_logged_in",
        "Number of peers that belong to a user and have never logged in",
        "peers[].user_id, peers[].last_login",
        lambda peers: [
            ("", sum(p.user_id != "" and not timestamp(p.last_login) for p in peers))
        ],
    ),
    PEER.samples(
        "netbird_api_peers_by_enrolment",
        "Number of peers that are not ephemeral, by enrolment (user or setup key) and"
        " whether they are connected",
        "peers[].user_id, peers[].connected, where not peers[].ephemeral",
        _by_enrolment,
        alert="a third of those that a setup key enrolled is lost within minutes",
    ),
    DETAILED.joined(
        "netbird_api_peer_info",
        "Properties of a peer, to join on peer_id (always 1)",
        "peers[]",
        personal_kinds,
        labels=_info,
    ),
    DETAILED.each(
        "netbird_api_peer_connected",
        "Whether NetBird counts the peer as connected (1 = yes, 0 = no)",
        "peers[].connected",
        lambda peer: int(peer.connected),
        alert="0 for longer than a reboot takes, for peers that should always be there",
    ),
    DETAILED.each(
        "netbird_api_peer_last_seen_timestamp_seconds",
        "Time when the peer disconnected, in seconds since 1970 (offline peers only;"
        " from NetBird 0.78 on also moved by proxied access)",
        "peers[].last_seen",
        lambda peer: timestamp(peer.last_seen),
        alert="peers that have been offline for months",
    ),
    DETAILED.each(
        "netbird_api_peer_created_timestamp_seconds",
        "Time when the peer was registered, in seconds since 1970",
        "peers[].created_at",
        lambda peer: timestamp(peer.created_at),
    ),
    DETAILED.each(
        "netbird_api_peer_last_login_timestamp_seconds",
        "Time of the last login on the peer, or of its enrolment with a setup key, in"
        " seconds since 1970 (absent if never; from NetBird 0.78 on also moved by"
        " proxied access)",
        "peers[].last_login",
        lambda peer: timestamp(peer.last_login),
    ),
    DETAILED.each(
        "netbird_api_peer_login_expired",
        "Always 1, for each peer whose login has expired (absent for other peers)",
        "peers[].login_expired",
        lambda peer: 1 if peer.login_expired else None,
        alert="a peer that is in use",
    ),
    DETAILED.joined(
        "netbird_api_peer_login_expiration_timestamp_seconds",
        "Time when the peer's login expires, in seconds since 1970 (absent if never)",
        "peers[].last_login + accounts[].settings.peer_login_expiration,"
        " where peers[].login_expiration_enabled, peers[].user_id and"
        " accounts[].settings.peer_login_expiration_enabled",
        login_lifetime_seconds,
        login_expires_at,
        needs=("accounts",),
        alert="a login that expires within the next working day",
    ),
    DETAILED.each(
        "netbird_api_peer_approval_required",
        "Always 1, for each peer that waits for approval (absent for other peers)",
        "peers[].approval_required",
        lambda peer: 1 if peer.approval_required else None,
        self_hosted="absent",
    ),
)


FLEET_DROPPED = FindingKind(
    "NetBirdFleetDropped",
    "Many peers",
    lasts="2m",
    summary="Many peers lost their connection within ten minutes",
    description="Within ten minutes many peers that a setup key enrolled went offline,"
    " from {{ $value | humanizeTimestamp }} on.",
)
LOGIN_EXPIRES = FindingKind(
    "NetBirdLoginExpiresSoon",
    "Connected peer",
    "peer",
    lasts="30m",
    summary="The login of a connected peer expires soon",
    description="{{ with $labels.peer }}{{ . }}{{ else }}The peer{{ end }} stays"
    " connected until its login expires, unless its user logs in.",
    keep="10m",
    many=("Logins of {} connected peers", "expire soon"),
)
PEER_AWAITS_APPROVAL = FindingKind(
    "NetBirdPeerAwaitsApproval",
    "Peer",
    "peer",
    lasts="1m",
    summary="A peer waits for approval",
    description="{{ with $labels.peer }}{{ . }}{{ else }}The peer{{ end }} has waited"
    " for approval since {{ $value | humanizeTimestamp }}.",
    many=("{} peers", "wait for approval"),
)


def fleet_drop(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.drop_at is not None:
        inventory = snapshot.inventory
        yield snapshot.finding(
            FLEET_DROPPED,
            "lost their connection within ten minutes:"
            f" {inventory.connected_count:,} of"
            f" {with_noun(len(inventory.peers or ()), 'peer')} are connected.",
            since=snapshot.drop_at,
        )


def logins(snapshot: Snapshot) -> Iterator[Finding]:
    days, share = snapshot.thresholds.days, snapshot.thresholds.shares["login_soon"]
    lifetime = login_lifetime_seconds(snapshot.inventory)
    if lifetime is None or lifetime < days["login_routine"] * DAY:
        return
    limit = min(days["login_soon"] * DAY, share * lifetime)
    within = with_noun(ceil(limit / HOUR), "hour")
    for peer in snapshot.inventory.peers or ():
        if not peer.connected:
            continue
        end = login_expires_at(lifetime, peer)
        if end is not None and 0 < end - snapshot.now < limit:
            yield snapshot.finding(
                LOGIN_EXPIRES,
                f"must log in within {within}: its login expires.",
                object_id=peer.id,
                name=snapshot.peer_name(peer),
                until=end,
            )


def peer_approvals(snapshot: Snapshot) -> Iterator[Finding]:
    hours = snapshot.thresholds.hours["approval"]
    for peer in snapshot.inventory.peers or ():
        if not peer.approval_required:
            continue
        since = timestamp(peer.created_at)
        if snapshot.now - (since or 0.0) >= hours * HOUR:
            yield snapshot.finding(
                PEER_AWAITS_APPROVAL,
                "waits for approval.",
                object_id=peer.id,
                name=snapshot.peer_name(peer),
                since=since,
            )


FINDERS = (
    Finder(fleet_drop, (FLEET_DROPPED,), ("peers",)),
    Finder(logins, (LOGIN_EXPIRES,), ("peers", "accounts")),
    Finder(peer_approvals, (PEER_AWAITS_APPROVAL,), ("peers",)),
)

SUBJECT = Subject(__name__, (NETWORK_PEERS,), FAMILIES, FINDERS)
