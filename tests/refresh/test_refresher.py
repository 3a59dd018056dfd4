"""The refresher with a fake clock, and a dictionary as its upstream."""

import gc
import tracemalloc
from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.metric_filter import EVERYTHING, MetricFilter
from api_exporter.netbird.resources import OFF, PROBE_PATH, RESOURCES
from api_exporter.ports import Compute, ResponseBody, UpstreamError
from api_exporter.refresh.compute import compute_at_once
from api_exporter.refresh.network import AccountNetwork, NetworkOptions
from api_exporter.refresh.refresher import WITHDRAWAL_RETRY
from api_exporter.telemetry.freshness import Freshness
from api_exporter.telemetry.history import PeerCount
from api_exporter.world import World
from tests.logbook import logbook
from tests.parts import DelayedCompute, quota

Reply = bytes | UpstreamError | Deferred[bytes]

PEER = b'[{"id":"p1","name":"db","connected":true}]'
GROUP = b'[{"id":"g1","name":"All","peers":[{"id":"p1"}],"peers_count":1}]'
DOWN = UpstreamError("http_5xx", "500: broken")
UNKNOWN_PATH = UpstreamError("not_found", "404", unsupported=True)


class Bench(AccountNetwork):
    """A network with some collectors and a dictionary as its upstream."""

    metric_filter = EVERYTHING
    important_groups: tuple[str, ...] = ()
    test_connection: Callable[[], Awaitable[None]] | None = None
    compute: Compute = staticmethod(compute_at_once)  # type: ignore[assignment, arg-type]

    def __init__(self, *collectors: str, **replies: Reply) -> None:
        self.replies: dict[str, Reply] = {
            "peers": PEER,
            "groups": GROUP,
            "accounts": b"[]",
            **replies,
        }
        self.asked: list[str] = []
        self.clock = Clock()
        super().__init__(
            fetch=self.fetch,
            quota=quota(
                collectors or ("peers", "groups"),
                {"current_user": OFF},
                metric_filter=self.metric_filter,
            ),
            world=World(
                self.clock, lambda: 1_800_000_000 + self.clock.seconds(), lambda: 0.5
            ),
            registry=CollectorRegistry(),
            test_connection=self.test_connection,
            compute=self.compute,
            options=NetworkOptions(
                important_groups=self.important_groups, detail=self.metric_filter.detail
            ),
        )

    def fetch(self, path: str, _patience: float = 0) -> Deferred[ResponseBody]:
        name = {r.path: r.name for r in RESOURCES}.get(path, path)
        self.asked.append(name)
        reply = self.replies.get(name, b"[]")
        if isinstance(reply, Deferred):
            return reply.addCallback(ResponseBody)
        if isinstance(reply, UpstreamError):
            return fail(reply)
        return succeed(ResponseBody(reply))

    def start(self) -> "Bench":
        self.startService()
        self.advance(0)
        return self

    def counts(self) -> list[PeerCount]:
        return [count for run in self.history.runs(self._now()) for count in run]

    def page(self) -> str:
        return self.text().decode()

    def advance(self, seconds: float) -> None:
        """Let time pass in steps of a second, and run all that is due."""
        for step in [1.0] * int(seconds) + [seconds % 1] + [0.0] * 50:
            self.clock.advance(step)


def failing_once(really: Callable[..., object]) -> Callable[..., object]:
    failures = [ZeroDivisionError("oops")]

    def function(*given: object) -> object:
        if failures:
            raise failures.pop()
        return really(*given)

    return function


class RefresherTests(SynchronousTestCase):
    def test_published(self) -> None:
        """After the first refreshes the page has the metrics of all resources."""
        page = Bench().start().page()
        self.assertIn('netbird_api_peers{connected="true"} 1\n', page)
        self.assertIn(
            'netbird_api_group_peers_connected{group_id="g1",group="All"} 1\n', page
        )

    def test_joins_wait_for_both_sides(self) -> None:
        """A joined family is missing while one of its sides is unknown."""
        bench = Bench(peers=DOWN).start()
        self.assertIn("netbird_api_group_peers{", bench.page())
        self.assertNotIn("netbird_api_group_peers_connected", bench.page())
        bench.replies["peers"] = PEER
        bench.advance(40)
        self.assertIn("netbird_api_group_peers_connected", bench.page())

    def test_period(self) -> None:
        """A resource is requested every period, give or take a tenth."""
        bench = Bench().start()
        bench.advance(301)
        self.assertEqual(11, bench.asked.count("peers"))
        self.assertEqual(2, bench.asked.count("groups"))

    def test_observed(self) -> None:
        """The history gets each good refresh of the peers, changed or not."""
        bench = Bench().start()
        bench.advance(61)
        bench.replies["peers"] = DOWN
        bench.advance(400)  # nor when they are withdrawn
        counts = bench.counts()
        self.assertEqual([1, 1], [count.connected for count in counts])
        self.assertEqual([1, 1], [count.peers for count in counts])

    def test_unchanged_body(self) -> None:
        """A body that has not changed is recorded and not rendered again."""
        bench = Bench().start()
        before = bench.pages.whole()
        bench.advance(31)
        self.assertIs(before, bench.pages.whole())
        freshness = bench.telemetry.freshness["peers"]
        self.assertEqual(1_800_000_030, freshness.last_success)

    def test_another_order(self) -> None:
        """An equal body in another order is not rendered again."""
        a, b = b'{"id":"a"}', b'{"id":"b"}'
        bench = Bench(peers=b"[%b,%b]" % (a, b), groups=b"[]").start()
        before, page = bench.pages.whole(), bench.page()
        bench.replies["peers"] = b"[%b,%b]" % (b, a)
        bench.advance(31)
        self.assertIs(before, bench.pages.whole())
        bench.replies["peers"] = b"[%b]" % b
        bench.advance(31)
        self.assertNotEqual(page, bench.page())

    def test_only_readers_are_rendered(self) -> None:
        """When peers change, only collectors that read peers are rendered again."""
        bench = Bench("peers", "setup_keys", setup_keys=b'[{"id":"k"}]').start()
        before = bench.pages.whole().pieces
        bench.replies["peers"] = b"[]"
        bench.advance(31)
        after = bench.pages.whole().pieces
        self.assertIsNot(before[0], after[0])
        self.assertIs(before[-1], after[-1])

    def test_failure_keeps_the_page(self) -> None:
        """A failed refresh keeps the metrics and reports its failure."""
        bench = Bench().start()
        before = bench.page()
        bench.replies["peers"] = DOWN
        bench.advance(60)
        self.assertEqual(before, bench.page())
        freshness = bench.telemetry.freshness["peers"]
        self.assertIs(False, freshness.up)
        self.assertEqual(1_800_000_000, freshness.last_success)

    def test_too_old(self) -> None:
        """After five minutes without success the peers' families end, others stay."""
        bench = Bench("peers", "groups", "setup_keys", setup_keys=b'[{"id":"k"}]')
        bench.start()
        bench.replies["peers"] = DOWN
        bench.advance(299)
        self.assertIn("netbird_api_peer_connected", bench.page())
        bench.advance(2)
        self.assertNotIn("netbird_api_peer", bench.page())
        self.assertNotIn("netbird_api_group_peers_connected", bench.page())
        self.assertIn("netbird_api_group_peers{", bench.page())
        self.assertIn("netbird_api_setup_key_valid", bench.page())

    def test_withdrawal_with_a_defect(self) -> None:
        """A failed withdrawal is retried, whichever step has failed."""
        for which, name in (("pipeline", "withdraw"), ("refresh_log", "expired")):
            bench = Bench("setup_keys", setup_keys=b'[{"id":"k"}]').start()
            part = getattr(bench, which)
            self.patch(part, name, failing_once(getattr(part, name)))
            bench.replies["setup_keys"] = DOWN
            bench.advance(901)
            self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
            bench.advance(WITHDRAWAL_RETRY)
            self.assertNotIn("netbird_api_setup_key_valid", bench.page())
            self.assertTrue(bench.telemetry.freshness["setup_keys"].withdrawn)

    def test_recovery(self) -> None:
        """After a withdrawal the same body brings everything back within a period."""
        bench = Bench().start()
        before = bench.page()
        bench.replies["peers"] = DOWN
        bench.advance(400)
        bench.replies["peers"] = PEER
        bench.advance(35)
        self.assertEqual(before, bench.page())

    def test_late_answer_is_not_withdrawn(self) -> None:
        """A response that is being rendered when the old one expires stays."""
        bench = Bench().start()
        bench.replies["peers"] = late = Deferred[bytes]()
        bench.advance(299.75)

        def ticking() -> float:  # rendering takes time, and its end comes after 300 s
            bench.clock.rightNow += 0.001
            return bench.clock.rightNow

        bench.clock.seconds = ticking  # type: ignore[method-assign]
        peers = b",".join(b'{"id":"p%d","ip":"100.64.0.1"}' % n for n in range(20_000))
        late.callback(b"[" + peers + b"]")
        for _ in range(1000):
            bench.clock.advance(0)
        self.assertGreater(bench.clock.rightNow, 300)
        self.assertIn('netbird_api_peer_connected{peer_id="p1"', bench.page())

    def test_failures_do_not_spread(self) -> None:
        """One failing resource leaves all others fresh."""
        bench = Bench(groups=DOWN).start()
        bench.advance(1000)
        ups = {name: s.up for name, s in bench.telemetry.freshness.items()}
        self.assertEqual({"peers": True, "accounts": True, "groups": False}, ups)

    def test_logged_once(self) -> None:
        """A failure is logged when it begins and when it ends, not every time."""
        book = logbook(self)
        bench = Bench().start()
        bench.replies["peers"] = DOWN
        bench.advance(120)
        bench.replies["peers"] = PEER
        bench.advance(61)
        self.assertEqual(
            [
                "warning cannot refresh peers: 500: broken reason=http_5xx",
                "info peers can be refreshed again after 19 failures",
            ],
            book.lines(),
        )

    def test_unsupported(self) -> None:
        """A path that the NetBird API lacks is retried hourly, without a failure."""
        book = logbook(self)
        bench = Bench(groups=UNKNOWN_PATH).start()
        bench.advance(31)
        self.assertEqual(2, bench.asked.count("groups"))  # one answer may be wrong
        bench.advance(3500)
        self.assertEqual(2, bench.asked.count("groups"))
        bench.advance(200)
        self.assertEqual(3, bench.asked.count("groups"))
        freshness = bench.telemetry.freshness["groups"]
        self.assertEqual((None, False, None), _state(freshness))
        self.assertEqual(["info the NetBird API does not have groups"], book.lines())

    def test_lost_for_a_moment(self) -> None:
        """A missing resource that was known has failed, and keeps its interval."""
        bench = Bench().start()
        bench.replies["groups"] = UNKNOWN_PATH
        bench.advance(301)
        self.assertEqual(
            (False, True, "not_found"), _state(bench.telemetry.freshness["groups"])
        )
        bench.replies["groups"] = GROUP
        bench.advance(300)
        self.assertEqual(
            (True, True, None), _state(bench.telemetry.freshness["groups"])
        )

    def test_lost_for_good(self) -> None:
        """A resource still missing when its metrics expire becomes unsupported."""
        bench = Bench().start()
        bench.replies["groups"] = UNKNOWN_PATH
        bench.advance(1250)
        self.assertEqual(
            (None, False, None), _state(bench.telemetry.freshness["groups"])
        )
        self.assertNotIn("netbird_api_group", bench.page())

    def test_everything_gets_missing(self) -> None:
        """If the peers go missing, too, missing resources are requested again."""
        bench = Bench(groups=UNKNOWN_PATH).start()
        bench.replies["peers"] = UNKNOWN_PATH
        bench.advance(31)
        bench.replies.update(peers=PEER, groups=GROUP)
        bench.advance(301)
        self.assertEqual(
            (True, True, None), _state(bench.telemetry.freshness["groups"])
        )

    def test_everything_is_missing(self) -> None:
        """A proxy that knows no path makes no resource unsupported."""
        bench = Bench(
            peers=UNKNOWN_PATH, groups=UNKNOWN_PATH, accounts=UNKNOWN_PATH
        ).start()
        missing, waiting = (False, None, "not_found"), (None, None, None)
        states = {n: _state(s) for n, s in bench.telemetry.freshness.items()}
        self.assertEqual(
            {"peers": missing, "accounts": missing, "groups": waiting}, states
        )
        bench.replies.update(peers=PEER, groups=GROUP, accounts=b"[]")
        bench.advance(31)
        for freshness in bench.telemetry.freshness.values():
            self.assertEqual((True, True, None), _state(freshness))

    def test_peers_must_exist(self) -> None:
        """An upstream without peers is a failure: every real one has them."""
        bench = Bench(peers=UNKNOWN_PATH).start()
        freshness = bench.telemetry.freshness["peers"]
        self.assertEqual((False, None, "not_found"), _state(freshness))
        bench.advance(61)
        self.assertLess(3, bench.asked.count("peers"))

    def test_too_old_an_upstream(self) -> None:
        """An upstream that takes the path for an object's id lacks the path."""
        words = "network: routers not found"
        absence = UpstreamError("not_found", f"404: {words}", server_message=words)
        bench = Bench("networks", network_routers=absence, routes=absence).start()
        self.assertIs(False, bench.telemetry.freshness["network_routers"].supported)

    def test_own_tokens(self) -> None:
        """The exporter's own tokens are requested once its user is known."""
        users = b'[{"id":"a|b/c"},{"id":"me|1","is_current":true}]'
        tokens = b'[{"id":"t","expiration_date":"2027-01-01T00:00:00Z"}]'
        path = "api/users/me%7C1/tokens"
        bench = Bench("users", users=users, **{path: tokens}).start()
        self.assertIn(path, bench.asked)
        self.assertIn("netbird_api_access_token_expiration", bench.page())

    def test_tokens_of_another_user(self) -> None:
        """With another user's token the old user's tokens are withdrawn."""
        me, you = b'{"id":"me","is_current":%s}', b'{"id":"you","is_current":%s}'
        tokens = b'[{"id":"t","expiration_date":"2027-01-01T00:00:00Z"}]'
        bench = Bench(
            "users",
            users=b"[" + me % b"true" + b"," + you % b"false" + b"]",
            **{"api/users/me/tokens": tokens, "api/users/you/tokens": tokens},
        ).start()
        labels = 'token_id="t",token="",user_id="%s"'
        self.assertIn(labels % "me", bench.page())
        bench.replies["users"] = b"[" + me % b"false" + b"," + you % b"true" + b"]"
        bench.replies["api/users/you/tokens"] = late = Deferred[bytes]()
        bench.advance(601)
        self.assertNotIn("netbird_api_access_token", bench.page())
        self.assertFalse(bench.pipeline.knows("access_tokens"))
        self.assertIsNone(bench.telemetry.freshness["access_tokens"].up)
        late.callback(tokens)
        bench.advance(0)
        self.assertIn(labels % "you", bench.page())

    def test_tokens_of_a_forgotten_user(self) -> None:
        """Tokens that arrive when their user is no longer known are not published."""
        users = b'[{"id":"me","is_current":true}]'
        bench = Bench("users", users=users, **{"api/users/me/tokens": b"[]"}).start()
        bench.replies["users"] = DOWN
        bench.replies["api/users/me/tokens"] = late = Deferred[bytes]()
        bench.advance(1900)
        self.assertIsNone(bench.inventory.users)
        late.callback(b'[{"id":"t","expiration_date":"2027-01-01T00:00:00Z"}]')
        bench.advance(0)
        self.assertNotIn("netbird_api_access_token", bench.page())

    def test_up_over_nothing(self) -> None:
        """Tokens that were withdrawn with their user are not up."""
        for replaced in (DOWN, b'[{"id":"a"}]'):
            users = b'[{"id":"me","is_current":true}]'
            bench = Bench("users", users=users).start()
            self.assertTrue(bench.telemetry.freshness["access_tokens"].up)
            bench.replies["users"] = replaced
            bench.advance(1900)
            self.assertIsNone(bench.inventory.access_tokens)
            self.assertIsNone(bench.telemetry.freshness["access_tokens"].up)

    def test_own_tokens_refused(self) -> None:
        """If the tokens may not be read there is no family and no error."""
        users = b'[{"id":"me","is_current":true}]'
        refused = UpstreamError("forbidden", "403: admin role required")
        bench = Bench("users", users=users, **{"api/users/me/tokens": refused}).start()
        freshness = bench.telemetry.freshness["access_tokens"]
        self.assertEqual((None, False, None), _state(freshness))

    def test_own_tokens_refused_for_a_moment(self) -> None:
        """Refused tokens that were known have failed, and return soon."""
        users = b'[{"id":"me","is_current":true}]'
        tokens = b'[{"id":"t","expiration_date":"2027-01-01T00:00:00Z"}]'
        path = "api/users/me/tokens"
        bench = Bench("users", users=users, **{path: tokens}).start()
        bench.replies[path] = UpstreamError("forbidden", "403: user is blocked")
        bench.advance(601)
        freshness = bench.telemetry.freshness["access_tokens"]
        self.assertEqual((False, True, "forbidden"), _state(freshness))
        bench.replies[path] = tokens
        bench.advance(34)
        freshness = bench.telemetry.freshness["access_tokens"]
        self.assertEqual((True, True, None), _state(freshness))
        self.assertIn("netbird_api_access_token_expiration", bench.page())

    def test_blocked_at_the_start(self) -> None:
        """Tokens refused to a blocked user are requested again."""
        blocked = UpstreamError("forbidden", "403: user is blocked")
        users = b'[{"id":"me","is_current":true}]'
        path = "api/users/me/tokens"
        bench = Bench("users", users=users, **{path: blocked}).start()
        bench.replies["peers"] = blocked
        bench.advance(31)
        bench.replies.update({"peers": PEER, path: b"[]"})
        bench.advance(34)
        freshness = bench.telemetry.freshness["access_tokens"]
        self.assertEqual((True, True, None), _state(freshness))

    def test_own_user_unknown(self) -> None:
        """Without a current user no tokens are requested."""
        bench = Bench("users", users=b'[{"id":"a"}]').start()
        self.assertNotIn("tokens", "".join(bench.asked))
        self.assertIsNone(bench.telemetry.freshness["access_tokens"].ended_at)

    def test_rate_limited(self) -> None:
        """A 429 stops all requests for a while; then the peers go first."""
        book = logbook(self)
        bench = Bench(groups=UpstreamError("rate_limited", "429")).start()
        asked = len(bench.asked)
        bench.advance(14)
        self.assertEqual(asked, len(bench.asked))
        bench.advance(2)
        self.assertEqual("peers", bench.asked[asked])
        self.assertEqual(
            ["warning cannot refresh groups: 429 reason=rate_limited"], book.lines()
        )

    def test_request_id(self) -> None:
        """The log line of a refused request has its request id."""
        book = logbook(self)
        id_ = "dc1djo5qmd2oq13d8pj0"
        Bench(groups=UpstreamError("http_5xx", "500: no", request_id=id_)).start()
        self.assertEqual(
            [
                "warning cannot refresh groups: 500: no reason=http_5xx"
                f" request_id={id_}"
            ],
            book.lines(),
        )

    def test_long_pause(self) -> None:
        """A Retry-After of an hour removes no metrics."""
        limit = UpstreamError("rate_limited", "429", retry_after=3600.0)
        bench = Bench().start()
        bench.replies["groups"] = limit
        bench.advance(301)
        bench.replies["groups"] = GROUP
        bench.advance(300)
        self.assertIn("netbird_api_peer_connected", bench.page())
        ups = {name: s.up for name, s in bench.telemetry.freshness.items()}
        self.assertEqual({"peers": True, "accounts": True, "groups": True}, ups)

    def test_withdrawn_in_a_pause(self) -> None:
        """Metrics that expire in a longer pause are not up, without a failure."""
        bench = Bench().start()
        bench.replies["groups"] = limit = UpstreamError(
            "rate_limited", "429", retry_after=1e6
        )
        bench.advance(301)
        bench.replies["peers"] = limit
        bench.advance(1000)
        ups = {name: s.up for name, s in bench.telemetry.freshness.items()}
        self.assertEqual(dict.fromkeys(ups, False), ups)
        self.assertEqual("expired", bench.telemetry.freshness["accounts"].state(0))

    def test_restarted(self) -> None:
        """A request that a stop cancelled is sent after the next start."""
        bench = Bench(accounts=Deferred[bytes]()).start()
        self.successResultOf(bench.stopService())
        bench.replies["accounts"] = b"[]"
        bench.start()
        self.assertTrue(all(s.up for s in bench.telemetry.freshness.values()))

    def test_one_outage_is_one_line(self) -> None:
        """An outage of any length is one line, and one more at its end."""
        book = logbook(self)
        bench = Bench().start()
        bench.replies.update(peers=DOWN, groups=DOWN, accounts=DOWN)
        bench.advance(4000)
        bench.replies.update(peers=PEER, groups=GROUP, accounts=b"[]")
        bench.advance(40)
        withdrawn, again = "metrics of peers have expired", "peers can be refreshed"
        first, second, third = book.lines()
        self.assertIn("cannot refresh peers", first)
        self.assertIn(withdrawn, second)
        self.assertIn(again, third)

    def test_end_of_a_withdrawal(self) -> None:
        """If a withdrawal was logged, its end is logged, too."""
        book = logbook(self)
        bench = Bench().start()
        bench.replies["groups"] = Deferred[bytes]()
        bench.advance(1000)
        bench.replies["groups"].callback(GROUP)  # type: ignore[union-attr]
        bench.advance(1)
        self.assertEqual("info groups can be refreshed again", book.lines()[-1])

    def test_still_missing(self) -> None:
        """A resource that the upstream lacks does not fail with the peers."""
        book = logbook(self)
        bench = Bench(groups=UNKNOWN_PATH).start()
        bench.replies["peers"] = DOWN
        bench.advance(5400)
        freshness = bench.telemetry.freshness["groups"]
        self.assertEqual((None, False, None), _state(freshness))
        self.assertEqual(
            [], [line for line in book.lines() if "refresh groups" in line]
        )

    def test_missing_after_a_failure(self) -> None:
        """The end of a failure is logged even for an answer that was logged before."""
        book = logbook(self)
        bench = Bench(groups=UNKNOWN_PATH).start()
        bench.advance(60)
        for reply in (DOWN, UNKNOWN_PATH) * 2:
            bench.replies["groups"] = reply
            bench.advance(3800)
        missing = "info the NetBird API does not have groups"
        fails = "warning cannot refresh groups: 500: broken reason=http_5xx"
        self.assertEqual([missing, *[fails, missing] * 2], book.lines())

    def test_rejected_records(self) -> None:
        """A record that cannot be decoded is left out, counted and logged."""
        book = logbook(self)
        bench = Bench(peers=b'[{"id":"a"},{"id":7},{"id":"c"}]').start()
        freshness = bench.telemetry.freshness["peers"]
        self.assertEqual((2, 1), (freshness.records, freshness.rejected))
        [line] = [line for line in book.lines() if "left out" in line]
        self.assertIn("peers[1]", line)
        bench.replies["peers"] = b'[{"id":"b"},{"id":7},{"id":"c"}]'
        bench.advance(65)
        self.assertIn('peer_id="b"', bench.page())
        self.assertEqual(1, sum("left out" in line for line in book.lines()))

    def test_many_rejected_records(self) -> None:
        """A flood of bad records does not flood the log."""
        book = logbook(self)
        Bench(peers=b'[{"id":"a"}' + b',{"id":7}' * 1000 + b"]").start()
        self.assertEqual(21, len(book.lines()))
        self.assertIn("980 more records of peers left out", book.lines()[-1])

    def test_bad_records_that_move(self) -> None:
        """The same bad records at other places are not logged again."""
        book = logbook(self)
        bench = Bench(peers=b'[{"id":"a"},{"id":7}]').start()
        for good in range(1, 20):
            bench.replies["peers"] = (
                b'[{"id":"a"}' + b',{"id":""}' * good + b',{"id":7}]'
            )
            bench.advance(30)
        self.assertEqual(1, sum("left out" in line for line in book.lines()))

    def test_ever_new_bad_records(self) -> None:
        """Errors of records are logged once an hour at most."""
        book = logbook(self)
        bench = Bench().start()
        for number in range(240):
            bad = (b'{"id":7}', b'{"name":"x"}', b"[]")[number % 3]
            bench.replies["peers"] = b'[{"id":"a"},' + bad + b"]"
            bench.advance(30)
        count = sum("left out" in line for line in book.lines())
        self.assertTrue(2 <= count <= 3, count)

    def test_undecodable(self) -> None:
        """A body that is no list is a failure of its own kind."""
        bench = Bench(peers=b'{"message":"hello"}').start()
        self.assertEqual(
            (False, None, "decode"), _state(bench.telemetry.freshness["peers"])
        )

    def test_defect(self) -> None:
        """A defect is counted, logged with its traceback, and followed by a retry."""
        bench = Bench(groups=Deferred[bytes]())
        waiting = bench.replies["groups"]
        assert isinstance(waiting, Deferred)
        bench.start()
        waiting.errback(ZeroDivisionError("oops"))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.assertEqual(
            (False, None, "internal"), _state(bench.telemetry.freshness["groups"])
        )
        bench.replies["groups"] = GROUP
        bench.advance(301)
        self.assertIs(True, bench.telemetry.freshness["groups"].up)

    def test_defect_that_stays(self) -> None:
        """A defect is logged when it begins, not at every refresh."""
        bench = Bench("peers").start()
        for _ in range(3):
            waiting = Deferred[bytes]()
            bench.replies["peers"] = waiting
            bench.advance(30)
            waiting.errback(ZeroDivisionError("oops"))
        self.assertEqual(3, bench.telemetry.freshness["peers"].failures)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        bench.replies["peers"] = PEER
        bench.advance(30)
        waiting = Deferred[bytes]()
        bench.replies["peers"] = waiting
        bench.advance(30)
        waiting.errback(ZeroDivisionError("oops"))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_defect_afterwards(self) -> None:
        """A defect in the log after a refresh frees its slot, and is logged as such."""

        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("oops")

        for method in ("succeeded", "failed"):
            bench = Bench(groups=DOWN if method == "failed" else GROUP)
            real = getattr(bench.refresh_log, method)
            self.patch(bench.refresh_log, method, broken)
            book = logbook(self)
            bench.start()
            self.assertIn(
                "internal error while refreshing groups", " ".join(book.lines())
            )
            self.assertGreater(len(self.flushLoggedErrors(ZeroDivisionError)), 0)
            self.patch(bench.refresh_log, method, real)
            bench.replies["groups"] = GROUP
            bench.advance(330)
            self.assertIs(True, bench.telemetry.freshness["groups"].up)
            self.assertIs(True, bench.telemetry.freshness["peers"].up)
            self.assertEqual([], self.flushLoggedErrors())

    def test_failures_keep_nothing(self) -> None:
        """Bodies that could not be decoded are freed, with or without a collector."""
        bench = Bench("peers").start()
        name = b"x" * 1_000_000
        cut = b"[" + b",".join([b'{"id":"a","name":"' + name + b'"}'] * 20)
        bad = b"[" + b",".join([b'{"id":7,"name":"' + name + b'"}'] * 20) + b"]"
        gc.disable()
        self.addCleanup(gc.enable)
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for number in range(1, 21):
            bench.replies["peers"] = b" " * number + (cut if number % 2 else bad)
            bench.advance(30)
            failures = bench.telemetry.freshness["peers"].failures
            self.assertLessEqual(number, failures)
        del bench.replies["peers"]
        self.assertLess(tracemalloc.get_traced_memory()[0], 5_000_000)

    def test_stray_cancellation(self) -> None:
        """A cancellation without a stop is a defect, and refreshes continue."""
        bench = Bench(groups=Deferred[bytes]())
        waiting = bench.replies["groups"]
        assert isinstance(waiting, Deferred)
        bench.start()
        waiting.cancel()
        bench.replies["groups"] = GROUP
        self.assertEqual(
            (False, None, "internal"), _state(bench.telemetry.freshness["groups"])
        )
        bench.advance(301)
        self.assertIs(True, bench.telemetry.freshness["groups"].up)

    def test_same_records(self) -> None:
        """A record that has not changed is the same object as before."""
        bench = Bench(peers=b'[{"id":"a"},{"id":"b"}]').start()
        before = bench.inventory.peers or ()
        bench.replies["peers"] = b'[{"id":"a"},{"id":"b","name":"new"}]'
        bench.advance(31)
        after = bench.inventory.peers or ()
        self.assertIs(before[0], after[0])
        self.assertEqual("new", after[1].name)

    def test_silent_connection_test(self) -> None:
        """A connection test without an answer does not delay the first refreshes."""
        bench = Unreachable().start()
        self.assertEqual(["peers"], bench.asked)
        for path in ("api/peers", "api/elsewhere"):
            bench.on_silent(path)
            bench.advance(0)
            self.assertEqual(["peers"], bench.asked)
        bench.on_silent(PROBE_PATH)
        bench.advance(0)
        self.assertIs(True, bench.telemetry.freshness["groups"].up)
        bench.stopService()
        bench.on_silent(PROBE_PATH)
        self.assertEqual([], bench.clock.getDelayedCalls())

    def test_silent(self) -> None:
        """A request without a header allows the next resource, with a query or not."""
        bench = Bench("groups", "routes", groups=Deferred[bytes]()).start()
        self.assertEqual("groups", bench.asked[-1])
        bench.on_silent("api/groups?page=1")
        bench.advance(0)
        self.assertIs(True, bench.telemetry.freshness["routes"].up)

    def test_stop(self) -> None:
        """A stop cancels running tasks and leaves no timer."""
        cancelled: list[object] = []
        waiting: Deferred[bytes] = Deferred(cancelled.append)
        bench = Bench(groups=waiting).start()
        self.successResultOf(bench.stopService())
        self.assertEqual([waiting], cancelled)
        self.assertEqual([], bench.clock.getDelayedCalls())
        self.assertIsNone(bench.telemetry.freshness["groups"].ended_at)

    def test_stop_while_rendering(self) -> None:
        """A stop waits for no computation, and publishes no result of it."""
        for computations in (0, 1, 2):
            bench = Computing()
            bench.start()
            for _ in range(computations):
                bench.compute.go()
            self.assertEqual(1, len(bench.compute.waiting))
            self.successResultOf(bench.stopService())
            bench.compute.go()
            self.assertEqual("", bench.page())


def _state(freshness: Freshness) -> tuple[bool | None, bool | None, str | None]:
    reason = None if freshness.error is None else freshness.error.reason
    return freshness.up, freshness.supported, reason


class Computing(Bench):
    """Computations end when the test runs them."""

    def __init__(self) -> None:
        self.compute: DelayedCompute = DelayedCompute()
        super().__init__()


class OfAll(Bench):
    """Peers of the group All have series of their own."""

    metric_filter = MetricFilter(detail=frozenset({"All"}))


class Unreachable(Bench):
    """The connection test has no answer."""

    test_connection = staticmethod(Deferred[None])


class OfNothing(Bench):
    """No family is enabled."""

    metric_filter = MetricFilter(deny=("*",))


class ChoiceTests(SynchronousTestCase):
    def test_groups(self) -> None:
        """Peers have series of their own exactly while groups are known."""
        bench = OfAll("peers", groups=DOWN)
        bench.start()
        self.assertIn('netbird_api_peers{connected="true"} 1\n', bench.page())
        self.assertNotIn("peer_id", bench.page())
        bench.replies["groups"] = GROUP
        bench.advance(40)
        self.assertIn('netbird_api_peer_connected{peer_id="p1"', bench.page())
        self.assertNotIn("netbird_api_group", bench.page())
        bench.replies["groups"] = GROUP.replace(b'"p1"', b'"p2"')
        bench.advance(301)
        self.assertNotIn("peer_id", bench.page())
        bench.replies["groups"] = GROUP
        bench.advance(301)
        self.assertIn("peer_id", bench.page())
        bench.replies["groups"] = DOWN
        bench.advance(1000)
        self.assertNotIn("peer_id", bench.page())
        self.assertIn('netbird_api_peers{connected="true"} 1\n', bench.page())

    def test_nothing_wanted(self) -> None:
        """Without a family only peers and groups are requested."""
        bench = OfNothing("peers", "groups").start()
        bench.advance(61)
        self.assertEqual({"peers", "groups"}, set(bench.asked))
        self.assertEqual("", bench.page())
        self.assertEqual(1, len(bench.inventory.peers or ()))
        self.assertEqual([1, 1], [count.peers for count in bench.counts()])
