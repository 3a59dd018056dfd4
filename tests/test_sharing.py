"""Whole accounts with one token: no account harms another."""

from collections.abc import Mapping
from itertools import pairwise

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.refresh.budget import Budget
from api_exporter.refresh.rate_limits import RateLimit, fit_intervals
from api_exporter.settings import parsers
from api_exporter.subjects.selection import selection
from api_exporter.subjects.table import RULES
from tests.parts import limiter as bucket
from tests.weather import HUNG, WELL, Weather, World, events_until

HOUR = 3600.0
DEFAULT = selection(parsers.collectors("default"), {}).periods


def fine(_path: str, _now: float) -> int:
    return WELL


class Neighbours:
    """Accounts on one clock, with one token and one stated limit.

    Attributes:
        worlds: the accounts.
        oldest: the maximum age of each account's peers, in seconds.
    """

    def __init__(
        self, weathers: list[Weather], *, limit: RateLimit | None = None
    ) -> None:
        self.clock = Clock()
        limiter = None if limit is None else bucket(*limit)
        self.budget = Budget(limit=limit)
        intervals: list[Mapping[str, float]] = [DEFAULT for _ in weathers]
        self.worlds = [
            World(
                weather,
                seed=seed,
                limiter=limiter,
                clock=self.clock,
                budget=self.budget,
                intervals=DEFAULT
                if limit is None
                else fit_intervals(intervals, limit)[seed],
            )
            for seed, weather in enumerate(weathers)
        ]
        self.oldest = [0.0 for _ in weathers]

    def start(self) -> "Neighbours":
        for world in self.worlds:
            world.start()
        return self

    def until(self, end: float) -> "Neighbours":
        for _ in events_until(self.clock, end):
            for number, world in enumerate(self.worlds):
                age = world.age("peers")
                age = self.clock.seconds() if age is None else age
                self.oldest[number] = max(self.oldest[number], age)
        return self

    def stop(self) -> None:
        for world in self.worlds:
            world.stopService()

    @property
    def requests(self) -> list[tuple[float, str, int]]:
        return sorted(request for world in self.worlds for request in world.requests)


class SharingTests(SynchronousTestCase):
    def test_stated(self) -> None:
        """Three accounts with the limit stated: no refusal."""
        near = Neighbours([fine] * 3, limit=(6, 30)).start()
        near.until(2 * HOUR)
        self.assertEqual({WELL}, {code for *_, code in near.requests})
        self.assertLess(max(near.oldest), 100.0)
        for world in near.worlds:
            self.assertEqual([], world.unread_since(0.0))
            for name, standing in world.states.items():
                self.assertFalse(standing.withdrawn, name)

    def test_pause(self) -> None:
        """A 429 for one pauses all; after it the peers of all go first."""
        refused: Weather = lambda _, now: 429 if 100 < now < 140 else WELL  # noqa: E731
        near = Neighbours([refused, *([fine] * 3)])
        near.worlds[0].agent.retry_after = 50
        near.start().until(400.0)
        [begin] = [at for at, _, code in near.requests if code == 429]
        after = [(at, path) for at, path, _ in near.requests if at > begin + 0.2]
        self.assertGreaterEqual(after[0][0], begin + 50.0)
        self.assertEqual(["api/peers"] * 4, [path for _, path in after[:4]])
        self.assertLess(max(near.oldest), 160.0)

    def test_stopped(self) -> None:
        """An account that stops during a request frees its slots for others."""
        near = Neighbours([lambda *_: HUNG] * 4 + [fine] * 2).start()
        near.until(0.1)
        paths = {path for _, path, _ in near.requests}
        self.assertEqual({"api/peers"}, paths)
        self.assertIsNone(near.worlds[4].age("peers"))
        near.worlds[0].stopService()
        near.until(1.0)
        for world in near.worlds[4:]:
            self.assertIsNotNone(world.age("peers"))
        near.stop()
        near.until(2.0)
        self.assertEqual([], near.clock.getDelayedCalls())
        self.assertEqual({}, near.budget._offers)

    def test_no_slot_is_idle(self) -> None:
        """While many wait, requests follow each other without a gap."""
        near = Neighbours([fine] * 30).start().until(20.0)
        times = [at for at, path, _ in near.requests if path != "api/peers"]
        asked = DEFAULT.keys() - {"peers", *RULES.dormant_without}
        self.assertGreaterEqual(len(times), 30 * len(asked))
        self.assertLess(max(b - a for a, b in pairwise(times)), 0.06)
