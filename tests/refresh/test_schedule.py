"""The schedule, with numbers for times."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.resources import ACCESS_LOG, RESOURCES
from api_exporter.ports import Reason, UpstreamError
from api_exporter.refresh.budget import Budget
from api_exporter.refresh.life import lives
from api_exporter.refresh.schedule import CONNECTION_TEST, Schedule
from tests.parts import limiter as bucket

HOUR = 3600.0
DAY = 24 * HOUR

PERIODS = {"peers": 30.0, "groups": 300.0, "users": 600.0}

BUSY_PERIODS = {"peers": 10.0, "groups": 20.0, "users": 30.0, "routes": 40.0}

DEFAULT_PERIODS = {r.name: r.period for r in RESOURCES if r.name != "events"}

BROKEN = UpstreamError("http_5xx", "500")
HUNG = UpstreamError("timeout", "no answer")
LOCKED_OUT = UpstreamError("auth", "401")
REFUSED = UpstreamError("connect", "no connection", unsent=True)


def fresh(
    chance: float = 0.5, periods: Mapping[str, float] = PERIODS, now: float = 0.0
) -> Schedule:
    """Return a schedule at its start; its periods vary only with `chance`."""
    return Schedule(lives(periods), now=now, jitter=lambda: chance, budget=Budget())


def taken(schedule: Schedule, now: float) -> list[str]:
    """Return all resources that may start at one instant."""
    return list(iter(lambda: schedule.start_next(now), None))


def round_of(schedule: Schedule, now: float, **errors: UpstreamError) -> list[str]:
    """Refresh all due resources, one after the other; each ends immediately."""
    names = []
    while (name := schedule.start_next(now)) is not None:
        names.append(name)
        if name in errors:
            schedule.failed(name, now, errors[name])
        else:
            schedule.refreshed(name, now)
    return names


def settled(chance: float = 0.5) -> Schedule:
    """Return a schedule after first refreshes at 0 that took no time."""
    schedule = fresh(chance)
    assert round_of(schedule, 0.0) == list(PERIODS)
    return schedule


class FirstRoundTests(SynchronousTestCase):
    def test_one_after_the_other(self) -> None:
        """The first resource is first, and the others follow one by one."""
        schedule = fresh()
        self.assertEqual("peers", schedule.peers_name)
        self.assertEqual(["peers"], taken(schedule, 0.0))
        self.assertIsNone(schedule.wake_at())
        schedule.refreshed("peers", 2.0)
        self.assertEqual(["groups"], taken(schedule, 2.0))
        schedule.refreshed("groups", 3.0)
        self.assertEqual(["users"], taken(schedule, 3.0))

    def test_access_log(self) -> None:
        """The access log comes after all other due resources of all accounts."""
        budget = Budget()
        log = {"peers": 30.0, ACCESS_LOG: 30.0, "groups": 300.0}
        first, second = (
            Schedule(lives(p), now=0.0, jitter=lambda: 0.5, budget=budget)
            for p in (log, PERIODS)
        )
        for schedule in (first, second):
            self.assertEqual("peers", schedule.start_next(0.0))
        for schedule in (first, second):
            schedule.refreshed("peers", 1.0)
            schedule.wake_at()
        self.assertEqual("groups", first.start_next(1.0))
        first.refreshed("groups", 1.0)
        self.assertIsNone(first.start_next(1.0))  # the other account's groups go first
        for name in list(PERIODS)[1:]:
            self.assertEqual(name, second.start_next(1.0))
            second.refreshed(name, 1.0)
        second.wake_at()
        self.assertEqual(ACCESS_LOG, first.start_next(1.0))
        first.refreshed(ACCESS_LOG, 1.0)

    def test_reach(self) -> None:
        """The connection test runs once, beside the peers."""
        schedule = Schedule(
            lives(PERIODS),
            now=0.0,
            jitter=lambda: 0.5,
            budget=Budget(),
            has_connection_test=True,
        )
        self.assertEqual(["peers", CONNECTION_TEST], taken(schedule, 0.0))
        schedule.refreshed("peers", 1.0)
        self.assertEqual([], taken(schedule, 2.0))
        schedule.ended(CONNECTION_TEST, 3.0)
        self.assertEqual(["groups"], taken(schedule, 3.0))
        schedule.refreshed("groups", 3.0)
        self.assertEqual(["users"], taken(schedule, 3.0))
        schedule.refreshed("users", 3.0)
        self.assertEqual(["peers"], taken(schedule, 40.0))

    def test_whatever_ends(self) -> None:
        """The next refresh follows after any end of the previous one."""
        for end in (
            lambda s: s.unsupported("groups", 1.0),
            lambda s: s.skipped("groups", 1.0),
            lambda s: s.failed("groups", 1.0, BROKEN),
        ):
            schedule = fresh()
            taken(schedule, 0.0)
            schedule.refreshed("peers", 0.0)
            self.assertEqual(["groups"], taken(schedule, 0.0))
            end(schedule)
            self.assertEqual(["users"], taken(schedule, 1.0))

    def test_failures_come_after_the_round(self) -> None:
        """A failed resource is retried after all others."""
        schedule = fresh()
        self.assertEqual(
            ["peers", "groups", "users"], round_of(schedule, 0.0, groups=HUNG)
        )
        self.assertEqual([], round_of(schedule, 29.9))
        self.assertEqual(["peers", "groups"], round_of(schedule, 30.0))

    def test_limited(self) -> None:
        """If the first resource gets a 429, it is first after the pause, alone."""
        schedule = fresh()
        self.assertEqual(["peers"], taken(schedule, 0.0))
        self.assertEqual(15.0, schedule.rate_limited("peers", 1.0, None))
        self.assertEqual([], taken(schedule, 15.9))
        self.assertEqual(["peers"], taken(schedule, 16.0))
        schedule.refreshed("peers", 17.0)
        self.assertIn("groups", taken(schedule, 60.0))


class PeriodTests(SynchronousTestCase):
    def test_period(self) -> None:
        """A refresh begins a period after the previous one began."""
        schedule = settled()
        self.assertEqual(30.0, schedule.wake_at())
        self.assertEqual([], taken(schedule, 29.9))
        self.assertEqual(["peers"], taken(schedule, 30.0))
        schedule.refreshed("peers", 35.0)
        self.assertEqual(60.0, schedule.wake_at())

    def test_spread(self) -> None:
        """Jitter changes a period by a tenth in both directions."""
        for chance, due in ((0.0, 27.0), (1.0, 33.0)):
            wake_at = settled(chance).wake_at()
            assert wake_at is not None
            self.assertAlmostEqual(due, wake_at)

    def test_slow(self) -> None:
        """A long refresh is followed by half a period's rest."""
        for end, due in ((15.0, 30.0), (25.0, 40.0), (100.0, 115.0)):
            schedule = fresh()
            schedule.start_next(0.0)
            schedule.refreshed("peers", end)
            self.assertEqual(["groups"], taken(schedule, end))
            self.assertEqual(due, schedule.wake_at())

    def test_unsupported(self) -> None:
        """A missing path is retried once after 30 seconds, and then hourly."""
        schedule = fresh(periods={"peers": 1e6, "groups": 300.0})
        self.assertEqual(["peers"], taken(schedule, 0.0))
        schedule.refreshed("peers", 0.0)
        for now, wait in ((0.0, 30.0), (30.0, HOUR), (30.0 + HOUR, HOUR)):
            self.assertEqual(["groups"], taken(schedule, now))
            schedule.unsupported("groups", now)
            self.assertEqual(now + wait, schedule.wake_at())
        self.assertEqual(["groups"], round_of(schedule, 30.0 + 2 * HOUR))
        self.assertEqual(["groups"], taken(schedule, 3 * HOUR))
        schedule.unsupported("groups", 3 * HOUR)
        self.assertEqual(3 * HOUR + 30, schedule.wake_at())

    def test_skipped(self) -> None:
        """A skipped resource is due after its period, or when it becomes possible."""
        schedule = settled()
        round_of(schedule, 299.0)
        self.assertEqual(["groups"], taken(schedule, 300.0))
        schedule.skipped("groups", 300.0)
        self.assertNotIn("groups", taken(schedule, 325.0))
        schedule.make_due("groups", 325.0)
        self.assertIn("groups", taken(schedule, 325.0))
        schedule.make_due("groups", 325.0)  # it already runs: no change
        self.assertEqual([], taken(schedule, 326.0))

    def test_slots(self) -> None:
        """At most two refreshes run, one of them of the first resource."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 1000.0))
        self.assertIsNone(schedule.wake_at())
        schedule.refreshed("peers", 1002.0)
        self.assertEqual([], taken(schedule, 1002.0))
        self.assertEqual(["peers"], taken(schedule, 1030.0))
        schedule.refreshed("groups", 1031.0)
        self.assertEqual(["users"], taken(schedule, 1031.0))

    def test_hung(self) -> None:
        """While any number of paths hang, the first resource keeps its period."""
        schedule = settled()
        self.assertIn("groups", taken(schedule, 600.0))
        schedule.refreshed("peers", 600.0)
        for now in (630.0, 660.0, 690.0):
            self.assertEqual(["peers"], taken(schedule, now))
            schedule.refreshed("peers", now)

    def test_silent(self) -> None:
        """A request without a header allows one other; at most three run."""
        schedule = fresh(periods={**PERIODS, "routes": 300.0, "networks": 300.0})
        self.assertEqual(["peers"], taken(schedule, 0.0))
        schedule.mark_silent("peers")
        self.assertEqual([], taken(schedule, 5.0))
        schedule.refreshed("peers", 5.0)
        self.assertEqual(["groups"], taken(schedule, 5.0))
        schedule.mark_silent("users")  # is not under way
        self.assertEqual([], taken(schedule, 10.0))
        schedule.mark_silent("groups")
        self.assertEqual(["users"], taken(schedule, 10.0))
        schedule.mark_silent("users")
        self.assertEqual(["peers"], taken(schedule, 35.0))
        schedule.refreshed("peers", 35.0)
        schedule.failed("groups", 35.0, HUNG)
        self.assertEqual(["routes"], taken(schedule, 35.0), "users are still silent")
        schedule.refreshed("users", 36.0)
        self.assertEqual([], taken(schedule, 36.0), "nothing is silent any more")
        schedule.refreshed("routes", 37.0)
        self.assertEqual(["networks"], taken(schedule, 37.0))

    def test_silent_in_an_outage(self) -> None:
        """While the peers fail, a silent request does not allow others."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        schedule.failed("peers", 300.0, BROKEN)
        schedule.mark_silent("groups")
        schedule.make_due("users", 300.0)
        self.assertEqual(["peers"], taken(schedule, 340.0))
        schedule.refreshed("peers", 340.0)
        self.assertEqual(["users"], taken(schedule, 340.0))


class AgainTests(SynchronousTestCase):
    def again(self, name: str, begin: float) -> list[float]:
        """Return the pauses between the ends of failures and the retries."""
        schedule = fresh(periods={"peers": 1e6, "groups": 300.0})
        round_of(schedule, 0.0)
        schedule.make_due(name, begin)
        now, pauses = begin, []
        for _ in range(6):
            self.assertIn(name, taken(schedule, now))
            schedule.failed(name, now + 5, HUNG)
            wake_at = schedule.wake_at()
            assert wake_at is not None
            pauses.append(wake_at - (now + 5))
            now = wake_at
        schedule.start_next(now)
        schedule.refreshed(name, now)
        self.assertEqual(now + 300.0, schedule.wake_at())
        return pauses

    def test_asked(self) -> None:
        """A Retry-After delays its resource, and no others."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        schedule.refreshed("peers", 300.0)
        asked = UpstreamError("http_5xx", "503", retryable=True, retry_after=70.0)
        schedule.failed("groups", 300.0, asked)
        self.assertEqual(["peers"], round_of(schedule, 330.0))
        self.assertEqual(["peers"], round_of(schedule, 369.9))
        self.assertEqual(["groups"], round_of(schedule, 370.0))
        schedule.make_due("users", 370.0)
        self.assertEqual(["users"], taken(schedule, 370.0))
        schedule.failed("users", 370.0, asked)
        self.assertEqual(["peers"], taken(schedule, 399.9))
        schedule.failed("peers", 399.9, BROKEN)
        self.assertEqual(["peers"], taken(schedule, 405.0))
        schedule.refreshed("peers", 405.0)
        self.assertEqual(["users"], taken(schedule, 405.0), "the outage is over")

    def test_other(self) -> None:
        """After 30 s, 1, 2, 4 minutes from its end, at most the resource's period."""
        self.assertEqual([30, 60, 120, 240, 300, 300], self.again("groups", 1000.0))

    def test_first(self) -> None:
        """The first resource's period is its longest pause."""
        for period, pause in ((30.0, 30.0), (5.0, 5.0)):
            schedule = fresh(periods={"peers": period})
            for now in (0.0, pause):
                self.assertEqual(["peers"], taken(schedule, now))
                schedule.failed("peers", now, UpstreamError("tls", "no trust"))
            self.assertEqual(2 * pause, schedule.wake_at())

    def test_paces(self) -> None:
        """Fast failures are retried every 3.5 s for a minute, every 10 s for four more.

        Refusals and web pages count as fast failures, a proxy's login does not.
        """
        reasons: tuple[Reason, ...] = ("auth", "forbidden", "not_found", "decode")
        for reason in ("http_5xx", "connect", "redirect", "http_4xx", *reasons):
            schedule = fresh(periods={"peers": 30.0})
            now, times = 0.0, []
            while now < 400.0:
                self.assertEqual(["peers"], taken(schedule, now))
                schedule.failed("peers", now, UpstreamError(reason, ""))
                times.append(now)
                now = schedule.wake_at() or 0.0
            gaps = [b - a for a, b in pairwise(times)]
            self.assertEqual([3.5] * 18 + [10.0] * 24 + [30.0] * 3, gaps, reason)
        schedule = fresh(periods={"peers": 30.0})
        taken(schedule, 0.0)
        schedule.failed("peers", 0.0, UpstreamError("proxy_auth", "407"))
        self.assertEqual(30.0, schedule.wake_at())

    def test_pace_ends(self) -> None:
        """A failure of another kind ends the pace of fast failures."""
        schedule = fresh(periods={"peers": 300.0})
        for now, error in ((0.0, BROKEN), (3.5, UpstreamError("tls", "no trust"))):
            self.assertEqual(["peers"], taken(schedule, now))
            schedule.failed("peers", now, error)
        self.assertEqual(63.5, schedule.wake_at())
        self.assertEqual(300.0, schedule.max_seconds("peers", 63.5))

    def test_slow_failures(self) -> None:
        """After a slow failure the server rests for as long."""
        schedule = fresh(periods={"peers": 30.0})
        taken(schedule, 0.0)
        schedule.failed("peers", 12.0, UpstreamError("decode", "cut"))
        self.assertEqual(24.0, schedule.wake_at())

    def test_paces_begin_again(self) -> None:
        """The minute restarts after a timeout, and after a request not sent."""
        for between in (HUNG, REFUSED):
            schedule = fresh(periods={"peers": 30.0})
            for now, error in ((0.0, BROKEN), (100.0, between), (200.0, BROKEN)):
                self.assertEqual(["peers"], taken(schedule, now))
                schedule.failed("peers", now, error)
            self.assertEqual(203.5, schedule.wake_at())

    def test_no_retries(self) -> None:
        """In an outage a refresh has no second attempt."""
        schedule = settled()
        max_seconds = []
        for now in (30.0, 60.0, 400.0):
            self.assertIn("peers", taken(schedule, now))
            max_seconds.append(schedule.max_seconds("peers", now))
            schedule.failed("peers", now, BROKEN)
            max_seconds.append(schedule.max_seconds("groups", now))
        self.assertEqual([30.0, 0.0, 0.0, 0.0, 0.0, 300.0], max_seconds)

    def test_unsent(self) -> None:
        """A request that is never sent is retried every five seconds."""
        for period, pause in ((30.0, 5.0), (3.0, 3.0)):
            schedule = fresh(periods={"peers": period})
            taken(schedule, 0.0)
            schedule.failed("peers", 1.0, REFUSED)
            self.assertEqual(1.0 + pause, schedule.wake_at())


class OutageTests(SynchronousTestCase):
    """The peers fail from 300 seconds on."""

    now = 300.0

    def down(
        self, until: float, error: UpstreamError, others: UpstreamError | None
    ) -> list[tuple[float, str]]:
        """Return all requests except those for the peers, with their times."""
        asked = []
        now = self.now
        while now <= until:
            while (name := self.schedule.start_next(now)) is not None:
                if name != "peers":
                    asked.append((now, name))
                failure = error if name == "peers" else others
                if failure is None:
                    self.schedule.refreshed(name, now)
                else:
                    self.schedule.failed(name, now, failure)
            wake_at = self.schedule.wake_at()
            assert wake_at is not None
            now = max(now, wake_at)
        self.now = until
        return asked

    def setUp(self) -> None:
        periods = {"peers": 30.0, **{f"r{n}": 300.0 for n in range(19)}}
        self.schedule = fresh(periods=periods)
        round_of(self.schedule, 0.0)

    def test_one_other(self) -> None:
        """While all fail, one other resource is requested in each period."""
        asked = self.down(600.0, BROKEN, BROKEN)
        times = [at for at, _ in asked]
        self.assertEqual([300.0 + 30 * n for n in range(11)], times)

    def test_longest_overdue(self) -> None:
        """The other resource is the longest overdue one."""
        asked = self.down(450.0, BROKEN, BROKEN)
        self.assertEqual([f"r{n}" for n in range(6)], [name for _, name in asked])

    def test_unsent(self) -> None:
        """Frequent retries of the peers do not make others more frequent."""
        asked = self.down(600.0, REFUSED, REFUSED)
        self.assertEqual(11, len(asked))

    def test_peers_alone(self) -> None:
        """If others succeed, only the peers' path fails."""
        asked = self.down(300.0, BROKEN, None)
        self.assertEqual(19, len(asked))
        self.assertEqual(19, len(self.down(600.0, BROKEN, None)))

    def test_no_longer_alone(self) -> None:
        """The outage is general again if one fails for the peers' reason."""
        self.down(300.0, BROKEN, None)
        self.assertEqual(19, len(self.down(600.0, BROKEN, HUNG)))
        self.assertGreater(19, len(self.down(650.0, BROKEN, BROKEN)))
        self.assertGreaterEqual(2, len(self.down(700.0, BROKEN, BROKEN)))

    def test_old_success(self) -> None:
        """A good answer to a request from before the outage does not count."""
        self.assertEqual(["peers", "r0"], taken(self.schedule, 300.0))
        self.schedule.failed("peers", 301.0, BROKEN)
        self.schedule.refreshed("r0", 302.0)
        self.assertEqual(["r1"], taken(self.schedule, 302.0))
        self.schedule.failed("r1", 302.0, BROKEN)
        self.assertEqual([], taken(self.schedule, 303.0))

    def test_recovery(self) -> None:
        """The first good answer makes all missed or failed resources due."""
        self.down(420.0, BROKEN, BROKEN)
        self.schedule.make_due("peers", 420.0)
        names = round_of(self.schedule, 420.0)
        self.assertEqual("peers", names[0])
        self.assertEqual({f"r{n}" for n in range(19)}, set(names[1:]))

    def test_under_way_counts_not(self) -> None:
        """A failure of the outage does not lengthen the wait after the next one."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        schedule.failed("peers", 300.0, BROKEN)
        self.assertEqual(["peers"], taken(schedule, 303.5))
        schedule.refreshed("peers", 303.5)
        schedule.failed("groups", 304.0, HUNG)  # began in the outage
        self.assertEqual(["groups"], taken(schedule, 304.0))
        schedule.failed("groups", 305.0, HUNG)
        self.assertEqual(["peers"], round_of(schedule, 334.9))
        self.assertEqual(["groups"], taken(schedule, 335.0))

    def test_under_way(self) -> None:
        """A request of the outage that fails after its end is due at once."""
        self.down(900.0, BROKEN, BROKEN)
        [name] = [name for name in taken(self.schedule, 930.0) if name != "peers"]
        self.schedule.failed("peers", 930.0, BROKEN)
        self.schedule.make_due("peers", 931.0)
        self.assertEqual(["peers"], taken(self.schedule, 931.0))
        self.schedule.refreshed("peers", 931.0)
        self.schedule.failed(name, 935.0, BROKEN)
        self.assertIn(name, round_of(self.schedule, 935.0))

    def test_no_retries_with_a_tight_budget(self) -> None:
        """Retries of the peers must not use the requests of the others."""
        schedule = settled()
        self.assertEqual(30.0, schedule.max_seconds("peers", 30.0))
        self.assertEqual(["peers"], taken(schedule, 30.0))
        schedule.rate_limited("peers", 30.0, None)
        self.assertEqual(0.0, schedule.max_seconds("peers", 30.0))
        self.assertEqual(["peers"], taken(schedule, 45.0))
        schedule.refreshed("peers", 46.0)
        self.assertEqual(30.0, schedule.max_seconds("peers", 30.0))

    def test_what_is_fresh_stays(self) -> None:
        """A short outage makes no other resource due."""
        schedule = settled()
        self.assertEqual(["peers"], taken(schedule, 30.0))
        schedule.failed("peers", 30.0, BROKEN)
        self.assertEqual(["peers"], round_of(schedule, 60.0))

    def test_doubt(self) -> None:
        """Unsupported resources are requested again if the peers are missing, too."""
        reasons: tuple[tuple[Reason, bool, bool], ...] = (
            ("not_found", True, True),
            ("forbidden", False, True),
            ("http_5xx", False, False),
        )
        for reason, unsupported, doubted in reasons:
            schedule = fresh(periods={"peers": 30.0, "groups": 300.0})
            taken(schedule, 0.0)
            schedule.refreshed("peers", 0.0)
            for now in (0.0, 30.0):
                self.assertIn("groups", taken(schedule, now))
                schedule.unsupported("groups", now)
            error = UpstreamError(reason, "", unsupported=unsupported)
            schedule.failed("peers", 30.0, error)
            self.assertEqual(doubted, "groups" in round_of(schedule, 60.0), reason)


class PauseTests(SynchronousTestCase):
    def test_silence(self) -> None:
        """After a 429 no request is sent, then one for the first resource alone."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        schedule.refreshed("peers", 300.0)
        self.assertEqual(15.0, schedule.rate_limited("groups", 301.0, None))
        self.assertEqual([], taken(schedule, 315.9))
        self.assertEqual(316.0, schedule.wake_at())
        self.assertEqual(["peers"], taken(schedule, 316.0))
        schedule.refreshed("peers", 317.0)
        self.assertIn("groups", round_of(schedule, 360.0))

    def test_long(self) -> None:
        """A long Retry-After ends with the peers' first good answer."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        schedule.refreshed("peers", 300.0)
        self.assertEqual(HOUR, schedule.rate_limited("groups", 300.0, HOUR))
        self.assertEqual(540.0, schedule.wake_at())
        self.assertEqual(["peers"], taken(schedule, 540.0))
        self.assertEqual(HOUR - 240, schedule.rate_limited("peers", 540.0, HOUR - 240))
        self.assertEqual(["peers"], taken(schedule, 780.0))
        schedule.refreshed("peers", 780.0)
        self.assertIn("groups", round_of(schedule, 860.0))

    def test_place(self) -> None:
        """A resource keeps its place after one 429; after two it waits."""
        schedule = fresh()
        self.assertEqual(["peers"], taken(schedule, 0.0))
        schedule.refreshed("peers", 0.0)
        for begin in (0.0, 100.0):
            self.assertEqual(["groups"], taken(schedule, begin))
            schedule.rate_limited("groups", begin, 20.0)
            self.assertEqual(["peers"], taken(schedule, begin + 90))
            schedule.refreshed("peers", begin + 90)
        self.assertEqual(["users"], taken(schedule, 200.0))

    def test_first_under_way(self) -> None:
        """A first resource that ran when the pause began is refreshed once more."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        schedule.rate_limited("groups", 301.0, 20.0)
        self.assertIsNone(schedule.wake_at())
        schedule.refreshed("peers", 305.0)
        self.assertEqual([], taken(schedule, 320.9))
        self.assertEqual(["peers"], taken(schedule, 321.0))

    def test_late_refusal(self) -> None:
        """A 429 for a request from before a pause that is over does not count."""
        schedule = settled()
        self.assertEqual(["peers", "groups"], taken(schedule, 300.0))
        schedule.rate_limited("peers", 300.0, None)
        self.assertEqual(["peers"], taken(schedule, 315.0))
        schedule.refreshed("peers", 315.0)
        self.assertEqual(0.0, schedule.rate_limited("groups", 320.0, None))
        self.assertIn("groups", taken(schedule, 360.0))

    def test_squeezed(self) -> None:
        """Under contention the peers are refreshed every 30 s, others between."""
        budget, now = Budget(), 0.0
        for now in (0.0, 100.0, 200.0):  # so three a minute, which grow slowly
            budget.begin(now, peers=True)
            budget.end(peers=True)
            budget.record_429(now, now, None)
            budget.record_answer(now + 15.0)
        periods = {"peers": 5.0, "groups": 300.0, "users": 300.0}
        schedule = Schedule(lives(periods), now=now, jitter=lambda: 0.5, budget=budget)
        asked: list[tuple[float, str]] = []
        while now < 500.0:
            wake_at = schedule.wake_at()
            assert wake_at is not None
            now = wake_at
            asked += [(wake_at, name) for name in round_of(schedule, now)]
        peers = [at for at, name in asked if name == "peers"]
        gaps = [b - a for a, b in pairwise(peers)]
        self.assertLessEqual(max(gaps), 30.0)
        self.assertEqual({"groups", "users"}, {n for _, n in asked} - {"peers"})
        self.assertLessEqual(len(asked), 1 + 5 * 3.5)


ROUNDING = 1e-6
"""Seconds by which a pause's end may differ, computed as a sum or remembered."""


class Upstream:
    """Simulates an upstream for a schedule: requests end some time later.

    Attributes:
        now: seconds.
        started: when each resource was requested.
        ended: when each resource was refreshed.
    """

    def __init__(self, periods: Mapping[str, float], random: Random) -> None:
        self.schedule = Schedule(
            lives(periods), now=0.0, jitter=random.random, budget=Budget()
        )
        self.now = 0.0
        self.started: dict[str, list[float]] = {name: [] for name in periods}
        self.ended: dict[str, list[float]] = {name: [] for name in periods}
        self._ends: dict[str, float] = {}
        self._quiet_until = 0.0

    def ask(self, seconds: Callable[[str], float]) -> None:
        """Start all due refreshes; `seconds` returns how long a response takes."""
        while (name := self.schedule.start_next(self.now)) is not None:
            quiet = self._quiet_until - ROUNDING
            assert self.now >= quiet, f"{name} was asked for in a pause"
            assert name not in self._ends, f"{name} was asked for twice at once"
            self.started[name].append(self.now)
            self._ends[name] = self.now + seconds(name)
        others = self._ends.keys() - {self.schedule.peers_name}
        assert len(others) <= 1

    def advance(self) -> list[str]:
        """Go to the next event, and return the resource that ends there."""
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
    st.sampled_from(["refreshed", "unsupported", "skipped", "limited", "failed"]),
    SECONDS,  # until the answer comes
    st.none() | SECONDS,  # Retry-After
    st.sampled_from([BROKEN, HUNG, REFUSED]),
)
CALM = ("refreshed", 1.0, None, HUNG)


class AnyAnswersTests(SynchronousTestCase):
    @settings(deadline=None)
    @given(
        answers=st.lists(ANSWERS, min_size=10, max_size=60),
        seed=st.integers(0, 2**32),
    )
    def test_any_answers(
        self,
        answers: list[tuple[str, float, float | None, UpstreamError]],
        seed: int,
    ) -> None:
        """With any responses, the limits hold and no resource is forgotten."""
        world = Upstream(BUSY_PERIODS, Random(seed))
        coming: dict[str, tuple[str, float | None, UpstreamError]] = {}

        def seconds(name: str) -> float:
            answer, until, asked, error = answers.pop(0) if answers else CALM
            coming[name] = (answer, asked, error)
            return until

        calm_since = float("inf")
        while world.now < calm_since + 1.5 * HOUR:
            world.ask(seconds)
            if not answers:
                calm_since = min(calm_since, world.now)
            for name in world.advance():
                answer, asked, error = coming.pop(name)
                if answer == "refreshed":
                    world.refreshed(name)
                elif answer == "limited":
                    world.limited(name, asked)
                elif answer == "failed" or name == "peers":
                    world.schedule.failed(name, world.now, error)
                elif answer == "unsupported":
                    world.schedule.unsupported(name, world.now)
                else:
                    world.schedule.skipped(name, world.now)
        for name, ends in world.ended.items():
            self.assertGreater(max(ends, default=0.0), calm_since, name)


class DefaultPeriodsTests(SynchronousTestCase):
    def play(self, mean: float, until: float) -> Upstream:
        """Simulate an upstream with a limiter and this average response time."""
        random, limiter = Random(1), bucket(6, 30)
        world = Upstream(DEFAULT_PERIODS, random)

        def seconds(name: str) -> float:
            self.assertEqual(0, limiter.take(world.now), f"429 for {name}")
            return random.uniform(0, 2 * mean)

        while world.now < until:
            world.ask(seconds)
            for name in world.advance():
                world.refreshed(name)
        return world

    def test_two_days(self) -> None:
        """The strictest limiter sends no 429, and all resources are refreshed.

        The peers are never older than a minute since their request.
        """
        world = self.play(1.0, 2 * DAY)
        for name, period in DEFAULT_PERIODS.items():
            self.assertGreater(len(world.ended[name]), 0.9 * 2 * DAY / period, name)
        asked, answered = world.started["peers"], world.ended["peers"]
        ages = [end - start for start, end in zip(asked, answered[1:], strict=False)]
        self.assertLess(max(ages), 60.0)

    def test_slow_upstream(self) -> None:
        """An upstream that takes a minute for each response gets all requests."""
        world = self.play(60.0, 6 * HOUR)
        self.assertEqual([], [name for name, ends in world.ended.items() if not ends])
