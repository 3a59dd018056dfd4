"""What must hold, whatever happens: the table of invariants."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from simulation.knowledge import Knowledge
from simulation.world import QUARTER, Violation, World


class Invariant(Struct, frozen=True):
    """One of them.

    Attributes:
        document: that promises it.
        promise: the same in words.
        check: what is wrong, a text each.
        every: seconds between two looks; 0 for each step.
    """

    name: str
    document: str
    promise: str
    check: Callable[[World], Iterator[str]]
    every: float = 0.0


def _changed(world: World) -> Iterator[tuple[str, Knowledge]]:
    return ((name, known) for name, known in world.known.items() if known.touched)


def _up(world: World) -> Iterator[str]:
    for account, known in _changed(world):
        for name, standing in known.network.telemetry.standings.items():
            if standing.up and name not in known.read_at:
                yield f"{account}: {name} is up, and nothing is known of it"


def _age(world: World) -> Iterator[str]:
    for account, known in world.known.items():
        standings = known.network.telemetry.standings
        for name, at in known.read_at.items():
            if name in standings:
                age = world.seconds() - at
                most = known.longest(name)
                if age > most + 1.0:
                    yield f"{account}: {name} is {age:.0f} s old, {most:.0f} are allowed"


def _pages(world: World) -> Iterator[str]:
    for account, known in world.known.items():
        # What was known at the clock's last jump may tell of another day.
        if known.since(world.jumped) and known.changed():
            for words in (
                known.stale(),
                known.unlike_a_fresh_one(),
                known.unlike_the_reference(),
            ):
                if words:
                    yield f"{account}: {words}"


def _errors(world: World) -> Iterator[str]:
    yield from world.history.errors


INVARIANTS = (
    Invariant(
        "up",
        "docs/metrics.md",
        "`netbird_api_up` and `api_exporter_resource_up` are never 1 over nothing.",
        _up,
    ),
    Invariant("errors", "docs/operations.md", "No error is left unhandled.", _errors),
    Invariant(
        "age",
        "docs/configuration.md",
        "Nothing is published that is older than `METRICS_MAX_AGE`.",
        _age,
        60.0,
    ),
    Invariant(
        "pages",
        "docs/decisions/0017-a-page-is-made-of-the-one-before.md",
        "A page is byte for byte what its inventory renders anew, has the lines of a"
        " process that starts now, and the values of the plain reference.",
        _pages,
        QUARTER,
    ),
)


class Checks:
    """All of them, each when it is its time."""

    def __init__(self) -> None:
        self._next = dict.fromkeys((i.name for i in INVARIANTS), 0.0)
        self.made = 0

    def look(self, world: World) -> None:
        """Raises Violation."""
        now = world.seconds()
        for known in world.known.values():
            known.look(now)
        for invariant in INVARIANTS:
            if invariant.every:
                if now < self._next[invariant.name]:
                    continue
                self._next[invariant.name] = now + invariant.every
            self.made += 1
            for words in invariant.check(world):
                raise Violation(invariant.name, words)
        for known in world.known.values():
            known.touched = False
