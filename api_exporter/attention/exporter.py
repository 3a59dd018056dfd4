"""What the exporter itself cannot see."""

from collections.abc import Iterator

from api_exporter.attention.finding import Finding, Seen, counted, plain
from api_exporter.netbird.resources import UP

PARTIAL = (
    "The list of peers may be partial: the token belongs to a person with the role"
    " user, to whom the upstream shows nobody else's peers. Use the token of a service"
    " user."
)
"""What that means, and what to do about it."""


def blind(seen: Seen) -> Iterator[Finding]:
    """Peers that cannot be read, or are withdrawn."""
    peers = seen.standings.get(UP)
    if peers is None or not seen.blind:
        return
    gone = seen.inventory.peers is None
    yield seen.finding(
        "ApiExporterUpstreamFailing",
        "Peers",
        "They cannot be read, so nothing is known of them now."
        if gone
        else "They cannot be read: what is known of them is old.",
        since=peers.failing_since or peers.last_success,
    )


def fleet(seen: Seen) -> Iterator[Finding | None]:
    """Many peers that were lost at once."""
    yield from seen.gather()
    if seen.fallen is not None:
        connected = sum(peer.connected for peer in seen.peers.values())
        yield seen.finding(
            "NetBirdFleetDropped",
            "Peers",
            f"Many lost their connection at once: {connected:,} of"
            f" {counted(len(seen.peers), 'peer')} are connected.",
            since=seen.fallen,
        )


def rejected(seen: Seen) -> Iterator[Finding]:
    """Records that cannot be read and are left out."""
    for name, standing in seen.standings.items():
        if standing.last_success is not None and standing.rejected:
            yield seen.finding(
                "ApiExporterRecordsRejected",
                f"Resource {name}",
                f"{counted(standing.rejected, 'record')} of it cannot be read and"
                " left out.",
            )


def unwatched(seen: Seen) -> Iterator[Finding]:
    """A token whose end cannot be seen."""
    tokens = seen.standings.get("access_tokens")
    if tokens is not None and tokens.supported is False:
        yield seen.finding(
            "ApiExporterTokenNotWatched",
            "The exporter's token",
            "Its end cannot be seen: nothing will warn before it expires.",
        )


def partial(seen: Seen) -> Iterator[Finding]:
    """A list of peers that may not hold all of them."""
    if seen.inventory.partial:
        yield Finding(severity="warning", object="Peers", words=PARTIAL)


def detail(seen: Seen) -> Iterator[Finding]:
    """Groups whose peers should have series of their own."""
    for name in seen.inventory.missing_groups:
        yield Finding(
            severity="warning",
            object=f"Group {plain(name)}",
            words="PEER_DETAIL names it, but no group has that name or id.",
        )
