"""The refresher with a fake clock, and a dictionary as its upstream."""

import gc
import re
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred, fail, passthru, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from api_exporter.attention.history import Sample
from api_exporter.netbird.resources import OFF, PROBE_PATH
from api_exporter.ports import Compute, ResponseBody, UpstreamError
from api_exporter.refresh.budget import SLOTS, Budget
from api_exporter.refresh.compute import compute_at_once
from api_exporter.refresh.network import AccountNetwork
from api_exporter.refresh.pipeline import Log
from api_exporter.refresh.refresher import WITHDRAWAL_RETRY
from api_exporter.refresh.request_plans import RequestPlan
from api_exporter.refresh.transitions import Event, Failed, Read
from api_exporter.subjects.table import RESOURCES, selection
from api_exporter.upstream.refusal import response_error
from tests.logbook import logbook
from tests.parts import DelayedCompute, account_settings, clocks_of

Reply = bytes | UpstreamError | Deferred[bytes]

PEER = b'[{"id":"p1","name":"db","connected":true}]'
GROUP = b'[{"id":"g1","name":"All","peers":[{"id":"p1"}],"peers_count":1}]'
DOWN = UpstreamError("http_5xx", "500: broken")
UNKNOWN_PATH = UpstreamError("not_found", "404", unsupported=True)

GOOD = {
    "peers": PEER,
    "groups": GROUP,
    "accounts": b"[]",
    "users": b'[{"id":"a|b/c"},{"id":"me|1","is_current":true}]',
    "tokens": b'[{"id":"t","expiration_date":"2027-01-01T00:00:00Z"}]',
}
"""Responses. The tokens are those of the current user."""

TOKENS_PATH = "api/users/me%7C1/tokens"


def foreign(status: int) -> UpstreamError:
    """Return the error of a response that is not NetBird's own."""
    page = Headers({"Content-Type": ["text/html"]})
    return response_error(status, page, b"<html>", url="", now=0.0, secrets=())


REPLIES: dict[str, bytes | UpstreamError] = {
    "broken": DOWN,
    "lost": UNKNOWN_PATH,
    "blocked": UpstreamError("forbidden", "403: user is blocked"),
    "limited": UpstreamError("rate_limited", "429"),
    "paused": UpstreamError("rate_limited", "429", retry_after=3600.0),
    "stopped": UpstreamError("rate_limited", "429", retry_after=1e6),
    "traced": UpstreamError("http_5xx", "500: no", request_id="dc1djo5"),
    "malformed": b'{"message":"hello"}',
    "nothing": b"",
    "blanks": b" \r\n",
    "walled": foreign(401),
    "cut": foreign(404),
    "throttled": foreign(429),
    "empty": b"[]",
    "strangers": b'[{"id":"a"}]',
}

STEP = re.compile(r"(.*?) ?\+(\d+): (.+)")

NO_ROUTE = "the proxy has no route for /api/"
IN_FRONT = "something in front of NetBird answers"

STORIES = f"""
One failing resource leaves all others fresh.
groups broken +0: groups failing http_5xx, peers fresh
+1000: groups failing http_5xx, peers fresh, accounts fresh

A missing resource that was known has failed, and keeps its interval.
+0: groups fresh
groups lost +301: groups failing not_found
groups ok +300: groups fresh

A missing resource is unsupported when its metrics expire.
+0: groups fresh
groups lost +1250: groups unsupported

If the peers go missing, too, missing resources are requested again.
groups lost +0: groups unsupported
peers lost +31: groups unsupported, peers failing not_found
groups ok, peers ok +301: groups fresh, peers fresh

An upstream without peers is a failure: every real one has them.
peers lost +0: peers failing not_found
+61: peers failing not_found

A proxy that knows no path makes no resource unsupported.
peers lost, groups lost, accounts lost +0: peers failing not_found, groups starting
+4: accounts failing not_found
peers ok, groups ok, accounts ok +31: peers fresh, groups fresh, accounts fresh

A body that is no list is a failure of its own kind.
peers malformed +0: peers failing decode

An empty response is a failure that names the cause.
peers nothing +0: peers failing decode
log warning cannot refresh peers: an empty response: {NO_ROUTE} reason=decode

A response of blanks is as empty.
peers blanks +0: peers failing decode
log warning cannot refresh peers: an empty response: {NO_ROUTE} reason=decode

A 429 that is not NetBird's delays its own path alone.
groups throttled +29: groups failing http_4xx, peers fresh, accounts fresh
groups ok +2: groups fresh
log warning cannot refresh groups: {IN_FRONT} 429 (a web page) reason=http_4xx
log info groups can be refreshed again after 1 failure

Tokens that something in front of NetBird refuses have failed: NetBird refuses nothing.
tokens walled +0: access_tokens failing http_4xx
tokens cut +31: access_tokens failing not_found

The exporter's own tokens are requested once its user is known.
users strangers +0: access_tokens starting
users ok +601: access_tokens fresh

Tokens are requested as soon as their user is known.
users broken +0: access_tokens starting
users ok +4: access_tokens fresh

Tokens that were withdrawn with their user are not up.
+0: access_tokens fresh
users broken +1900: access_tokens starting
users ok +601: access_tokens fresh
users strangers +1000: access_tokens starting

Tokens that may not be read are no error.
tokens blocked +0: access_tokens unsupported

Tokens refused to a user that is blocked for a moment have failed, and return soon.
+0: access_tokens fresh
tokens blocked +601: access_tokens failing forbidden
tokens ok +34: access_tokens fresh

Tokens refused to a user that was blocked at the start are requested again.
tokens blocked +0: access_tokens unsupported
peers blocked +31: access_tokens unsupported
peers ok, tokens ok +34: access_tokens fresh

A 429 is a failure, which is logged.
groups limited +0: groups failing rate_limited
log warning cannot refresh groups: 429 reason=rate_limited

A Retry-After of an hour removes no metrics.
+0: groups fresh
groups paused +301: groups failing rate_limited
groups ok +300: groups fresh, peers fresh, accounts fresh

Metrics that expire in a longer pause are not up, without a failure.
+0: groups fresh
groups stopped +301: groups failing rate_limited
peers stopped +1000: peers failing rate_limited, accounts expired

A resource that the NetBird API lacks is no failure, and does not fail with the peers.
groups lost +31: groups unsupported
peers broken +5400: groups unsupported, peers failing http_5xx
log info the NetBird API does not have groups
log warning cannot refresh peers: 500: broken reason=http_5xx
log warning metrics of peers have expired: no successful refresh for 300 s

A failure is logged when it begins and when it ends, not every time.
+0: peers fresh
peers broken +120: peers failing http_5xx
peers ok +61: peers fresh
log warning cannot refresh peers: 500: broken reason=http_5xx
log info peers can be refreshed again after 18 failures

The end of a failure is logged even for an answer that was logged before.
groups lost +60: groups unsupported
groups broken +3800: groups failing http_5xx
groups lost +3800: groups unsupported
groups broken +3800: groups failing http_5xx
log info the NetBird API does not have groups
log warning cannot refresh groups: 500: broken reason=http_5xx
log info the NetBird API does not have groups
log warning cannot refresh groups: 500: broken reason=http_5xx

An outage of any length is one line, one for the expiry, and one more at its end.
+0: peers fresh
peers broken, groups broken, accounts broken +4000: peers failing http_5xx
peers ok, groups ok, accounts ok +40: peers fresh, groups fresh
log warning cannot refresh peers: 500: broken reason=http_5xx
log warning metrics of peers have expired: no successful refresh for 300 s
log info peers can be refreshed again after 169 failures

If a withdrawal was logged, its end is logged, too.
+0: groups fresh
groups hung +1250: groups expired
groups ok +1: groups fresh
log warning metrics of groups have expired: no successful refresh for 900 s
log warning metrics of accounts have expired: no successful refresh for 900 s
log info groups can be refreshed again
log info accounts can be refreshed again

The log line of a refused request has its request id.
groups traced +0: groups failing http_5xx
log warning cannot refresh groups: 500: no reason=http_5xx request_id=dc1djo5
"""


class Bench(AccountNetwork):
    """A network with some collectors and a dictionary as its upstream."""

    def __init__(
        self,
        *collectors: str,
        important_groups: tuple[str, ...] = (),
        test_connection: Callable[[], Awaitable[None]] | None = None,
        compute: Compute = compute_at_once,
        beside: tuple[str, ...] = (),
        logs: Mapping[str, Log] | None = None,
        budget: Budget | None = None,
        **replies: Reply,
    ) -> None:
        self.replies: dict[str, Reply] = {
            "peers": PEER,
            "groups": GROUP,
            "accounts": b"[]",
            **replies,
        }
        self.asked: list[str] = []
        self.registry = CollectorRegistry()
        self.clock = Clock()
        super().__init__(
            fetch=self.fetch,
            plan=RequestPlan(
                budget or Budget(),
                selection(
                    collectors or ("peers", "groups"),
                    {"current_user": OFF},
                    also_request=beside,
                ),
                "",
                "",
            ),
            clocks=clocks_of(self.clock, self.now),
            registry=self.registry,
            test_connection=test_connection,
            compute=compute,
            settings=account_settings(important_groups=important_groups),
            logs=logs or {},
        )

    def fetch(self, path: str, _patience: float = 0) -> Deferred[ResponseBody]:
        names = {TOKENS_PATH: "tokens"} | {r.path: r.name for r in RESOURCES}
        name = names.get(path, path)
        self.asked.append(name)
        reply = self.replies.get(name, b"[]")
        if isinstance(reply, Deferred):
            return reply.addCallback(ResponseBody)
        if isinstance(reply, UpstreamError):
            return fail(reply)
        return succeed(ResponseBody(reply))

    def now(self) -> float:
        return 1_800_000_000 + self.clock.seconds()

    def start(self) -> "Bench":
        self.startService()
        self.advance(0)
        return self

    def reloaded(
        self, *collectors: str, beside: tuple[str, ...] = (), **replies: Reply
    ) -> "Bench":
        """Stop, and return a network that begins with the state of this one."""
        self.stopService()
        after = Bench(*collectors, beside=beside)
        after.replies.update(replies)
        after.clock.advance(self.clock.seconds())
        Deferred.fromCoroutine(after.begin_with(self))
        return after

    def samples(self) -> list[Sample]:
        """Return the steps of the last hours at which the peers were read."""
        return [one for one in self.history.samples(self.now()) if one is not None]

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
    def test_stories(self) -> None:
        """All stories: the states of resources, and the lines of the log."""
        for story in STORIES.strip().split("\n\n"):
            self.play(story)

    def play(self, story: str) -> None:
        """Go through a story. A line is a step, or an expected line of the log.

        `peers ok, groups lost +30: peers fresh` means: the NetBird API gives these
        responses from now on. After 30 seconds peers are fresh.
        """
        book, lines = logbook(self), []
        bench = Bench("peers", "users", "groups")
        bench.replies.update(users=GOOD["users"], tokens=GOOD["tokens"])
        for line in story.splitlines()[1:]:
            if line.startswith("log "):
                lines.append(line.removeprefix("log "))
                continue
            step = STEP.fullmatch(line)
            assert step is not None, line
            for name, word in re.findall(r"(\w+) (\w+)", step[1]):
                if isinstance(waiting := bench.replies.get(name), Deferred):
                    waiting.callback(GOOD[name])
                bench.replies[name] = (
                    Deferred()
                    if word == "hung"
                    else ({"ok": GOOD[name]} | REPLIES)[word]
                )
            if not bench.running:
                bench.start()
            bench.advance(float(step[2]))
            for name, state in re.findall(r"(\w+) ([^,]+)", step[3]):
                known = bench.states[name]
                found: list[str] = [known.word(bench.now())]
                if known.error is not None:
                    found.append(known.error.reason)
                self.assertEqual(state.split(), found, f"{line} in:\n{story}")
        if lines:
            self.assertEqual(lines, book.lines(), story)

    def test_observed(self) -> None:
        """The history gets each good refresh of the peers, changed or not."""
        bench = Bench().start()
        bench.advance(61)
        bench.replies["peers"] = DOWN
        bench.advance(400)  # nor when they are withdrawn
        self.assertEqual([Sample(1, 1, None)] * 2, bench.samples())

    def test_unchanged(self) -> None:
        """An equal body is not rendered again; equal records are the same."""
        a, b = b'{"id":"a"}', b'{"id":"b"}'
        bench = Bench(peers=b"[%b,%b]" % (a, b), groups=b"[]").start()
        before, page = bench.pages.whole(), bench.page()
        for seconds, body in (30, b"[%b,%b]" % (a, b)), (60, b"[%b,%b]" % (b, a)):
            bench.replies["peers"] = body
            bench.advance(30)
            self.assertIs(before, bench.pages.whole())
            state = bench.states["peers"]
            self.assertEqual(1_800_000_000 + seconds, state.last_success)
        known = bench.inventory.peers or ()
        bench.replies["peers"] = b'[%b,{"id":"b","name":"new"}]' % a
        bench.advance(31)
        self.assertNotEqual(page, bench.page())
        peers = bench.inventory.peers or ()
        self.assertIs(known[0], peers[0])
        self.assertEqual("new", peers[1].name)

    def test_withdrawal_with_a_defect(self) -> None:
        """A failed withdrawal is retried, whichever step has failed."""
        for which, name in (("pipeline", "withdraw"), ("states", "record")):
            bench = Bench("setup_keys", setup_keys=b'[{"id":"k"}]').start()
            part = getattr(bench, which)
            self.patch(part, name, failing_once(getattr(part, name)))
            bench.replies["setup_keys"] = DOWN
            bench.advance(901)
            self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
            bench.advance(WITHDRAWAL_RETRY)
            self.assertNotIn("netbird_api_setup_key_valid", bench.page())
            self.assertTrue(bench.states["setup_keys"].withdrawn)

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

    def test_tokens_of_a_forgotten_user(self) -> None:
        """Tokens that arrive when their user is no longer known are not published."""
        bench = Bench("users", users=GOOD["users"], tokens=b"[]").start()
        bench.replies["users"] = DOWN
        bench.replies["tokens"] = late = Deferred[bytes]()
        bench.advance(1900)
        self.assertIsNone(bench.inventory.users)
        late.callback(GOOD["tokens"])
        bench.advance(0)
        self.assertNotIn("netbird_api_access_token", bench.page())

    def test_rejected_records(self) -> None:
        """Rejected records are left out and counted; the first are logged."""
        book = logbook(self)
        bench = Bench(peers=b'[{"id":"a"},{"id":7},{"id":"c"}]').start()
        state = bench.states["peers"]
        self.assertEqual((2, 1), (state.records, state.rejected))
        [line] = [line for line in book.lines() if "left out" in line]
        self.assertIn("peers[1]", line)
        bench.replies["peers"] = b'[{"id":"b"},{"id":7},{"id":"c"}]'
        bench.advance(65)
        self.assertIn('peer_id="b"', bench.page())
        self.assertEqual(1, sum("left out" in line for line in book.lines()))
        book = logbook(self)
        Bench(peers=b'[{"id":"a"}' + b',{"id":7}' * 1000 + b"]").start()
        self.assertEqual(21, len(book.lines()))
        self.assertIn("980 more records of peers left out", book.lines()[-1])

    def test_defect(self) -> None:
        """A defect or cancellation is a failure with a retry."""
        for end, logged in (
            (lambda waiting: waiting.errback(ZeroDivisionError("oops")), 1),
            (Deferred.cancel, 0),
        ):
            waiting: Deferred[bytes] = Deferred()
            bench = Bench(groups=waiting).start()
            bench.replies["groups"] = GROUP
            end(waiting)
            self.assertEqual(logged, len(self.flushLoggedErrors(ZeroDivisionError)))
            error = bench.states["groups"].error
            assert error is not None
            self.assertEqual("internal", error.reason)
            bench.advance(301)
            self.assertIs(True, bench.states["groups"].up)

    def test_defect_that_stays(self) -> None:
        """A defect is logged when it begins, not at every refresh."""
        bench = Bench("peers").start()
        for reply, failures, logged in (
            *((None, n, int(n == 1)) for n in range(1, 4)),
            (PEER, 0, 0),
            (None, 1, 1),
        ):
            bench.replies["peers"] = waiting = Deferred[bytes]()
            bench.advance(30)
            if reply is None:
                waiting.errback(ZeroDivisionError("oops"))
            else:
                waiting.callback(reply)
            bench.advance(0)
            self.assertEqual(failures, bench.states["peers"].failures)
            self.assertEqual(logged, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_defect_afterwards(self) -> None:
        """A defect in the log after a refresh frees its slot, and is logged as such."""
        for ending in (Read, Failed):
            bench = Bench(groups=DOWN if ending is Failed else GROUP)
            real = bench.states.record

            def broken(name: str, event: Event) -> None:
                if isinstance(event, ending):  # noqa: B023 - of this turn
                    raise ZeroDivisionError("oops")
                real(name, event)  # noqa: B023 - of this turn

            self.patch(bench.states, "record", broken)
            book = logbook(self)
            bench.start()
            self.assertIn(
                "internal error while refreshing groups", " ".join(book.lines())
            )
            self.assertGreater(len(self.flushLoggedErrors(ZeroDivisionError)), 0)
            self.patch(bench.states, "record", real)
            bench.replies["groups"] = GROUP
            bench.advance(330)
            self.assertIs(True, bench.states["groups"].up)
            self.assertIs(True, bench.states["peers"].up)
            self.assertEqual([], self.flushLoggedErrors())

    def test_failures_keep_nothing(self) -> None:
        """A body that could not be decoded is freed: its error has no traceback."""
        bench = Bench("peers").start()
        bad = b'[{"id":7,"name":"%s"}' % (b"x" * 2_000_000)
        gc.disable()
        self.addCleanup(gc.enable)
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for end in b"]", b"":
            bench.replies["peers"] = bad + end
            bench.advance(30)
            self.assertIsNotNone(bench.states["peers"].error)
            del bench.replies["peers"]
            self.assertLess(tracemalloc.get_traced_memory()[0], 1_000_000)

    def test_connection_test(self) -> None:
        """Other resources wait for the end of the connection test, also if it fails."""
        for outcome in (succeed(None), fail(UpstreamError("connect", "lost"))):
            test: Deferred[None] = Deferred()
            bench = Bench(test_connection=partial(passthru, test)).start()
            bench.advance(0)
            self.assertEqual(["peers"], bench.asked)
            outcome.chainDeferred(test)
            bench.advance(0)
            self.assertIs(True, bench.states["groups"].up)
            self.flushLoggedErrors(UpstreamError)

    def test_silent_connection_test(self) -> None:
        """A connection test without an answer does not delay the first refreshes."""
        bench = Bench(test_connection=Deferred[None]).start()
        self.assertEqual(["peers"], bench.asked)
        for path in ("api/peers", "api/elsewhere"):
            bench.refresher.mark_silent(path)
            bench.advance(0)
            self.assertEqual(["peers"], bench.asked)
        bench.refresher.mark_silent(PROBE_PATH)
        bench.advance(0)
        self.assertIs(True, bench.states["groups"].up)
        bench.stopService()
        bench.refresher.mark_silent(PROBE_PATH)
        self.assertEqual([], bench.clock.getDelayedCalls())

    def test_stop(self) -> None:
        """A stop cancels running tasks and leaves no timer."""
        cancelled: list[object] = []
        waiting: Deferred[bytes] = Deferred(cancelled.append)
        bench = Bench(groups=waiting).start()
        self.successResultOf(bench.stopService())
        self.assertEqual(([waiting], []), (cancelled, bench.clock.getDelayedCalls()))
        self.assertIsNone(bench.states["groups"].ended_at)

    def test_stop_of_another(self) -> None:
        """A stop frees slots for another account with the same token."""
        budget = Budget()
        hung = [
            Bench("groups", budget=budget, groups=Deferred[bytes]()).start()
            for _ in range(SLOTS)
        ]
        last = Bench("groups", budget=budget).start()
        self.assertNotIn("groups", last.asked)
        self.successResultOf(hung[0].stopService())
        hung[0].advance(0)  # the clock of the newest change
        self.assertIn("groups", last.asked)

    def test_stop_while_rendering(self) -> None:
        """A stop waits for no computation, and publishes no result of it."""
        compute = DelayedCompute()
        bench = Bench(compute=compute).start()
        self.assertEqual(1, len(compute.waiting))
        self.successResultOf(bench.stopService())
        compute.go()
        self.assertEqual("", bench.page())

    def test_stop_while_withdrawing(self) -> None:
        """Expired metrics whose removal a reload cancels are removed after it."""
        bench = Bench("setup_keys", setup_keys=b'[{"id":"k"}]').start()
        bench.replies["setup_keys"] = DOWN
        self.patch(bench.pipeline, "withdraw", lambda _: Deferred())
        bench.advance(901)
        after = bench.reloaded("setup_keys", setup_keys=DOWN).start()
        after.advance(WITHDRAWAL_RETRY)
        self.assertNotIn("netbird_api_setup_key_valid", after.page())

    def test_adopted_failure_of_a_log(self) -> None:
        """The end of a failure from before a reload has a line."""
        bench = Bench(beside=("events",), events=DOWN).start()
        after = bench.reloaded(beside=("events",), events=b"[]")
        book = logbook(self)
        after.start().advance(1)
        ended = "events can be refreshed again after 1 failure"
        self.assertIn(ended, "\n".join(book.lines()))

    def test_two_at_once(self) -> None:
        """Two lists that are computed at the same time are both published."""
        compute = DelayedCompute()
        bench = Bench(compute=compute).start()
        for replies in ({}, {"peers": b"[]", "groups": b"[]"}):
            bench.replies.update(replies)
            bench.advance(301)
            for _ in range(10):
                compute.go()
                bench.advance(0)
        self.assertEqual((), bench.inventory.peers)
        self.assertEqual((), bench.inventory.groups)
