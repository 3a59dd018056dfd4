"""The fetcher with a scripted server and a simulated clock."""

import gzip
from collections.abc import Sequence

from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.error import ConnectError
from twisted.internet.interfaces import (
    IAddress,
    IHostnameResolver,
    IHostResolution,
    IResolutionReceiver,
)
from twisted.internet.task import Clock
from twisted.logger import LogLevel
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.server import NOT_DONE_YET, Request
from zope.interface import implementer

from api_exporter.netbird.bodies import unpack
from api_exporter.ports import Attempt, UpstreamError
from api_exporter.settings.token import Token, TokenSource
from api_exporter.subjects.table import MAX_BODY_BYTES
from api_exporter.upstream.advice import advice
from api_exporter.upstream.agent import UpstreamAgent
from api_exporter.upstream.fetcher import Fetcher
from api_exporter.upstream.tls_policy import TlsPolicy
from tests.logbook import logbook
from tests.memory_reactor import MemoryReactorClock
from tests.parts import account_settings, clocks_of
from tests.scripted import Answer, ScriptedApi, says, silence, stall

TIMEOUT = 30.0
SECRET = "nbp_canary"


@implementer(IHostResolution, IHostnameResolver)
class NeverResolved:
    """A name resolver that never finishes; when cancelled, it has found nothing."""

    name = ""

    def resolveHostName(
        self,
        resolutionReceiver: IResolutionReceiver,  # noqa: N803 - Twisted's names
        hostName: str,  # noqa: N803
        portNumber: int = 0,  # noqa: ARG002, N803
        addressTypes: Sequence[type[IAddress]] | None = None,  # noqa: ARG002, N803
        transportSemantics: str = "TCP",  # noqa: ARG002, N803
    ) -> IHostResolution:
        self.name = hostName
        resolutionReceiver.resolutionBegan(self)
        return self

    def cancel(self) -> None:
        pass


class Bench:
    """A fetcher with a scripted server, a clock and its callbacks."""

    def __init__(
        self,
        *answers: Answer,
        attempts: int = 3,
        longest_body: int = 1000,
        account: str | None = None,
        token: TokenSource = lambda: Token(SECRET),
        url: str = "http://upstream.example",
    ) -> None:
        self.api = ScriptedApi(peers=list(answers))
        self.clock = Clock()
        self.clock.advance(99.0)
        self.agent = self.api.agent()
        self.seen: list[Attempt] = []
        self.silent: list[str] = []
        self.upstream = Fetcher(
            agent=self.agent,
            token=token,
            on_attempt=self.seen.append,
            on_silent=self.silent.append,
            longest_body=longest_body,
            settings=account_settings(
                upstream_api_url=url,
                http_timeout=TIMEOUT,
                api_retry_attempts=attempts,
                upstream_account=account,
            ),
            clocks=clocks_of(self.clock, lambda: 1_799_999_901 + self.clock.seconds()),
        )

    def fetch(self, seconds: float = 60.0) -> Deferred[bytes]:
        fetched = self.upstream.fetch("api/peers", seconds)
        self.agent.flush()
        return fetched.addCallback(unpack)

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.agent.flush()


class FetchTests(SynchronousTestCase):
    def failing(self, *answers: Answer) -> UpstreamError:
        """Return the error of one failed attempt."""
        bench = Bench(*answers, attempts=1)
        error = self.failureResultOf(bench.fetch(), UpstreamError).value
        self.assertEqual([], bench.clock.getDelayedCalls())
        assert isinstance(error, UpstreamError)
        return error

    def test_request(self) -> None:
        """Each request has the token, the User-Agent and gzip."""
        bench = Bench(says(200))
        bench.fetch()
        [(path, headers)] = bench.api.requests
        self.assertEqual("/api/peers", path)
        self.assertEqual(f"Bearer {SECRET}", headers["authorization"])
        self.assertEqual("gzip", headers["accept-encoding"])
        self.assertTrue(headers["user-agent"].startswith("api-exporter/"))

    def test_account(self) -> None:
        """An account is in the query of each request, also the probe's."""
        for account, queries in (
            ("d1f9~x", ["?account=d1f9~x", "?account=d1f9~x", "?a=1&account=d1f9~x"]),
            (None, ["", "", "?a=1"]),
        ):
            bench = Bench(says(200), account=account)
            bench.fetch()
            Deferred.fromCoroutine(bench.upstream.log_reachability())
            bench.upstream.fetch("api/peers?a=1", 60.0)
            bench.agent.flush()
            self.assertEqual(queries, bench.api.queries)
            self.assertEqual("api/peers", bench.seen[0].path)

    def test_token_in_records(self) -> None:
        """Records do not repeat the token, even if the server does."""
        secret = 4 * SECRET
        answer = says(200, b'["%b"]' % secret.encode())
        bench = Bench(answer, token=lambda: Token(secret))
        self.assertEqual(b'["<token>"]', self.successResultOf(bench.fetch()))

    def test_upgrade(self) -> None:
        """A 426 is about TLS only where the URL has none."""
        tls = "the server speaks TLS on this port, not plain HTTP; write https://"
        other = "the server expects another protocol on this port, such as HTTP/2"
        for url, reason, words in (
            ("http://upstream.example", "tls", tls),
            ("https://upstream.example", "decode", other),
        ):
            for upgrade in ("h2c", "websocket", "TLS/1.2"):
                bench = Bench(says(426, b"", Upgrade=upgrade), url=url)
                error = self.failureResultOf(bench.fetch(), UpstreamError).value
                self.assertEqual(reason, error.reason)
                self.assertIn(f"426: {words}", str(error))
                self.assertEqual("https" in words, "scheme" in advice(error))

    def test_cookies(self) -> None:
        """A cookie is never sent back, even if its bytes are no text."""

        def answer(request: Request) -> bytes:
            request.setHeader(b"Content-Type", b"application/json")
            request.cookies += [b"a=b; Path=/", b"\xff=c"]
            return b"[]"

        bench = Bench(answer)
        for _ in range(2):
            self.assertEqual(b"[]", self.successResultOf(bench.fetch()))
        for _, headers in bench.api.requests:
            self.assertNotIn("cookie", headers)

    def test_reasons(self) -> None:
        """Each failed response has its reason; only errors of a server are retried."""
        html = b"<html>502 Bad Gateway</html>"
        for answer, reason, retryable in (
            (says(401), "auth", False),
            (says(300, location="http://elsewhere.example/"), "redirect", False),
            (says(399, b""), "redirect", False),
            (says(400, b""), "http_4xx", False),
            (says(499, b""), "http_4xx", False),
            (says(500), "http_5xx", True),
            (says(599, html, "text/html"), "http_5xx", True),
            (says(200, html, "text/html"), "decode", False),
            (says(200, b"x" * 1001), "too_large", False),
            (says(204, b""), "decode", False),
            (says(206, b"[]"), "decode", False),
            (says(304, b""), "redirect", False),
            (says(600, b"[]"), "decode", False),
            (says(999, b"[]"), "decode", False),
        ):
            error = self.failing(answer)
            self.assertEqual((reason, retryable), (error.reason, error.retryable))
        error = self.failing(says(200, html, "text/html"))
        self.assertEqual("a web page instead of JSON", str(error))

    def test_empty(self) -> None:
        """An empty body is received as such, also if it claims to be a web page."""
        for media in ("text/html", "application/json", ""):
            bench = Bench(says(200, b"", media))
            self.assertEqual(b"", self.successResultOf(bench.fetch()))

    def test_packed_refusal(self) -> None:
        """An error response has its reason, even if its body cannot be read."""
        words = b'{"message":"too many requests","code":429}'
        for body, coding, message in (
            (gzip.compress(words), "gzip", "429: too many requests"),
            (words, "gzip", "429"),
            (gzip.compress(words), "gzip, gzip", "429"),
            (words + b" " * 64 * 1024, "identity", "429"),
        ):
            bench = Bench(says(429, body, content_encoding=coding), attempts=1)
            fetched = bench.fetch()
            bench.advance(0)
            error = self.failureResultOf(fetched, UpstreamError).value
            self.assertEqual(("rate_limited", message), (error.reason, str(error)))

    def test_lost_refusal(self) -> None:
        """An error response has its reason, even if its body has no end."""
        for status, reason in (429, "rate_limited"), (401, "auth"), (503, "http_5xx"):

            def lose(request: Request, status: int = status) -> int:
                answer = says(status, b"{", content_length="9", retry_after="7")
                request.write(answer(request))
                request.channel.loseConnection()
                return NOT_DONE_YET

            error = self.failing(lose)
            self.assertEqual((reason, str(status)), (error.reason, str(error)[:3]))

    def test_retry_after(self) -> None:
        """Retry-After is returned in seconds, given as seconds or as a date."""
        for value, seconds in (
            ("17", 17.0),
            ("Fri, 15 Jan 2027 09:01:00 GMT", 60.0),  # by the server's own clock
            ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
            ("soon", None),
            ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
            ("Mon, 01 Jan 2027 00:00:00 +99999999999999999999", None),
            ("9" * 5000, None),
        ):
            ahead = "Fri, 15 Jan 2027 09:00:00 GMT"  # by an hour
            error = self.failing(says(429, retry_after=value, Date=ahead))
            self.assertEqual(seconds, error.retry_after, value)

    def test_retried(self) -> None:
        """A server error is retried after a pause, until the last attempt."""
        for last in (200, 500):
            bench = Bench(says(500), says(503), says(last, b"[1]"))
            fetched = bench.fetch()
            self.assertNoResult(fetched)
            bench.advance(0.25)
            bench.advance(0.5)
            if last == 200:
                self.assertEqual(b"[1]", self.successResultOf(fetched))
            else:
                error = self.failureResultOf(fetched, UpstreamError).value
                self.assertEqual("http_5xx", error.reason)
            attempts = [(attempt.number, attempt.status) for attempt in bench.seen]
            self.assertEqual([(1, 500), (2, 503), (3, last)], attempts)
            self.assertEqual([], bench.clock.getDelayedCalls())

    def test_unsent(self) -> None:
        """A request is unsent only if the server has seen none of its attempts."""

        def refuse(*_: object) -> Deferred[object]:
            return fail(ConnectError())

        for attempts in (1, 2):
            bench = Bench(says(500), attempts=attempts)
            if attempts == 1:
                self.patch(bench.agent, "request", refuse)
            fetched = bench.fetch()
            self.patch(bench.agent, "request", refuse)
            bench.advance(0.25)
            error = self.failureResultOf(fetched, UpstreamError).value
            self.assertEqual("connect", error.reason)
            self.assertEqual(attempts == 1, error.unsent)
            last = bench.seen[-1].error
            self.assertTrue(last is not None and last.unsent)

    def test_long_wait(self) -> None:
        """A Retry-After above 5 s fails the fetch at once and is returned."""
        for asked in (6, 20, 70, 3600):
            bench = Bench(says(503, retry_after=str(asked)))
            error = self.failureResultOf(bench.fetch(), UpstreamError).value
            self.assertEqual((asked, 1), (error.retry_after, len(bench.api.requests)))
            self.assertEqual([], bench.clock.getDelayedCalls())

    def test_little_time(self) -> None:
        """A retry begins only if a tenth of the timeout is left for it."""
        for seconds, requests in ((0.25 + 2.9, 1), (0.25 + 3.1, 2)):
            bench = Bench(says(503), says(200))
            fetched = bench.fetch(seconds)
            fetched.addErrback(lambda failure: failure.trap(UpstreamError))
            bench.advance(0.3)
            self.successResultOf(fetched)
            self.assertEqual(requests, len(bench.api.requests), seconds)

    def test_limits_of_a_retry(self) -> None:
        """A retry begins after Retry-After, and ends when the next refresh is due."""
        bench = Bench(says(503, retry_after="5"), silence)
        fetched = bench.fetch(10.0)
        for seconds, requests in ((4.9, 1), (0.1, 2), (4.9, 2)):
            bench.advance(seconds)
            self.assertEqual(requests, len(bench.api.requests))
            self.assertNoResult(fetched)
        bench.advance(0.2)
        self.failureResultOf(fetched, UpstreamError)

    def test_ever_new_token(self) -> None:
        """A 401 is retried at least once if the token has changed."""
        for attempts, made in ((1, 2), (3, 3)):
            tokens = iter(Token(f"nbp_{number}") for number in range(100))
            bench = Bench(says(401), attempts=attempts, token=tokens.__next__)
            fetched = bench.fetch()
            self.assertEqual(1, len(bench.api.requests))
            bench.advance(0.25)
            bench.advance(0.5)
            error = self.failureResultOf(fetched, UpstreamError).value
            self.assertEqual("auth", error.reason)
            sent = [headers["authorization"] for _, headers in bench.api.requests]
            self.assertEqual([f"Bearer nbp_{n}" for n in range(made)], sent)
            numbers = [attempt.number for attempt in bench.seen]
            self.assertEqual([*range(1, made + 1)], numbers)
            self.assertEqual([], bench.clock.getDelayedCalls())

    def test_silent(self) -> None:
        """A path is reported once after five seconds without a header."""
        for answer, reported in ((silence, ["api/peers"]), (stall, [])):
            bench = Bench(answer, attempts=1)
            fetched = bench.fetch()
            bench.advance(4.9)
            self.assertEqual([], bench.silent)
            bench.advance(0.2)
            self.assertEqual(reported, bench.silent)
            fetched.cancel()
            self.failureResultOf(fetched, CancelledError)
            bench.advance(10.0)
            self.assertEqual(reported, bench.silent)

    def test_deadline_covers_headers_and_body(self) -> None:
        """The deadline also ends silence, and a body that stops half-way."""
        for answer in (silence, stall):
            bench = Bench(answer, attempts=1)
            fetched = bench.fetch()
            bench.advance(TIMEOUT - 0.1)
            self.assertNoResult(fetched)
            bench.advance(0.2)
            error = self.failureResultOf(fetched, UpstreamError).value
            self.assertEqual("timeout", error.reason)
            self.assertEqual([], bench.clock.getDelayedCalls())
            [attempt] = bench.seen
            self.assertAlmostEqual(TIMEOUT + 0.1, attempt.seconds, places=3)

    def test_cancelled(self) -> None:
        """Cancelling ends the attempt or the pause, and leaves no timer behind."""
        for answer in (silence, stall, says(500)):
            bench = Bench(answer)
            fetched = bench.fetch()
            fetched.cancel()
            self.failureResultOf(fetched, CancelledError)
            self.assertEqual([], bench.clock.getDelayedCalls())

    def test_cancelled_look_up(self) -> None:
        """A cancelled DNS lookup is not reported as an unknown name."""
        book, reactor = logbook(self), MemoryReactorClock()
        reactor.nameResolver = NeverResolved()
        attempts: list[Attempt] = []
        upstream = Fetcher(
            agent=UpstreamAgent(
                reactor,  # type: ignore[arg-type]
                proxy=None,
                policy=TlsPolicy(None, None, float),
                timeout=5,
                on_certificate=lambda _: None,
            ),
            token=lambda: Token(SECRET),
            on_attempt=attempts.append,
            settings=account_settings(),
            clocks=clocks_of(reactor),
        )
        for asking in (
            upstream.fetch("api/peers", 60.0),
            Deferred.fromCoroutine(upstream.log_reachability()),
        ):
            asking.cancel()
            self.failureResultOf(asking, CancelledError)
        self.assertEqual([None, None], [attempt.error for attempt in attempts])
        self.assertEqual(([], []), (book.lines(), reactor.getDelayedCalls()))

    def test_observed(self) -> None:
        """Each attempt is reported with its status, bytes and error, and is a line."""
        book, bench = logbook(self), Bench(says(200, b"[1,2]"))
        bench.fetch()
        words = "attempt=1 status=200 bytes=5 duration_seconds=0.0 error="
        line = f"debug requested api/peers {words}"
        self.assertEqual(line, book.lines(LogLevel.debug)[-1])
        [attempt] = bench.seen
        self.assertEqual(("api/peers", 200, 5, ""), _summary(attempt))
        bench = Bench(says(500, b'{"message":"broken","code":500}'), attempts=1)
        self.failureResultOf(bench.fetch())
        [attempt] = bench.seen
        self.assertEqual(("api/peers", 500, 31, "500: broken"), _summary(attempt))
        self.assertEqual(1_800_000_000, attempt.started)


class RequestIdTests(SynchronousTestCase):
    def test_refused(self) -> None:
        """An error response has its request id; a gateway's has none."""
        for id_, shown in (("dc1djo5q", " (request id dc1djo5q)"), ("", "")):
            answer = says(500, b'{"message":"no","code":500}', X_Request_Id=id_)
            bench = Bench(answer, attempts=1)
            error = self.failureResultOf(bench.fetch(), UpstreamError).value
            self.assertEqual((id_, "500: no"), (error.request_id, str(error)))
            self.assertEqual(f"500: no{shown}", error.text_with_request_id)
            seen = bench.seen[0].error
            self.assertTrue(seen is not None and seen.request_id == id_)


class ClockTests(SynchronousTestCase):
    def test_difference(self) -> None:
        """A clock difference above a second is logged once, until the clocks agree."""
        right = "Fri, 15 Jan 2027 08:00:00 GMT"  # 1,800,000,000
        behind, ahead = "Fri, 15 Jan 2027 07:59:57 GMT", "Fri, 15 Jan 2027 08:00:05 GMT"
        log = logbook(self)
        nearly = "Fri, 15 Jan 2027 07:59:58 GMT"  # more or less than a second behind
        dates = [right, behind, nearly, behind, right, ahead]
        bench = Bench(*(says(200, Date=date) for date in dates))
        for _ in dates:
            self.successResultOf(bench.fetch())
        lines = [line for line in log.lines() if "clock" in line]
        for words, line in zip(("2 s behind", "5 s ahead of"), lines, strict=True):
            clock = f"the clock of the NetBird API is {words} this machine's"
            self.assertIn(clock, line)


class BoundTests(SynchronousTestCase):
    def test_consumption(self) -> None:
        """A body with a lower limit of its own is cut off there."""
        [path] = MAX_BODY_BYTES
        bench = Bench(longest_body=10**9)
        bench.api.answers["consumption"] = [
            says(200, b" " * (MAX_BODY_BYTES[path] + 1))
        ]
        fetched = bench.upstream.fetch(path, 60.0)
        bench.agent.flush()
        error = self.failureResultOf(fetched, UpstreamError).value
        self.assertEqual("too_large", error.reason)
        self.assertIn("agent_consumption=off", advice(error))


class ProbeTests(SynchronousTestCase):
    def test_any_answer_will_do(self) -> None:
        """After any response to the probe, the NetBird API is reachable."""
        bench = Bench()
        probed = Deferred.fromCoroutine(bench.upstream.log_reachability())
        bench.agent.flush()
        self.assertIsNone(self.successResultOf(probed))
        self.assertEqual("/api/health", bench.api.requests[0][0])
        self.assertEqual([1], [attempt.number for attempt in bench.seen])

    def test_no_answer(self) -> None:
        """Without a response the NetBird API is unreachable; the probe never fails."""
        url = "http://upstream.example"
        silent = f"warning cannot reach the NetBird API at {url}, direct: no complete"
        for answer, line in (
            (silence, silent),
            (stall, f"info reached the NetBird API at {url}, direct"),
        ):
            log = logbook(self)
            bench = Bench()
            bench.api.answers["health"] = [answer]
            probed = Deferred.fromCoroutine(bench.upstream.log_reachability())
            bench.agent.flush()
            bench.advance(TIMEOUT + 1)
            self.assertIsNone(self.successResultOf(probed))
            logged = log.lines()[-1]  # after the difference of the clocks
            self.assertTrue(logged.startswith(line), logged)
            self.assertEqual(answer is silence, bench.seen[0].status is None)


def _summary(attempt: Attempt) -> tuple[str, int | None, int, str]:
    return attempt.path, attempt.status, attempt.received, str(attempt.error or "")
