"""The exporter: what it cannot read, and its certificates."""

from collections.abc import Iterator

from api_exporter.attention.finding import Finder, Finding, FindingKind, Snapshot
from api_exporter.attention.thresholds import DAY, SOON
from api_exporter.formatting import safe_line, with_noun
from api_exporter.netbird.bodies import DocumentDecoder
from api_exporter.netbird.records import CurrentUser
from api_exporter.netbird.resources import CURRENT_USER, PEERS, Resource
from api_exporter.subjects import Subject

# No collector reads it.
TOKEN_USER = Resource(
    CURRENT_USER, "api/users/current", DocumentDecoder(CurrentUser), place=1
)

UPSTREAM_FAILING = FindingKind(
    "ApiExporterUpstreamFailing",
    "The peers",
    lasts="5m",
    summary="The peers cannot be read from the NetBird API",
    description="{{ $labels.instance }} has read no peers from the NetBird API for"
    " five minutes. Its status page names the reason.",
)
USER_RESTRICTED = FindingKind("ApiExporterUserRestricted", "The token's user")
DETAIL_GROUP_MISSING = FindingKind("ApiExporterDetailGroupMissing", "Group", "group")
RECORDS_REJECTED = FindingKind(
    "ApiExporterRecordsRejected",
    "Resource",
    "resource",
    lasts="30m",
    summary="Resource {{ $labels.resource }} has unreadable records",
    description="{{ $labels.instance }} leaves unreadable records of {{"
    " $labels.resource }} out of the metrics.",
    own_labels=(("resource", "object", "(.+)"),),
)
UPSTREAM_CERTIFICATE_EXPIRES = FindingKind(
    "ApiExporterUpstreamCertificateExpiresSoon",
    "The certificate of the NetBird API",
    lasts="1h",
    summary="The certificate of the NetBird API expires soon",
    description="The certificate that {{ $labels.instance }} sees expires soon, or has"
    " expired.",
)
CLIENT_CERTIFICATE_EXPIRES = FindingKind(
    "ApiExporterClientCertificateExpiresSoon",
    "The exporter's client certificate",
    lasts="1h",
    summary="The exporter's client certificate expires soon",
    description="The client certificate of {{ $labels.instance }} expires soon, or has"
    " expired.",
)


def unreadable_peers(snapshot: Snapshot) -> Iterator[Finding]:
    peers = snapshot.states.get(PEERS)
    if peers is None or not snapshot.peers_unreadable:
        return
    is_withdrawn = snapshot.inventory.peers is None
    yield snapshot.finding(
        UPSTREAM_FAILING,
        "cannot be read from the NetBird API: their metrics are missing."
        if is_withdrawn
        else "cannot be read from the NetBird API: their metrics are old.",
        since=peers.failing_since or peers.last_success,
    )


def limited_user(snapshot: Snapshot) -> Iterator[Finding]:
    inventory = snapshot.inventory
    missing = [name for name in snapshot.states if name in inventory.withheld]
    if missing:
        role = safe_line(inventory.role)
        has_role = f"has the role {role} and " if role else ""
        yield snapshot.finding(
            USER_RESTRICTED,
            f"{has_role}may not read everything. The exporter withholds"
            f" {', '.join(missing)}. Use the token of a service user with the role"
            " auditor.",
        )


def missing_detail_groups(snapshot: Snapshot) -> Iterator[Finding]:
    for name in snapshot.inventory.missing_groups:
        yield snapshot.finding(
            DETAIL_GROUP_MISSING,
            "does not exist, but PEER_DETAIL names it.",
            object_id=name,
            name=name,
        )


def rejected_records(snapshot: Snapshot) -> Iterator[Finding]:
    for name, state in snapshot.states.items():
        if state.last_success is not None and state.rejected:
            yield snapshot.finding(
                RECORDS_REJECTED,
                f"has {with_noun(state.rejected, 'unreadable record')}, left out of"
                " the metrics: its counts are too small.",
                object_id=name,
                name=name,
            )


def certificates(snapshot: Snapshot) -> Iterator[Finding]:
    now, limit = snapshot.now, snapshot.thresholds.days["certificate_soon"] * DAY
    server, client = snapshot.server_certificate, snapshot.client_certificate
    if server is not None and server.is_near_end(now, limit, SOON):
        yield snapshot.finding(
            UPSTREAM_CERTIFICATE_EXPIRES,
            "expires soon: peers and this exporter cannot connect after that."
            if server.ends_at > now
            else "has expired: peers and this exporter cannot connect.",
            until=server.ends_at,
        )
    if client is not None and client.is_near_end(now, limit, SOON):
        yield snapshot.finding(
            CLIENT_CERTIFICATE_EXPIRES,
            "expires soon: the gateway of the NetBird API refuses requests after that."
            if client.ends_at > now
            else "has expired: the gateway of the NetBird API refuses requests.",
            until=client.ends_at,
        )


FINDERS = (
    Finder(unreadable_peers, (UPSTREAM_FAILING,)),
    Finder(limited_user, (USER_RESTRICTED,)),
    Finder(missing_detail_groups, (DETAIL_GROUP_MISSING,), ("groups",)),
    Finder(rejected_records, (RECORDS_REJECTED,)),
    Finder(certificates, (UPSTREAM_CERTIFICATE_EXPIRES, CLIENT_CERTIFICATE_EXPIRES)),
)

SUBJECT = Subject(__name__, (TOKEN_USER,), finders=FINDERS)
