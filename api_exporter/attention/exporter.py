"""Findings about the exporter: data that it cannot read."""

from collections.abc import Iterator

from api_exporter.attention.finding import Finder, Finding, Snapshot, safe_line
from api_exporter.netbird.resources import UP
from api_exporter.plurals import with_noun


def unreadable_peers(snapshot: Snapshot) -> Iterator[Finding]:
    """Report that the peers cannot be read, or that their metrics are withdrawn."""
    peers = snapshot.freshness.get(UP)
    if peers is None or not snapshot.peers_unreadable:
        return
    is_withdrawn = snapshot.inventory.peers is None
    yield snapshot.finding(
        "ApiExporterUpstreamFailing",
        "The peers",
        "cannot be read from the NetBird API: their metrics are missing."
        if is_withdrawn
        else "cannot be read from the NetBird API: their metrics are old.",
        since=peers.failing_since or peers.last_success,
    )


def fleet_drop(snapshot: Snapshot) -> Iterator[Finding]:
    """Report that many peers went offline at once."""
    if snapshot.drop_at is not None:
        peers = snapshot.inventory.peers or ()
        connected = sum(peer.connected for peer in peers)
        yield snapshot.finding(
            "NetBirdFleetDropped",
            "Many peers",
            f"lost their connection within ten minutes: {connected:,} of"
            f" {with_noun(len(peers), 'peer')} are connected.",
            since=snapshot.drop_at,
        )


def rejected_records(snapshot: Snapshot) -> Iterator[Finding]:
    """Report records that are left out because they cannot be read."""
    for name, state in snapshot.freshness.items():
        if state.last_success is not None and state.rejected:
            yield snapshot.finding(
                "ApiExporterRecordsRejected",
                f"Resource {name}",
                f"has {with_noun(state.rejected, 'unreadable record')}, left out of"
                " the metrics: its counts are too small.",
            )


def unwatched_token(snapshot: Snapshot) -> Iterator[Finding]:
    """Report that the expiry date of the exporter's token is unknown."""
    tokens = snapshot.freshness.get("access_tokens")
    if tokens is not None and tokens.supported is False:
        yield snapshot.finding(
            "ApiExporterTokenNotWatched",
            "The exporter's token",
            "has an unknown expiry date: no alert warns before the token expires.",
        )


def limited_user(snapshot: Snapshot) -> Iterator[Finding]:
    """Report that the token's user may not read everything."""
    inventory = snapshot.inventory
    missing = [name for name in snapshot.freshness if name in inventory.withheld]
    if not (inventory.partial_peers or missing):
        return
    sentences = [
        f"has the role {safe_line(inventory.role)} and may not read everything."
    ]
    if inventory.partial_peers:
        sentences.append("The list of peers may be incomplete.")
    if missing:
        sentences.append(f"The exporter withholds {', '.join(missing)}.")
    sentences.append("Use the token of a service user with the role auditor.")
    yield Finding(
        severity="warning", object="The token's user", message=" ".join(sentences)
    )


def missing_detail_groups(snapshot: Snapshot) -> Iterator[Finding]:
    """Report groups that PEER_DETAIL names and that do not exist."""
    for name in snapshot.inventory.missing_groups:
        yield Finding(
            severity="warning",
            object=f"Group {safe_line(name)}",
            message="does not exist, but PEER_DETAIL names it.",
        )


ROWS = (
    Finder(unreadable_peers),
    Finder(fleet_drop, ("peers",)),
    Finder(limited_user),
    Finder(missing_detail_groups, ("groups",)),
    Finder(unwatched_token),
    Finder(rejected_records),
)
