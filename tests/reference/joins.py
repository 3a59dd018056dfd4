"""Values from several resources."""

from tests.reference.fields import Known, Record, flag, ids, objects, text
from tests.reference.page import Settings


def has(known: Known, *resources: str) -> bool:
    return all(resource in known for resource in resources)


def named(records: list[Record]) -> dict[str, Record]:
    """Return records by id."""
    return {text(record, "id"): record for record in records}


def connected(known: Known, peers: set[str]) -> int:
    """Return the number of these peers that are connected."""
    return sum(
        flag(peer, "connected") for peer in known["peers"] if text(peer, "id") in peers
    )


def members(group: Record) -> set[str]:
    return {text(member, "id") for member in objects(group, "peers")}


def routing_peers(known: Known, router: Record) -> set[str]:
    """Return the existing peers behind a router or a route."""
    peers = {text(router, "peer")}
    for group in known["groups"]:
        if text(group, "id") in ids(router, "peer_groups"):
            peers |= members(group)
    return peers & set(named(known["peers"]))


def detailed(known: Known, settings: Settings) -> set[str] | None:
    """Return the peers that may have series of their own; None for all of them."""
    if settings.detail is None:
        return None
    peers: set[str] = set()
    for group in known.get("groups", []):
        if {text(group, "id"), text(group, "name")} & settings.detail:
            peers |= members(group)
    return peers


def shown_peers(known: Known, settings: Settings) -> list[Record]:
    """Return the listed peers that may have series of their own."""
    chosen = detailed(known, settings)
    return [
        peer for peer in known["peers"] if chosen is None or text(peer, "id") in chosen
    ]
