"""When what is asked for, on a time that is only a number."""

from collections.abc import Callable, Mapping
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.demo.limiter import Limiter
from api_exporter.netbird.resources import RESOURCES
from api_exporter.refresh.schedule import AT_ONCE, Schedule, max_age

HOUR = 3600.0
DAY = 24 * HOUR

PERIODS = {"peers": 30.0, "groups": 300.0, "users": 600.0}

BUSY_PERIODS = {"peers": 10.0, "groups": 20.0, "users": 30.0, "routes": 40.0}

DEFAULT_PERIODS = {r.name: r.period for r in RESOURCES if r.name != "events"}


def fresh(chance: float = 0.5) -> Schedule:
    """At its very start, with periods that are not spread unless chance says so."""
    return Schedule(PERIODS, now=0.0, jitter=lambda: chance)


def settled(chance: float = 0.5) -> Schedule:
    """After a first round at 0 that took no time."""
    schedule = fresh(chance)
    for name in PERIODS:
        assert schedule.take(0.0) == name
        schedule.refreshed(name, 0.0)
    return schedule


def taken(schedule: Schedule, now: float) -> list[str]:
    """All that can be taken at one instant."""
    return list(iter(lambda: schedule.take(now), None))


class FirstRoundTests(SynchronousTestCase):
    def test_one_after_the_other(self) -> None:
        """The first resource goes ahead, the others follow one by one."""
        schedule = fresh()
        self.assertEqual("peers", schedule.first)
        self.assertEqual(["peers"], taken(schedule, 0.0))
        self.assertIsNone(schedule.wake_at())
        schedule.refreshed("peers", 2.0)
        self.assertEqual(["groups"], taken(schedule, 2.0))
        schedule.refreshed("groups", 3.0)
        self.assertEqual(["users"], taken(schedule, 3.0))

    def test_whatever_ends(self) -> None:
        """The next one follows however its predecessor has ended."""
        schedule = fresh()
        self.assertEqual(["peers"], taken(schedule, 0.0))
        schedule.unsupported("peers", 1.0)
        self.assertEqual(["groups"], taken(schedule, 1.0))
        schedule.skipped("groups", 2.0)
        self.assertEqual(["users"], taken(schedule, 2.0))

    def test_limited(self) -> None:
        """Where the first one is refused the second follows after the pause."""
        schedule = fresh()
        self.assertEqual(["peers"], taken(schedule, 0.0))
        schedule.rate_limited("peers", 1.0, None)
        self.assertEqual([], taken(schedule, 60.9))
        self.assertEqual(["peers", "groups"], taken(schedule, 61.0))


class PeriodTests(SynchronousTestCase):
    def test_period(self) -> None:
        """A refresh begins a period after the one before it began."""
        schedule = settled()
        self.assertEqual(30.0, schedule.wake_at())
        self.assertEqual([], taken(schedule, 29.9))
        self.assertEqual(["peers"], taken(schedule, 30.0))
        schedule.refreshed("peers", 35.0)
        self.assertEqual(60.0, schedule.wake_at())

    def test_spread(self) -> None:
        """Chance moves a period by a tenth to either side."""
        for chance, due in ((0.0, 27.0), (1.0, 33.0)):
            self.assertAlmostEqual(due, settled(chance).wake_at())

    def test_slow(self) -> None:
        """A refresh that takes long is followed by half a period's rest."""
        for end, due in ((15.0, 30.0), (25.0, 40.0), (100.0, 115.0)):
            schedule = fresh()
            schedule.take(0.0)
            schedule.refreshed("peers", end)
            self.assertEqual(["groups"], taken(schedule, end))
            self.assertEqual(due, schedule.wake_at())

    def test_unsupported(self) -> None:
        """A path that the upstream does not have is asked for again an hour later."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        schedule.refreshed("peers", 300.0)
        schedule.unsupported("groups", 310.0)
        self.assertEqual(["peers", "users"], taken(schedule, 310.0 + HOUR - 1))
        schedule.refreshed("peers", 310.0 + HOUR - 1)
        schedule.refreshed("users", 310.0 + HOUR - 1)
        self.assertEqual(310.0 + HOUR, schedule.wake_at())
        self.assertEqual(["groups"], taken(schedule, 310.0 + HOUR))

    def test_doubted(self) -> None:
        """When it was said wrongly, it is asked for again as often as usual."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        schedule.unsupported("groups", 310.0)
        schedule.refreshed("peers", 310.0)
        schedule.doubted(320.0)
        self.assertNotIn("groups", taken(schedule, 619.0))
        self.assertIn("groups", schedule._due)
        schedule.refreshed("peers", 619.0)
        schedule.refreshed("users", 619.0)
        self.assertEqual(["groups"], taken(schedule, 620.0))

    def test_skipped(self) -> None:
        """What could not be asked for is due again after its period."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        schedule.skipped("groups", 300.0)
        schedule.refreshed("peers", 300.0)
        self.assertEqual(["peers"], taken(schedule, 599.0))
        schedule.refreshed("peers", 599.0)
        self.assertEqual(["users", "groups"], taken(schedule, 600.0))

    def test_two_at_once(self) -> None:
        """Two are under way at most; the first resource goes before older ones."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 1000.0))
        self.assertIsNone(schedule.wake_at())
        schedule.refreshed("groups", 1001.0)
        self.assertEqual(["users"], taken(schedule, 1001.0))
        schedule.refreshed("peers", 1002.0)
        self.assertEqual(1030.0, schedule.wake_at())


class PauseTests(SynchronousTestCase):
    def limited(self, schedule: Schedule, now: float) -> float:
        """The pause after the first resource has been refused at such a time."""
        self.assertIn("peers", taken(schedule, now))
        return schedule.rate_limited("peers", now, None)

    def test_silence(self) -> None:
        """For a minute after a refusal nothing at all is asked for."""
        schedule = settled()
        self.assertEqual(60.0, self.limited(schedule, 299.0))
        self.assertEqual([], taken(schedule, 358.9))
        self.assertEqual(359.0, schedule.wake_at())
        self.assertEqual(["peers", "groups"], taken(schedule, 359.0))

    def test_doubling(self) -> None:
        """Each further refusal doubles the pause, up to four minutes."""
        schedule, now, pauses = settled(), 30.0, []
        for _ in range(4):
            pauses.append(self.limited(schedule, now))
            now += pauses[-1]
        self.assertEqual([60.0, 120.0, 240.0, 240.0], pauses)

    def test_back(self) -> None:
        """The first other answer makes the next pause a minute again."""
        for answer in (Schedule.refreshed, Schedule.unsupported):
            schedule = settled()
            self.assertEqual(60.0, self.limited(schedule, 30.0))
            self.assertEqual(["peers"], taken(schedule, 90.0))
            answer(schedule, "peers", 90.0)
            self.assertEqual(60.0, self.limited(schedule, 2 * HOUR))

    def test_skipped(self) -> None:
        """What was never asked for is no answer: the next pause is doubled."""
        schedule = settled()
        self.assertEqual(60.0, self.limited(schedule, 300.0))
        schedule.skipped("groups", 300.0)
        self.assertEqual(120.0, self.limited(schedule, 360.0))

    def test_retry_after(self) -> None:
        """An upstream that says for how long is left alone for so long."""
        for asked in (1.0, 5.0, 1000.0):
            schedule = settled()
            self.assertEqual(["peers"], taken(schedule, 30.0))
            self.assertEqual(asked, schedule.rate_limited("peers", 30.0, asked))
            self.assertEqual([], taken(schedule, 30.0 + asked - 0.1))
            self.assertIn("peers", taken(schedule, 30.0 + asked))

    def test_absurd_retry_after(self) -> None:
        """No time at all is answered by a pause of our own, a year by an hour."""
        schedule, now, pauses = settled(), 30.0, []
        for asked in (0.0, 0.9, HOUR + 1, 1e9):
            self.assertEqual("peers", schedule.take(now))
            pauses.append(schedule.rate_limited("peers", now, asked))
            now += pauses[-1]
        self.assertEqual([60.0, 120.0, HOUR, HOUR], pauses)

    def test_first_goes_first(self) -> None:
        """After a pause the first resource is due, whoever was refused."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        schedule.refreshed("peers", 301.0)
        schedule.rate_limited("groups", 302.0, 2.0)
        self.assertEqual(["peers", "groups"], taken(schedule, 304.0))

    def test_burst(self) -> None:
        """A second refusal of the same burst changes nothing about the pause."""
        for gap in (0.0, 1.0):
            schedule = settled()
            self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
            self.assertEqual(60.0, schedule.rate_limited("peers", 300.0 + gap, None))
            self.assertEqual(
                60.0 - gap, schedule.rate_limited("groups", 300.0 + 2 * gap, None)
            )
            self.assertEqual(120.0, self.limited(schedule, 360.0 + gap))

    def test_late_refusal(self) -> None:
        """A refusal that comes after the pause begins the next one."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        self.assertEqual(60.0, schedule.rate_limited("groups", 301.0, None))
        self.assertEqual(120.0, schedule.rate_limited("peers", 370.0, None))

    def test_first_under_way(self) -> None:
        """A first resource that is under way is not asked for a second time."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        schedule.rate_limited("groups", 301.0, 2.0)
        self.assertEqual(["groups"], taken(schedule, 303.0))
        schedule.refreshed("peers", 305.0)
        self.assertEqual([], taken(schedule, 305.0))


ROUNDING = 1e-6
"""Seconds by which a pause's end may differ, computed as a sum or remembered."""


class Upstream:
    """Plays the world round a schedule: requests that end some time later.

    Attributes:
        now: seconds.
        started: when each resource has been asked for.
        ended: when each resource has been refreshed.
    """

    def __init__(self, periods: Mapping[str, float], random: Random) -> None:
        self.schedule = Schedule(periods, now=0.0, jitter=random.random)
        self.now = 0.0
        self.started: dict[str, list[float]] = {name: [] for name in periods}
        self.ended: dict[str, list[float]] = {name: [] for name in periods}
        self._ends: dict[str, float] = {}
        self._quiet_until = 0.0

    def ask(self, seconds: Callable[[str], float]) -> None:
        """Take all that is due; `seconds` says how long an answer takes."""
        while (name := self.schedule.take(self.now)) is not None:
            quiet = self._quiet_until - ROUNDING
            assert self.now >= quiet, f"{name} was asked for in a pause"
            assert name not in self._ends, f"{name} was asked for twice at once"
            self.started[name].append(self.now)
            self._ends[name] = self.now + seconds(name)
        assert len(self._ends) <= AT_ONCE

    def advance(self) -> list[str]:
        """Go to the next instant at which something happens; what ends there?"""
        wake_at = self.schedule.wake_at()
        assert wake_at is None or wake_at > self.now, "nothing to take, and no sleep"
        times = [*self._ends.values(), *([] if wake_at is None else [wake_at])]
        assert times, "nothing will ever be asked for again"
        self.now = min(times)
        ended = [name for name, end in self._ends.items() if end <= self.now]
        for name in ended:
            del self._ends[name]
        return ended

    def refreshed(self, name: str) -> None:
        self.schedule.refreshed(name, self.now)
        self.ended[name].append(self.now)

    def limited(self, name: str, asked: float | None) -> None:
        pause = self.schedule.rate_limited(name, self.now, asked)
        self._quiet_until = max(self._quiet_until, self.now + pause)


SECONDS = st.floats(0, 120)
ANSWERS = st.tuples(
    st.sampled_from(["refreshed", "unsupported", "skipped", "limited"]),
    SECONDS,  # until the answer comes
    st.none() | SECONDS,  # Retry-After
)
CALM = ("refreshed", 1.0, None)


class AnyAnswersTests(SynchronousTestCase):
    @settings(deadline=None)
    @given(
        answers=st.lists(ANSWERS, min_size=10, max_size=60),
        seed=st.integers(0, 2**32),
    )
    def test_any_answers(
        self, answers: list[tuple[str, float, float | None]], seed: int
    ) -> None:
        """Whatever comes back, the limits hold, and nothing is forgotten."""
        world = Upstream(BUSY_PERIODS, Random(seed))
        coming: dict[str, tuple[str, float | None]] = {}

        def seconds(name: str) -> float:
            answer, until, asked = answers.pop(0) if answers else CALM
            coming[name] = (answer, asked)
            return until

        calm_since = float("inf")
        while world.now < calm_since + 1.5 * HOUR:
            world.ask(seconds)
            if not answers:
                calm_since = min(calm_since, world.now)
            for name in world.advance():
                answer, asked = coming.pop(name)
                if answer == "refreshed":
                    world.refreshed(name)
                elif answer == "unsupported":
                    world.schedule.unsupported(name, world.now)
                elif answer == "skipped":
                    world.schedule.skipped(name, world.now)
                else:
                    world.limited(name, asked)
        for name, ends in world.ended.items():
            self.assertGreater(max(ends, default=0.0), calm_since, name)


class DefaultPeriodsTests(SynchronousTestCase):
    def play(self, mean: float, until: float) -> Upstream:
        """An upstream whose limiter is on and whose answers take so long on average."""
        random, limiter = Random(1), Limiter(6, 30)
        world = Upstream(DEFAULT_PERIODS, random)

        def seconds(name: str) -> float:
            self.assertTrue(limiter.allow(world.now), f"429 for {name}")
            return random.uniform(0, 2 * mean)

        while world.now < until:
            world.ask(seconds)
            for name in world.advance():
                world.refreshed(name)
        return world

    def test_never_refused(self) -> None:
        """In two days the strictest limiter refuses nothing and nothing is left out."""
        world = self.play(1.0, 2 * DAY)
        for name, period in DEFAULT_PERIODS.items():
            self.assertGreater(len(world.ended[name]), 0.9 * 2 * DAY / period, name)

    def test_peers_are_young(self) -> None:
        """Peers are never older than a minute, by the time when they were asked for."""
        world = self.play(1.0, 2 * DAY)
        asked, answered = world.started["peers"], world.ended["peers"]
        ages = [end - start for start, end in zip(asked, answered[1:], strict=False)]
        self.assertLess(max(ages), 60.0)

    def test_slow_upstream(self) -> None:
        """An upstream that takes a minute for each answer is asked for everything."""
        world = self.play(60.0, 6 * HOUR)
        self.assertEqual([], [name for name, ends in world.ended.items() if not ends])


class MaxAgeTests(SynchronousTestCase):
    def test_default(self) -> None:
        """Five minutes, or three periods where that is longer."""
        self.assertEqual([300, 900], [max_age(p) for p in (30, 300)])

    def test_wanted(self) -> None:
        """The setting decides, but metrics never end before the next is overdue."""
        self.assertEqual([60, 450], [max_age(p, 60) for p in (30, 300)])
