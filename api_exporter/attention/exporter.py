"""What the exporter itself cannot see."""

from collections.abc import Iterator

from api_exporter.attention.finding import Finding, Snapshot, counted, plain
from api_exporter.netbird.resources import UP

PARTIAL = (
    "The list of peers may be partial: the token belongs to a person with the role"
    " user, to whom the upstream shows nobody else's peers. Use the token of a service"
    " user."
)
"""What that means, and what to do about it."""


def blind(snapshot: Snapshot) -> Iterator[Finding]:
    """Peers that cannot be read, or are withdrawn."""
    peers = snapshot.standings.get(UP)
    if peers is None or not snapshot.blind:
        return
    gone = snapshot.inventory.peers is None
    yield snapshot.finding(
        "ApiExporterUpstreamFailing",
        "Peers",
        "They cannot be read, so nothing is known of them now."
        if gone
        else "They cannot be read: what is known of them is old.",
        since=peers.failing_since or peers.last_success,
    )


def fleet(snapshot: Snapshot) -> Iterator[Finding | None]:
    """Many peers that were lost at once."""
    yield from snapshot.gather()
    if snapshot.fallen is not None:
        connected = sum(peer.connected for peer in snapshot.peers.values())
        yield snapshot.finding(
            "NetBirdFleetDropped",
            "Peers",
            f"Many lost their connection at once: {connected:,} of"
            f" {counted(len(snapshot.peers), 'peer')} are connected.",
            since=snapshot.fallen,
        )


def rejected(snapshot: Snapshot) -> Iterator[Finding]:
    """Records that cannot be read and are left out."""
    for name, standing in snapshot.standings.items():
        if standing.last_success is not None and standing.rejected:
            yield snapshot.finding(
                "ApiExporterRecordsRejected",
                f"Resource {name}",
                f"{counted(standing.rejected, 'record')} of it cannot be read and"
                " left out.",
            )


def unwatched(snapshot: Snapshot) -> Iterator[Finding]:
    """A token whose end cannot be seen."""
    tokens = snapshot.standings.get("access_tokens")
    if tokens is not None and tokens.supported is False:
        yield snapshot.finding(
            "ApiExporterTokenNotWatched",
            "The exporter's token",
            "Its end cannot be seen: nothing will warn before it expires.",
        )


def partial(snapshot: Snapshot) -> Iterator[Finding]:
    """A list of peers that may not hold all of them."""
    if snapshot.inventory.partial:
        yield Finding(severity="warning", object="Peers", message=PARTIAL)


def detail(snapshot: Snapshot) -> Iterator[Finding]:
    """Groups whose peers should have series of their own."""
    for name in snapshot.inventory.missing_groups:
        yield Finding(
            severity="warning",
            object=f"Group {plain(name)}",
            message="PEER_DETAIL names it, but no group has that name or id.",
        )
