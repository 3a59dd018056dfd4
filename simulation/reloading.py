"""Reload again and again while the disk hangs, and check all invariants.

`python -m simulation.reloading --reloads 500` changes settings of all kinds. Then some
calm hours show which lines the logs lack for ever. It prints the kinds, the lines of
the logs, open files and threads, and the first violation.
"""

import argparse
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import ClassVar

from twisted.logger import globalLogBeginner

from simulation.reloads import SLOW, intervals
from simulation.run import run
from simulation.world import HOUR, MINUTE, NAMES, World

_INTERVAL = 5 * MINUTE
"""Mean seconds between two reloads."""

_SHARE = 0.3
"""The probability of a reload in each step while a write hangs."""

_EVENTS_INTERVAL = 20.0
"""Seconds between two requests for the audit events. Many writes hang for longer, so
the log of a replaced account and the new one would write at once."""

_CALM = 8 * HOUR
"""Seconds without trouble at the end. The longest failures of the API last half of
them, and all events must be in the logs some time later."""

_MAX_DAYS = 10.0


class ReloadingWorld(World):
    """A world with many reloads and hanging writes.

    Attributes:
        reloads: the number of reloads before the end of a run.
        kinds: the changes of settings, by kind.
        hung_count: how many reloads came while a write hung.
        found: what is open at the end of a run.
    """

    reloads = 500
    kinds: ClassVar = Counter[str]()
    hung_count = 0
    found = ""
    _calm_at: float | None = None

    def _configure(self) -> None:
        super()._configure()
        self.files.events_interval = _EVENTS_INTERVAL
        for name in NAMES:
            factor = self._chance.choice(SLOW)
            line = intervals(factor, _EVENTS_INTERVAL)
            self.files.lines[name]["REFRESH_INTERVALS"] = line
            self.files.write(name)

    def _plan_repeated(self, kind: str, mean: float, action: Callable[[], str]) -> None:
        super()._plan_repeated(
            kind, mean, lambda: action() if self._calm_at is None else "calm"
        )

    def _plan_events(self) -> None:
        super()._plan_events()
        self._plan_repeated("reload", _INTERVAL, self._change_settings)
        self._plan_repeated("hang", 3 * _INTERVAL, self._hang_disk)
        self._plan_repeated("events", MINUTE, self._add_events)

    def _change_settings(self) -> str:
        cls = type(self)
        cls.hung_count += bool(self.disk.hanging)
        done = super()._change_settings()
        cls.kinds[_kind(done)] += self.exporter is not None
        return done

    def run(self) -> Iterator[int]:
        for step in super().run():
            yield step
            if self._calm_at is not None:
                if self.seconds() >= self._calm_at + _CALM:
                    break
            elif self.kinds.total() >= self.reloads:
                self._calm_at = self.seconds()
                self.upstream.limits.clear()
            elif self.disk.hanging and self._chance.random() < _SHARE:
                self.history.note("reload", self._change_settings())
        lines = {name: len(log.read()[0]) for name, log in self.logs.items()}
        files, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
        type(self).found = (
            f"lines {lines}; {files} descriptors, {len(self.disk.descriptors)} of logs;"
            f" {threads} threads, {len(self.disk.hanging)} of hanging writes"
        )


def _kind(words: str) -> str:
    """Return the kind of a change from its description."""
    for mark in ("removed", "mistake", "another one", "thresholds", "no log"):
        if mark in words:
            return mark
    if "=" in words:
        return words.rpartition(": ")[2].partition("=")[0]
    return words.partition(" ")[0].partition(".")[2] + " moves"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m simulation.reloading", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reloads", type=int, default=ReloadingWorld.reloads)
    options = parser.parse_args()
    globalLogBeginner.beginLoggingTo([], redirectStandardIO=False, discardBuffer=True)
    ReloadingWorld.reloads = options.reloads
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    done = run(options.seed, _MAX_DAYS, world_type=ReloadingWorld)
    print(f"before: {before[0]} descriptors, {before[1]} threads")
    print(
        f"{ReloadingWorld.kinds.total()} reloads in {done.days:.2f} days,"
        f" {ReloadingWorld.hung_count} while a write hung, {done.seconds:.0f} s"
    )
    print(", ".join(f"{n} {kind}" for kind, n in sorted(ReloadingWorld.kinds.items())))
    print(ReloadingWorld.found)
    print(done.found or "all invariants hold")
    sys.exit(bool(done.found))


if __name__ == "__main__":
    main()
