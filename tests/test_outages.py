"""Outages of the upstream: their cost, and the time until all is fresh."""

import gc
from itertools import pairwise, product
from random import Random

from twisted.python import log
from twisted.trial.unittest import SynchronousTestCase

from tests import THOROUGH, tries
from tests.logbook import logbook
from tests.parts import limiter as bucket
from tests.weather import HUNG, REFUSED, RESET, TIMEOUT, WEB_PAGE, WELL, Weather, World

HOUR = 3600.0
PEERS = "api/peers"
PERIOD = 30.0
OTHERS_WITHIN = 15.0
"""Seconds within which all is fresh, once the peers are."""


def down(until: float, *states: int, seed: int = 0) -> Weather:
    """Return one of the states at random for each request until `end`; then well."""
    chance = Random(seed)
    return lambda _, now: chance.choice(states) if now < until else WELL


def from_to(begin: float, end: float, state: int) -> Weather:
    """Return one state between two times; well before and after."""
    return lambda _, now: state if begin < now < end else WELL


class RecoveryTests(SynchronousTestCase):
    def test_recovery(self) -> None:
        """After an outage the peers return in this time, all others 15 s later."""
        for states, begins, durations, seconds in (
            ((REFUSED,), (-1.0, 1000.0), (1.0, 26.0, 60.0), 10.0),
            ((502, 503, RESET), (120.0,), (7.0, 33.0, 60.0), 10.0),
            ((REFUSED, 502), (120.0,), (290.0, 2 * HOUR), PERIOD),
            ((403, 404, WEB_PAGE, 502), (-1, 120, 123, 127), (40.0,), 10.0),
            ((401,), (-1, 120, 123, 127), (40.0,), PERIOD),
            ((404, 403), (0.06,), (5.94,), 40.0),
            ((HUNG,), (120.0,), range(1, 120, 7 if THOROUGH else 21), TIMEOUT),
        ):
            for state, begin, lasting in product(states, begins, durations):
                case, end = (state, begin, lasting), begin + lasting
                world = World(from_to(begin, end, state)).start()
                if state != HUNG:
                    world.until(end + seconds)
                    self.assertTrue(world.states["peers"].up, case)
                world.until(end + seconds + OTHERS_WITHIN)
                for name, known in world.states.items():
                    self.assertTrue(known.up, (*case, name))
                    self.assertEqual("fresh", known.word(world.now()), case)

    def test_within_a_limit(self) -> None:
        """At the default intervals a limiter sends no 429, after any start."""
        for start, hours in ((0.0, 48 if THOROUGH else 2), (299.0, 1), (2 * HOUR, 1)):
            world = World(down(start, REFUSED), limiter=bucket(6, 30)).start()
            world.until(start + 30.0)
            world.oldest = 0.0
            world.until(start + hours * HOUR)
            self.assertEqual(0, [code for *_, code in world.requests].count(429))
            self.assertLess(world.oldest, 60.0)
            for name, known in world.states.items():
                self.assertTrue(known.up, name)

    def test_asked_to_wait(self) -> None:
        """A Retry-After of half a minute is obeyed."""
        world = World(from_to(300.0, 400.0, 503))
        world.agent.retry_after = 25
        world.start().until(400)
        asked = [at for at, *rest in world.requests if rest == [PEERS, 503]]
        self.assertGreaterEqual(min(b - a for a, b in pairwise(asked)), 25)

    def test_one_path_asks_to_wait(self) -> None:
        """A long Retry-After of one path delays no other path."""
        path = "api/instance/version"
        for wait in (70, 3600 if THOROUGH else 300):
            world = World(
                lambda requested, now: 503 if requested == path and now < 10 else WELL,
                intervals={"groups": 5.0, "users": 5.0},
            )
            world.agent.retry_after = wait
            world.start().until(wait + 12.0)
            for name in ("groups", "users"):
                times = [at for at, p, _ in world.requests if p == f"api/{name}"]
                self.assertLess(max(b - a for a, b in pairwise(times)), 5.7, wait)
            [refused, again] = [at for at, p, _ in world.requests if p == path]
            self.assertApproximates(wait, again - refused, 1.0)

    def test_long_silence(self) -> None:
        """Two hours without an answer leave no long delays."""
        end = 1000 + 2 * HOUR
        for peers in (HUNG, 503):

            def weather(path: str, now: float, peers: int = peers) -> int:
                if not 1000 < now < end:
                    return WELL
                return peers if path == PEERS else HUNG

            world = World(weather).start().until(end)
            world.fresh_at(end, 1.1 * PERIOD + OTHERS_WITHIN + TIMEOUT)

    def test_any_order(self) -> None:
        """After any responses of a starting proxy all is fresh soon."""
        for seed in range(tries(20)):
            book = logbook(self)
            chance = Random(seed)
            end = chance.choice((chance.uniform(5, 600), chance.uniform(600, 7200)))
            states = chance.sample((502, 503, 404, REFUSED, HUNG), chance.randint(1, 5))
            world = World(down(end, *states, seed=seed), seed=seed).start()
            hung = TIMEOUT if HUNG in states else 0.0
            world.fresh_at(end, PERIOD + OTHERS_WITHIN + hung)
            world.until(world.clock.seconds() + 60)
            lines = book.lines()
            self.assertEqual(sorted(set(lines)), sorted(lines), (seed, states))
            supported = {s.supported for s in world.states.values()}
            self.assertEqual({True}, supported, (seed, states))


class HungPathsTests(SynchronousTestCase):
    def hung(self, *paths: str) -> World:
        return World(
            lambda path, now: HUNG if path in paths and now < HOUR else WELL
        ).start()

    def test_three(self) -> None:
        """Three paths hang for an hour: all others are as fresh as ever."""
        paths = ("api/groups", "api/networks", "api/users")
        world = self.hung(*paths)
        worst: dict[str, float] = {}
        while (now := world.clock.seconds()) < HOUR:
            for name, known in world.states.items():
                age = world.age(name)
                periods = (now if age is None else age) / known.period
                worst[name] = max(worst.get(name, 0.0), periods)
            world.until(now + 5)
        self.assertLess(worst.pop("peers"), 40 / PERIOD)
        late = {name for name, periods in worst.items() if periods > 1.5}
        # The path of the tokens is unknown without the users.
        self.assertEqual({"groups", "networks", "users", "access_tokens"}, late)
        world.until(HOUR + 900 + TIMEOUT)
        for name in late:
            self.assertLess(world.age(name) or HOUR, 900 + TIMEOUT, name)

    def test_first_round(self) -> None:
        """One path that hangs delays all others by 5 s. Of more, two hang at once, for
        the time of an attempt. The peers keep their interval.
        """
        paths = ("api/accounts", "api/groups", "api/setup-keys")
        for count, seconds in ((1, 5.0), (2, TIMEOUT), (3, TIMEOUT + 5.0)):
            world = self.hung(*paths[:count]).until(seconds + 2.0)
            unread = [p for p in world.states.values() if not p.up]
            self.assertEqual(count, len(unread), count)
            self.assertLess(world.oldest, 1.1 * PERIOD + 1.0)

    def test_hung_peers(self) -> None:
        """Peers that hang fail after one attempt, which is not retried at once."""
        world = World(from_to(100, HOUR, HUNG)).start()
        world.until(100 + 1.1 * PERIOD + TIMEOUT + 1)
        self.assertIs(False, world.states["peers"].up)
        world.until(HOUR)
        hung = [at for at, *rest in world.requests if rest == [PEERS, HUNG]]
        gaps = {round(b - a) for a, b in pairwise(hung)}
        self.assertGreaterEqual(min(gaps), 44)


class BudgetTests(SynchronousTestCase):
    def test_tight(self) -> None:
        """All is read in 1.3 times the 322 s that a stated limit takes."""
        for seed in range(5):
            world = World(down(0), seed=seed, limiter=bucket(6, 5)).start()
            world.fresh_at(0.0, 1.3 * 322)
            refused = [path for _, path, code in world.requests if code == 429]
            self.assertLessEqual(len(refused), 2, seed)
            *_, last = (path for _, path, code in world.requests if code == WELL)
            self.assertNotIn(last, refused, seed)

    def test_refused_at_the_start(self) -> None:
        """After refusals all is read in time; a limit causes two more 429s."""
        for limit, seconds in (((60, 60), 300.0), ((6, 500), 300.0), ((6, 6), 460.0)):
            world = World(down(25.0, 429), limiter=bucket(*limit)).start()
            world.until(25.0)
            begin = len(world.requests)
            world.fresh_at(25.0, seconds)
            refused = [code for *_, code in world.requests[begin:] if code == 429]
            self.assertLessEqual(len(refused), 2, limit)

    def test_no_burst(self) -> None:
        """A limiter without a burst sends only a few 429s."""
        world = World(down(0), limiter=bucket(6, 1)).start()
        world.fresh_at(0.0, 1000.0)
        self.assertLess([code for *_, code in world.requests].count(429), 10)

    def test_greedy(self) -> None:
        """Peers every 5 s at six a minute: few refusals, and a published budget."""
        name = "api_exporter_request_budget_per_minute"
        world = World(down(0), intervals={"peers": 5.0}, limiter=bucket(6, 20))
        self.assertIsNone(world.telemetry.registry.get_sample_value(name))
        world.start().until(600)
        value = world.telemetry.registry.get_sample_value(name)
        assert value is not None
        self.assertTrue(2 < value < 9, value)
        world.until(2 * HOUR)
        refused = [at for at, _, code in world.requests if code == 429]
        late = [at for at in refused if at > 600]
        for begin in range(600, int(2 * HOUR), 60):
            within = [at for at in late if begin <= at < begin + 1800]
            self.assertLessEqual(len(within), 1, refused)
        self.assertLessEqual(world.oldest, 40.0)
        standings = world.states.values()
        self.assertTrue(all(s.up and not s.withdrawn for s in standings))

    def test_long_pause(self) -> None:
        """A Retry-After of an hour is logged, and probed every few minutes."""
        world = World(from_to(1000, 1000 + 20 * 60, 429))
        world.agent.retry_after = 3600
        world.start().until(1040)
        begin = len(world.requests)
        peers = world.states["peers"]
        self.assertEqual((False, "failing"), (peers.up, peers.word(world.now())))
        world.until(1000 + 20 * 60)
        paths = [path for _, path, _ in world.requests[begin:]]
        self.assertEqual([PEERS] * 4, paths)
        world.until(1000 + 25 * 60)
        self.assertIs(True, world.states["peers"].up)
        world.until(1000 + 60 * 60)
        self.assertTrue(all(s.up for s in world.states.values()))

    def test_strict(self) -> None:
        """A limiter that hardly allows more than the peers gets few extra requests."""
        end = tries(8) * HOUR
        world = World(down(0), limiter=bucket(3, 10)).start().until(end)
        late = [at for at, _, code in world.requests if code == 429 and at > end - HOUR]
        self.assertLess(len(late), 20)
        self.assertIs(True, world.states["peers"].up)

    def test_peers_fail_after_a_limit(self) -> None:
        """Under contention, peers that fail alone do not expire other metrics."""

        def weather(path: str, now: float) -> int:
            if 690 < now < 692:
                return 429
            return 503 if path == PEERS and now > 700 else WELL

        world = World(weather).start().until(2 * HOUR)
        ended = {n for n, s in world.states.items() if s.withdrawn}
        self.assertEqual({"peers"}, ended)

    def test_short_max_age(self) -> None:
        """Under contention, a short METRICS_MAX_AGE does not expire the peers."""
        peers, limiter = {"peers": 5.0}, bucket(6, 20)
        world = World(down(0), intervals=peers, limiter=limiter, metrics_max_age=1.0)
        book = logbook(self)
        world.start().until(HOUR)
        self.assertNotIn("metrics of peers have expired", " ".join(book.lines()))


class TrafficTests(SynchronousTestCase):
    def test_day_of_outages(self) -> None:
        """A dead upstream gets few requests: peers, one other, their retries."""
        hours = tries(6)
        for state, most in ((503, 12.0), (401, 4.2), (HUNG, 3.4)):
            world = World(from_to(60, 7 * HOUR, state)).start().until(60)
            before = len(world.requests)
            world.until(60 + hours * HOUR)
            self.assertLess((len(world.requests) - before) / hours / 60, most, state)

    def test_growth(self) -> None:
        """Good and failed requests of an hour leave no object and no timer behind."""
        # A worker of trial's keeps each line until the test ends.
        for observer in log.theLogPublisher.observers:
            log.theLogPublisher.removeObserver(observer)
            self.addCleanup(log.theLogPublisher.addObserver, observer)
        states = (WELL, 503, REFUSED, RESET, WEB_PAGE, HUNG)
        world = World(lambda _, at: states[int(at // 300) % len(states)]).start()
        counts = []
        for hours in (1, 2, 3):
            world.until(hours * HOUR + 290)
            world.requests.clear()
            gc.collect()
            timers = len(world.clock.getDelayedCalls())
            counts.append((len(gc.get_objects()), timers))
        self.assertLess(counts[2][0], counts[1][0] + 100)
        self.assertEqual(counts[2][1], counts[1][1])
