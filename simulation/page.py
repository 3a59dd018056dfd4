"""A page about one run: its events on a time line, to find the cause of a violation.

`Timeline` collects events while the world runs. The page has no dependency: a script in
it draws the part of the run that the reader chooses.
"""

import json
from html import escape
from pathlib import Path

from msgspec import Struct

from simulation.invariants import Checks
from simulation.run import Run
from simulation.upstream import Request
from simulation.weather import WELL, Spell
from simulation.world import NAMES, World

PAGE = Path(__file__).with_suffix(".html")

SECONDS = 3600.0
"""The part of the run that the page shows at first."""


class Bar(Struct, array_like=True):
    """A state of one row from a time to another, in seconds of the clock."""

    row: str
    begin: float
    end: float | None
    kind: str
    text: str


class Timeline:
    """The bars of a run, and the checks of its invariants.

    Args:
        checks: counts the checked invariants.
    """

    def __init__(self, world: World, checks: Checks) -> None:
        self._world = world
        self._checks = checks
        self._open: dict[str, Bar] = {}
        self._requests: dict[Request, Bar] = {}
        self._spells: dict[Spell, None] = {}
        self._lines = 0
        self.bars: list[Bar] = []
        self.events: list[tuple[float, str, str]] = []

    def look(self) -> None:
        """Note what has changed in this step."""
        world, now = self._world, self._world.seconds()
        up = world.exporter is not None
        self._state("exporter", "up" if up else "down", "runs" if up else "is down")
        self._state("disk", "failed" if world.disk.full else "none", "full")
        away = world.now() - world.clock()
        self._state("wall clock", "failed" if away else "none", f"{away:+.0f} s")
        computing = up and world.exporter.machine.compute_thread.busy  # type: ignore[union-attr]
        self._state("computing", "up" if computing else "none", "computes")
        for spell in world.weather.spells:
            if spell not in self._spells:
                self._spells[spell] = None
                share = f"{spell.share:.0%} of {spell.path or 'all'}"
                text = f"{', '.join(spell.kinds)}: {share} for {spell.account or 'all'}"
                row = f"weather of {spell.account or 'all'}"
                self.bars.append(Bar(row, now, spell.end, "failed", text))
        self._look_at_requests(now)
        for account in NAMES:
            self._look_at(account)

    def note(self, line: str) -> None:
        """Note an event of the history: its time, kind and words."""
        at, _, rest = line.partition(" ")
        kind, _, words = rest.partition(": ")
        if kind != "request":
            self.events.append((float(at), kind, words))

    def _look_at_requests(self, now: float) -> None:
        pending = self._world.upstream.pending
        for request, bar in [*self._requests.items()]:
            if request not in pending:
                bar.end = request.answered_at or now
                del self._requests[request]
        for request in pending:
            if request not in self._requests:
                kind = "up" if request.state == WELL else "failed"
                bar = Bar(f"{request.account} requests", request.at, None, kind, "")
                bar.text = f"{request.path}: {request.state}"
                if request.wait is not None:
                    bar.text += f", Retry-After {request.wait:.0f}"
                self._requests[request] = bar
                self.bars.append(bar)

    def _look_at(self, account: str) -> None:
        known = self._world.known.get(account)
        freshness = {} if known is None else known.network.states
        for row in [row for row in self._open if row.startswith(f"{account} ")]:
            if row.removeprefix(f"{account} ") not in freshness:
                self._state(row, "none", "")
        for name, standing in freshness.items():
            kind, text = "up", "is known"
            if standing.ended_at is None:
                kind, text = "none", ""
            elif standing.withdrawn:
                kind, text = "down", f"withdrawn: {standing.error}"
            elif standing.error is not None:
                kind, text = "failed", f"{standing.error.reason}: {standing.error}"
            elif standing.supported is False:
                kind, text = "absent", "not supported"
            self._state(f"{account} {name}", kind, text)

    def _state(self, row: str, kind: str, text: str) -> None:
        """Begin another state of a row, unless it is the same as before."""
        bar = self._open.get(row)
        if bar is not None and (bar.kind, bar.text) == (kind, text):
            return
        if bar is not None:
            bar.end = self._world.seconds()
            del self._open[row]
        if kind != "none":
            self._open[row] = bar = Bar(row, self._world.seconds(), None, kind, text)
            self.bars.append(bar)

    def write(self, path: Path, done: Run) -> None:
        """Write the page."""
        end = self._world.seconds()
        for bar in self.bars:
            bar.end = end if bar.end is None else min(bar.end, end)
        looks = ", ".join(f"{name} {n}" for name, n in self._checks.counts.items())
        data = {
            "bars": [[b.row, b.begin, b.end, b.kind, b.text] for b in self.bars],
            "events": self.events,
            "end": end,
            "seconds": SECONDS,
            "found": done.found,
        }
        text = (
            PAGE.read_text()
            .replace("SEED", str(done.seed))
            .replace("LOOKS", escape(looks))
        )
        text = text.replace("FOUND", escape(done.found or "no invariant is violated"))
        text = text.replace("STEP", str(done.step))
        encoded = json.dumps(data).replace("</", "<\\/")
        path.write_text(text.replace("DATA", encoded))
