"""The first refreshes of an account: each resource is read once, as after a start."""

from collections.abc import Iterator

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from api_exporter.netbird.resources import PEERS
from api_exporter.refresh.network import AccountNetwork

MAX_SECONDS = 60.0
"""The maximum seconds of all first refreshes: the rest is named, not read."""

UNREAD = 3
"""The status of an account whose peers could not be read."""

_POLL_SECONDS = 0.02

_SOON_SECONDS = 2.0
"""Seconds within which a list that findings wait for is read again."""


async def first_refreshes(network: AccountNetwork, clock: IReactorTime) -> None:
    """Wait until a network that has started has read what it can.

    This ends early if the peers cannot be read: no other resource is, then.
    Findings are evaluated once more after the last refresh.
    """
    end, evaluated = clock.seconds() + MAX_SECONDS, None
    while clock.seconds() < end:
        inventory = network.inventory
        if inventory is not evaluated and not _is_reading(network, clock.seconds()):
            evaluated = inventory
            await network.update_findings(PEERS)
            if _has_failed(network) or not network.findings.found.kept_back:
                return
        await deferLater(clock, _POLL_SECONDS)
    await network.update_findings(PEERS)


def _has_failed(network: AccountNetwork) -> bool:
    peers = network.states[PEERS]
    return peers.error is not None and peers.ended_at is not None


def _is_reading(network: AccountNetwork, now: float) -> bool:
    if _has_failed(network):
        return False
    peers = network.states[PEERS]
    if peers.word(now) == "starting" or any(True for _ in unread(network)):
        return True
    awaited = network.findings.awaited
    return any(
        one.began is not None
        or (name in awaited and one.due is not None and one.due < now + _SOON_SECONDS)
        for name, one in network.states.every.items()
    )


def unread(network: AccountNetwork) -> Iterator[str]:
    """Yield the resources that are still to be read, or have a part that is."""
    states = network.states
    for resource in network.selection.resources:
        known = states.get(resource.name)
        path = network.pipeline.request_path(resource)
        if (
            (known is None or known.ended_at is None or known.path != path)
            and not network.inventory.dormant(resource.name)
            and path is not None
            and not network.is_held_back(resource)
        ):
            yield resource.name


def strict_status(network: AccountNetwork) -> int:
    """Return UNREAD without peers, 2 for a critical finding, 1 for less, else 0."""
    states, found = network.states, network.findings.found
    if not states[PEERS].up:
        return UNREAD
    if found.counts.get("critical"):
        return 2
    held_back = {
        resource.name
        for resource in network.selection.resources
        if network.is_held_back(resource)
    }
    failing = any(one.error is not None for one in states.values())
    is_unread = failing or found.kept_back or {*found.unknown} - held_back
    return 1 if found.counts.get("warning") or is_unread else 0
