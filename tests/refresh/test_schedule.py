"""The schedule, with numbers for times."""

import re
from collections.abc import Mapping
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.resources import ACCESS_LOG
from api_exporter.ports import Jitter, Reason, UpstreamError
from api_exporter.refresh.budget import NEVER, Budget
from api_exporter.refresh.schedule import Schedule
from api_exporter.refresh.states import States
from tests.refresh.test_budget import allowed_at

HOUR = 3600.0

INTERVALS = {"peers": 30.0, "groups": 300.0, "users": 600.0}

MANY = {"peers": 30.0, **{f"r{n}": 300.0 for n in range(19)}}

BUSY_INTERVALS = {"peers": 10.0, "groups": 20.0, "users": 30.0, "routes": 40.0}

BROKEN = UpstreamError("http_5xx", "500")
HUNG = UpstreamError("timeout", "no answer")
REFUSED = UpstreamError("connect", "no connection", unsent=True)

ERRORS = {
    "broken": BROKEN,
    "hung": HUNG,
    "refused": REFUSED,
    "untrusted": UpstreamError("tls", "no trust"),
    "lost": UpstreamError("not_found", "", unsupported=True),
    "denied": UpstreamError("forbidden", ""),
    "cut": UpstreamError("decode", "cut"),
    "locked": UpstreamError("proxy_auth", "407"),
}

END = re.compile(r"(\w+)(?: (\w+)(?: ([\d.]+))?)?")
STEP = re.compile(r"([\d.]+):(.*) → (.+?)(?: until (.+))?")


class Turns(Schedule):
    """A schedule whose requests a test starts, one by one."""

    def __init__(
        self,
        intervals: Mapping[str, float] = INTERVALS,
        *,
        jitter: Jitter = lambda: 0.5,
        budget: Budget | None = None,
        probe: bool = False,
    ) -> None:
        self.clock = Clock()
        self.budget = budget or Budget()
        self.started: list[str] = []
        super().__init__(
            States(intervals, log=lambda *_: None),
            clock=self.clock,
            jitter=jitter,
            budget=self.budget,
            on_start=self.started.append,
            has_connection_test=probe,
        )

    def start_next(self, now: float) -> str | None:
        """Return the resource or CONNECTION_TEST that starts now, or None."""
        self.clock.rightNow = now
        self.offer()
        return self.started.pop() if self.budget.start_next(now) else None

    def wake_at(self) -> float | None:
        self.offer()
        at = self.budget.next_at(self.clock.seconds())
        return None if at == NEVER else at


def fresh(
    intervals: Mapping[str, float] = INTERVALS,
    *,
    chance: float = 0.5,
    probe: bool = False,
) -> Turns:
    """Return a schedule at its start; its intervals vary only with `chance`."""
    return Turns(intervals, jitter=lambda: chance, probe=probe)


def settled() -> Turns:
    """Return a schedule after first refreshes at 0 that took no time."""
    return play(fresh(), "0: → peers ok, groups ok, users ok")


def end(schedule: Schedule, name: str, word: str, now: float, wait: str = "") -> None:
    """End a refresh in the way that a word stands for, or change its resource."""
    if word in ERRORS:
        schedule.failed(name, now, ERRORS[word])
    elif word == "503":
        error = UpstreamError("http_5xx", "503", retry_after=float(wait))
        schedule.failed(name, now, error)
    elif word == "429":
        schedule.rate_limited(name, now, float(wait) if wait else None)
    elif word == "silent":
        schedule.mark_silent(name)
    else:
        {
            "ok": schedule.refreshed,
            "absent": schedule.unsupported,
            "skipped": schedule.skipped,
            "ended": schedule.ended,
            "due": schedule.make_due,
        }[word](name, now)


def play(schedule: Turns, story: str) -> Turns:
    """Let a schedule go through a story, and return it. A line of a story is a step.

    `300: groups 429 20 → peers ok, users until 330` means: at 300 seconds the refresh
    of the groups ends with a 429 and that Retry-After. Then peers start, which are
    refreshed at once, then users, and no other resource. The next one may start at
    330 seconds.
    """
    for line in story.strip().splitlines():
        matched = STEP.fullmatch(line.strip())
        assert matched is not None, line
        now = float(matched[1])
        for name, word, wait in END.findall(matched[2]):
            end(schedule, name, word, now, wait)
        starts = [] if matched[3] == "nothing" else END.findall(matched[3])
        found = []
        for name, word, wait in [*starts, ("", "", "")]:
            found.append(schedule.start_next(now) or "")
            assert name == found[-1], f"{line}: {found} in:\n{story}"
            if word:
                end(schedule, name, word, now, wait)
        if matched[4] is not None:
            at = "an end" if (wake_at := schedule.wake_at()) is None else f"{wake_at:g}"
            assert at == matched[4], f"{line}: until {at} in:\n{story}"
    return schedule


FIRST_REFRESHES = """
The first resource is first, and the others follow one by one.
0: → peers until an end
2: peers ok → groups
3: groups ok → users

A failed resource is retried after all others.
0: → peers ok, groups hung, users ok until 3
3: → groups ok until 30

If the first resource gets a 429, it is first after the pause, alone.
0: → peers
1: peers 429 → nothing until 16
16: → peers
17: peers ok → nothing
60: → peers, groups

Missing resources are requested again if the peers are missing, too.
0: → peers ok, groups absent, users ok
30: → peers, groups absent
30: peers lost → nothing
60: → peers ok, groups

So are they if the peers are refused.
0: → peers ok, groups absent, users ok
30: → peers, groups absent
30: peers denied → nothing
60: → peers ok, groups

Another outage does not make them due.
0: → peers ok, groups absent, users ok
30: → peers, groups absent
30: peers broken → nothing
60: → peers ok

A resource keeps its place after one 429; after two it waits.
0: → peers ok, groups 429 30
90: → peers ok, groups 429 30
149: → peers ok, users ok until 150
150: → groups
"""

SETTLED = """
A refresh begins an interval after the previous one began.
29: → nothing until 30
30: → peers
35: peers ok → nothing until 60

A skipped resource is due after its interval, or when it becomes possible.
299: → peers ok
300: → groups skipped until 329
325: groups due → groups
326: groups due → nothing

At most two refreshes run, one of them of the first resource.
1000: → peers, groups until an end
1002: peers ok → nothing
1030: → peers
1031: groups ok → users

While any number of paths hang, the first resource keeps its interval.
600: → peers ok, groups
630: → peers ok
660: → peers

While the peers fail, a silent request does not allow others.
300: → peers, groups
300: peers broken, groups silent, users due → nothing
340: → peers ok, users

A Retry-After delays its resource, and no others; one of an outage ends with it.
300: → peers ok, groups 503 70
330: → peers ok
369.9: → peers ok
370: → groups ok
370: users due → users 503 70
399.9: → peers broken
405: → peers ok, users

A good answer to a request from before the outage does not count.
600: → peers, groups
601: peers broken, groups ok → nothing
604: → peers broken, users broken
605: → nothing

A failure of the outage does not lengthen the wait after the next one.
300: → peers, groups
300: peers broken → nothing
303.5: → peers ok
304: groups hung → groups
305: groups hung → nothing
307.9: → nothing
308: → groups

A request that begins before the peers' first good answer is one of the outage, too.
300: → peers, groups
300: peers broken, groups broken → nothing
330: → peers, groups
331: peers ok → nothing
332: groups hung → groups

One that begins with that answer is not: its failure waits as long as it asks.
300: → peers, groups
300: peers broken, groups broken → nothing
330: → peers ok, groups
331: groups 503 100 → nothing

A short outage makes no other resource due.
30: → peers broken
60: → peers ok

After a 429 no request is sent, then one for the first resource alone.
300: → peers ok, groups
301: groups 429 → nothing until 316
316: → peers
317: peers ok → nothing
360: → peers ok, groups ok

A long Retry-After ends with the peers' first good answer.
300: → peers ok, groups 429 3600 until 540
540: → peers 429 3360 until 780
780: → peers ok
860: → peers ok, groups ok, users ok

A first resource that ran when the pause began is refreshed once more.
300: → peers, groups
301: groups 429 20 → nothing until an end
305: peers ok → nothing until 321
321: → peers

A 429 for a request from before a pause that is over does not count.
300: → peers, groups
300: peers 429 → nothing
315: → peers ok
320: groups 429 → nothing
360: → peers, groups
"""

PEERS_ALONE = """
The wait after a failure grows by a twentieth, whatever the reasons are.
0: → peers broken until 3
3: → peers untrusted until 6.15
6.15: → peers hung until 9.4575
9.5: → peers ok until 39.5
60: → peers refused until 63

After a slow failure the server rests for half as long.
0: → peers
12: peers cut → nothing until 18

The first resource's interval is its longest pause.
0: → peers 503 70 until 30

A refused login is repeated after the interval.
0: → peers locked until 30
"""

OTHERS_ALONE = """
A missing path is retried once after 30 seconds, and then hourly.
0: → peers ok, groups absent until 30
30: → groups absent until 3630
3630: → groups absent until 7230
7230: → groups ok until 7530
10800: → groups absent until 10830

After 3 s, 6 s, 12 s and so on from its end, at most the resource's interval.
0: → peers ok, groups
2: groups broken → nothing until 5
5: → groups broken until 11
11: → groups broken until 23
23: → groups broken until 47
47: → groups broken until 95
95: → groups broken until 191
191: → groups broken until 383
383: → groups broken until 683
683: → groups broken until 983
983: → groups ok until 1283
"""

SILENT = """
0: → peers
5: peers silent → nothing
5: peers ok → groups
10: users silent → nothing
10: groups silent → users
15: users silent → routes
20: routes silent → networks
25: networks silent → nothing
35: → peers
35: peers ok, groups hung → zones
36: users ok → nothing
37: zones ok → policies
"""


class StoryTests(SynchronousTestCase):
    def test_stories(self) -> None:
        """All stories, each with the resources that it is about."""
        for intervals, start, stories in (
            (INTERVALS, "", FIRST_REFRESHES),
            (INTERVALS, "0: → peers ok, groups ok, users ok\n", SETTLED),
            ({"peers": 30.0}, "", PEERS_ALONE),
            ({"peers": 1e6, "groups": 300.0}, "", OTHERS_ALONE),
        ):
            for story in stories.strip().split("\n\n"):
                play(fresh(intervals), start + story.partition("\n")[2])

    def test_silent(self) -> None:
        """A request without a header frees its slot; at most four of them run."""
        more = ("routes", "networks", "zones", "policies")
        play(fresh({**INTERVALS, **dict.fromkeys(more, 300.0)}), SILENT)

    def test_slow(self) -> None:
        """A long refresh is followed by half an interval's rest."""
        for now, due in ((15, 30), (25, 40), (100, 115)):
            play(fresh(), f"0: → peers\n{now}: peers ok → groups until {due}")

    def test_spread(self) -> None:
        """Jitter changes an interval by a tenth in both directions."""
        for chance, due in ((0.0, 27), (1.0, 33)):
            story = f"0: → peers ok, groups ok, users ok until {due}"
            play(fresh(chance=chance), story)

    def test_connection_test(self) -> None:
        """The connection test runs once, beside the peers."""
        story = """
            0: → peers, reach
            1: peers ok → nothing
            3: reach ended → groups ok, users ok
            40: → peers
        """
        play(fresh(probe=True), story)

    def test_access_log(self) -> None:
        """The access log comes after all other due resources of all accounts."""
        budget = Budget()
        log = {"peers": 30.0, ACCESS_LOG: 30.0, "groups": 300.0}
        first, second = (Turns(p, budget=budget) for p in (log, INTERVALS))
        for schedule in (first, second):
            self.assertEqual("peers", schedule.start_next(0.0))
        for schedule in (first, second):
            schedule.refreshed("peers", 1.0)
            schedule.wake_at()
        started = []
        while budget.start_next(1.0):
            for schedule in (first, second):
                for name in schedule.started:
                    schedule.refreshed(name, 1.0)
                    started.append(name)
                schedule.started.clear()
                schedule.wake_at()
        self.assertEqual(
            sorted(["groups", "groups", "users", ACCESS_LOG]), sorted(started)
        )
        self.assertEqual(ACCESS_LOG, started[-1])

    def test_first_wait(self) -> None:
        """Refusals and web pages are retried as soon as other failures."""
        reasons: tuple[Reason, ...] = ("forbidden", "not_found", "decode")
        for reason in ("http_5xx", "connect", "redirect", "http_4xx", *reasons):
            self.assertEqual(3.0, self.next_after(reason), reason)

    def test_refused_token(self) -> None:
        """A token that NetBird refuses is sent again after the peers' interval."""
        self.assertEqual(30.0, self.next_after("auth", INTERVALS))

    def next_after(
        self, reason: Reason, intervals: Mapping[str, float] = {"peers": 30.0}
    ) -> float | None:
        schedule = fresh(intervals)
        self.assertEqual("peers", schedule.start_next(0.0))
        schedule.failed("peers", 0.0, UpstreamError(reason, ""))
        return schedule.wake_at()

    def test_unsent(self) -> None:
        """A request that did not reach the NetBird API does not count for the limit."""
        for error, counts in ((BROKEN, True), (REFUSED, False)):
            budget = Budget(limit=(1, 1))
            schedule = Turns(budget=budget)
            self.assertEqual("peers", schedule.start_next(0.0))
            schedule.failed("peers", 0.0, error)
            self.assertEqual(counts, allowed_at(budget) > 0.0)

    def test_short_interval(self) -> None:
        """A short interval of the peers is their longest pause."""
        for error in ("untrusted", "refused", "hung"):
            story = f"0: → peers\n1: peers {error} → nothing until 3"
            play(fresh({"peers": 2.0}), story)

    def test_max_seconds(self) -> None:
        """There is no second attempt of what fails, nor in an outage."""
        both = [30.0, 300.0]
        for story, expected in (
            ("30: → peers", both),
            ("30: → peers broken", [0.0, 0.0]),
            ("30: → peers 429", [0.0, 0.0]),
            ("30: → peers 429\n45: → peers", [0.0, 0.0]),
            ("30: → peers 429\n45: → peers ok", both),
            ("300: → peers ok, groups broken", [30.0, 0.0]),
        ):
            schedule = play(settled(), story)
            found = [schedule.max_seconds(n) for n in ("peers", "groups")]
            self.assertEqual(expected, found, story)


class OutageTests(SynchronousTestCase):
    """The peers fail from 300 seconds on."""

    def setUp(self) -> None:
        self.now = 300.0
        self.schedule = fresh(MANY)
        play(self.schedule, f"0: → {' ok, '.join(MANY)} ok")

    def down(
        self, until: float, error: UpstreamError, others: UpstreamError | None
    ) -> list[tuple[float, str]]:
        """Return all requests except those for the peers, with their times."""
        found = []
        while self.now <= until:
            while (name := self.schedule.start_next(self.now)) is not None:
                if name != "peers":
                    found.append((self.now, name))
                failure = error if name == "peers" else others
                if failure is None:
                    self.schedule.refreshed(name, self.now)
                else:
                    self.schedule.failed(name, self.now, failure)
            self.now = max(self.now, self.schedule.wake_at() or 0.0)
        self.now = until
        return found

    def test_one_other(self) -> None:
        """While all fail, the longest overdue one is requested in each interval."""
        for error in (BROKEN, REFUSED):
            self.setUp()
            expected = [(303.0 + 30 * n, f"r{n}") for n in range(10)]
            self.assertEqual(expected, self.down(600.0, error, error))

    def test_peers_alone(self) -> None:
        """If others succeed, only the peers' path fails."""
        self.assertEqual(19, len(self.down(303.0, BROKEN, None)))
        self.assertEqual(19, len(self.down(603.0, BROKEN, HUNG)))
        self.assertGreater(19, len(self.down(650.0, BROKEN, BROKEN)))
        self.assertGreaterEqual(2, len(self.down(700.0, BROKEN, BROKEN)))

    def test_late_failure(self) -> None:
        """A request of the outage that fails after its end is due at once."""
        self.down(900.0, BROKEN, BROKEN)
        story = "933: → peers broken, r1\n934: peers due → peers ok"
        play(self.schedule, story).failed("r1", 935.0, BROKEN)
        self.now = 935.0
        self.assertIn((935.0, "r1"), self.down(935.0, BROKEN, None))


ROUNDING = 1e-6
"""Seconds by which a pause's end may differ, computed as a sum or remembered."""


ANSWERS = st.tuples(
    st.sampled_from(["ok", "absent", "skipped", "429", "broken", "hung", "refused"]),
    st.floats(0, 120),  # until the answer comes
    st.none() | st.floats(0, 120),  # Retry-After
)
CALM = ("ok", 1.0, None)


class AnyAnswersTests(SynchronousTestCase):
    @given(
        answers=st.lists(ANSWERS, min_size=10, max_size=60), seed=st.integers(0, 2**32)
    )
    def test_any_answers(
        self, answers: list[tuple[str, float, float | None]], seed: int
    ) -> None:
        """With any responses, the limits hold and no resource is forgotten."""
        schedule = Turns(BUSY_INTERVALS, jitter=Random(seed).random)
        coming: dict[str, tuple[float, str, float | None]] = {}
        refreshed_at = dict.fromkeys(BUSY_INTERVALS, 0.0)
        now = quiet_until = 0.0

        def start_all() -> None:
            while (name := schedule.start_next(now)) is not None:
                self.assertGreaterEqual(now, quiet_until - ROUNDING, name)
                self.assertNotIn(name, coming)
                word, seconds, wait = answers.pop(0) if answers else CALM
                coming[name] = now + seconds, word, wait
            self.assertLessEqual(len(coming.keys() - {"peers"}), 1)

        calm_since = float("inf")
        while now < calm_since + 1.5 * HOUR:
            start_all()
            if not answers:
                calm_since = min(calm_since, now)
            wake_at = schedule.wake_at() or float("inf")
            self.assertGreater(wake_at, now, "nothing to take, and no sleep")
            now = min([wake_at, *(at for at, _, _ in coming.values())])
            for name in [name for name, (at, _, _) in coming.items() if at <= now]:
                _, word, wait = coming.pop(name)
                if word == "429":
                    pause = schedule.rate_limited(name, now, wait)
                    quiet_until = max(quiet_until, now + pause)
                    continue
                if name == "peers" and word in {"absent", "skipped"}:
                    word = "broken"
                end(schedule, name, word, now)
                if word == "ok":
                    refreshed_at[name] = now
        for name, at in refreshed_at.items():
            self.assertGreater(at, calm_since, name)
