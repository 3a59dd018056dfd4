"""Outages one after the other, and their costs.

Each outage begins a quarter of an hour to two hours after the previous one, and
lasts from five seconds to six hours. NetBird's limiter is on.
"""

from collections.abc import Mapping
from random import Random

from msgspec import Struct

from tests.parts import limiter as bucket
from tests.weather import HUNG, REFUSED, START, WELL, World

HOUR = 3600.0
KINDS = (REFUSED, HUNG, 502, 503, 401, 429, 404)
SETTLED = 15 * 60.0
"""Seconds after an outage for which ages are looked at."""


class Outage(Struct, frozen=True):
    """One state of the upstream between two times, in seconds since the start."""

    begin: float
    end: float
    state: int


def outages(seed: int, length: float) -> list[Outage]:
    chance = Random(seed)
    found: list[Outage] = []
    at = 0.0
    while True:
        at += chance.uniform(0.25 * HOUR, 2 * HOUR)
        lasting = 5.0 * (6 * HOUR / 5.0) ** chance.random()
        if at + lasting + HOUR > length:
            return found
        found.append(Outage(at, at + lasting, chance.choice(KINDS)))
        at += lasting


class Findings(Struct):
    """The results of an exporter in these outages.

    Attributes:
        per_minute: requests that reached a failing upstream, for each minute.
        refused: requests that the limiter refused while the upstream was well.
        peers: seconds from the end of each outage to the peers' first good answer.
        others: seconds from then until all others had been read again. Both with the
            state of the upstream in the outage.
    """

    per_minute: float
    refused: int
    peers: list[tuple[int, float]]
    others: list[tuple[int, float]]


def lived(bad: list[Outage], seed: int) -> Findings:
    """Simulate the outages, and the hour after them."""

    def weather(_path: str, now: float) -> int:
        states = (o.state for o in bad if o.begin <= now < o.end)
        return next(states, WELL)

    world = World(weather, seed=seed, limiter=bucket(6, 60)).start()
    peers: list[tuple[int, float]] = []
    others: list[tuple[int, float]] = []
    for outage in bad:
        world.until(outage.begin)
        ended = {n: s.ended_at for n, s in world.telemetry.freshness.items()}
        world.until(outage.end)
        fresh = _fresh(world, outage, ended)
        peers.append((outage.state, fresh["peers"]))
        others.append((outage.state, max(fresh.values()) - fresh["peers"]))
    world.until(bad[-1].end + HOUR)
    down = sum(outage.end - outage.begin for outage in bad)
    reached = [at for at, _, code in world.requests if weather("", at) != WELL]
    refused = sum(
        code == 429 and weather("", at) == WELL for at, _, code in world.requests
    )
    return Findings(len(reached) / down * 60, refused, peers, others)


def _fresh(
    world: World, outage: Outage, ended: Mapping[str, float | None]
) -> dict[str, float]:
    """Return the seconds after its end at which each affected resource was well."""
    touched = {
        name
        for name, standing in world.telemetry.freshness.items()
        if name == "peers"
        or standing.up is not True
        or standing.ended_at != ended[name]
        or standing.state(world.now()) != "fresh"
    }
    fresh: dict[str, float] = {}
    while touched - fresh.keys():
        passed = world.clock.seconds() - outage.end
        for name in touched - fresh.keys():
            standing = world.telemetry.freshness[name]
            success = standing.last_success or 0.0
            if standing.up and success >= START + outage.end:
                fresh[name] = passed
        if passed > SETTLED:
            return {**dict.fromkeys(touched, SETTLED), **fresh}
        world.until(world.clock.seconds() + 0.5)
    return fresh
