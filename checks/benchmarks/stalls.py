"""Blocks of the event loop: `python -m checks.benchmarks.stalls [PEERS [REFRESHES]]`.

A thread looks at the loop every two milliseconds, and keeps the stacks of all threads
when it is late. A process that only sleeps shows the delays of the machine: what is
late at the same time is not the exporter's.
"""

import argparse
import gc
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryFile

from msgspec import Struct
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall, react

from api_exporter.subjects import watch
from checks.benchmarks import servers
from checks.benchmarks.refreshing import LAG_INTERVAL, Exporter
from checks.benchmarks.scraping import percentile

LATE = 0.01
"""Seconds of lateness whose stacks are kept."""

SLEEPER = """
import sys, time
last = time.monotonic()
while True:
    time.sleep(0.002)
    now = time.monotonic()
    if now - last > 0.004:
        print(last, now, flush=True)
    last = now
"""


class Stall(Struct, frozen=True):
    """A time in which the event loop did nothing else, in seconds."""

    begin: float
    end: float
    stacks: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        return self.end - self.begin - LAG_INTERVAL

    def overlap(self, other: "Stall") -> float:
        return max(0.0, min(self.end, other.end) - max(self.begin, other.begin))


class Recorder:
    """Notes when the loop is late, and where its threads are then."""

    def __init__(self) -> None:
        self.stalls: list[Stall] = []
        self._last = inf
        self._stacks: tuple[str, ...] = ()
        self._loop = LoopingCall(self._look)
        threading.Thread(target=self._watch, name="recorder", daemon=True).start()

    def start(self) -> None:
        gc.callbacks.append(self._collected)
        self._last = time.monotonic()
        self._loop.start(LAG_INTERVAL)

    def stop(self) -> None:
        self._loop.stop()
        self._last = inf

    def _look(self) -> None:
        now = time.monotonic()
        stall = Stall(self._last, now, self._stacks)
        if stall.seconds > LATE / 2:
            self.stalls.append(stall)
        self._last, self._stacks = now, ()

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        """Note a garbage collection: no other thread runs meanwhile."""
        if phase == "stop" and time.monotonic() - self._last > LATE:
            self._stacks += (f"garbage collection, generation {info['generation']}",)

    def _watch(self) -> None:
        while True:
            time.sleep(LAG_INTERVAL)
            if time.monotonic() - self._last > LATE and not self._stacks:
                self._stacks = tuple(_stacks())


def _stacks() -> Iterator[str]:
    for thread in threading.enumerate():
        if thread is threading.current_thread():
            continue
        frame = sys._current_frames().get(thread.ident or 0)
        frames = traceback.extract_stack(frame)[-9:]
        if [f.name for f in frames[-2:]] == ["get", "wait"]:  # an idle worker
            continue
        places = (f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames)
        yield f"{thread.name}: " + " > ".join(places)


async def recorded(url: str, refreshes: int) -> list[list[Stall]]:
    """Return the stalls of each refresh."""
    find = watch.update_findings
    exporter = Exporter(url, {})
    watch.update_findings = find  # which it switches off
    await exporter.refresh_all()
    recorder, found = Recorder(), []
    for _ in range(refreshes):
        exporter.tick()
        recorder.stalls = []
        recorder.start()
        await exporter.refresh_all()
        recorder.stop()
        found.append(recorder.stalls)
    await exporter.client.stopService()
    return found


@contextmanager
def sleeping() -> Iterator[list[Stall]]:
    """Give the delays of a process that only sleeps, after the block."""
    delays: list[Stall] = []
    with TemporaryFile("w+") as output:
        with Popen([sys.executable, "-c", SLEEPER], stdout=output) as process:
            try:
                yield delays
            finally:
                process.kill()
        output.seek(0)
        for line in output:
            begin, end = map(float, line.split())
            delays.append(Stall(begin, end))


def report(refreshes: list[list[Stall]], delays: list[Stall]) -> None:
    """Print the longest stalls, and where the threads were in the exporter's own."""

    def own(stall: Stall) -> float:
        return stall.seconds - sum(stall.overlap(delay) for delay in delays)

    for words, values in (
        ("of a refresh", [max((x.seconds for x in r), default=0.0) for r in refreshes]),
        ("without the machine's", [max(map(own, r), default=0.0) for r in refreshes]),
        ("of a process that only sleeps", [d.seconds for d in delays]),
    ):
        shares = (0.5, 0.99, 0.999, 1.0)
        marks = (percentile(values, s) * 1e3 if values else 0.0 for s in shares)
        print(
            f"longest {words}, p50, p99, p99.9, most:", *(f"{m:.1f} ms" for m in marks)
        )
    long = [stall for refresh in refreshes for stall in refresh if own(stall) > LATE]
    print(f"later than {LATE * 1e3:.0f} ms without the machine: {len(long)}")
    for place, times in Counter(x for s in long for x in s.stacks).most_common(20):
        print(f"{times:5} {place}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m checks.benchmarks.stalls")
    parser.add_argument("peers", type=int, nargs="?", default=10_000)
    parser.add_argument("refreshes", type=int, nargs="?", default=1_000)
    options = parser.parse_args()
    found: list[list[list[Stall]]] = []
    with servers.upstream_and_folder(options.peers) as port, sleeping() as delays:

        async def run() -> None:
            found.append(await recorded(f"http://127.0.0.1:{port}", options.refreshes))

        with suppress(SystemExit):  # with which the reactor ends
            react(lambda _: Deferred.fromCoroutine(run()))
    report(found[0], delays)


if __name__ == "__main__":
    main()
