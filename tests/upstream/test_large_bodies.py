"""Large bodies of several accounts at once: the real client, and servers at a speed."""

import gzip
from collections.abc import Callable

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.error import ConnectionLost
from twisted.internet.interfaces import (
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
)
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import URI, Agent, ResponseDone
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from api_exporter.ports import UpstreamError
from api_exporter.settings.token import Token
from api_exporter.upstream.body import ENOUGH, LARGE, TURN, LargeBodies, ResponseBody
from api_exporter.upstream.fetcher import Fetcher
from api_exporter.upstream.gzip_agent import Gunzip

MIB = 1024 * 1024
READ = 64 * 1024
TICK = 0.05
"""Seconds between two looks at a connection; all it has sent by then is read."""

FAST = 64 * MIB
"""Bytes a second, as all below."""

WAITING = LARGE + TICK * FAST
"""Bytes of which no more are read until the place is free, and one tick after it."""


@implementer(IAgentEndpointFactory, IStreamClientEndpoint)
class Server:
    """Sends one body at a speed, while the client reads.

    Attributes:
        speed: bytes a second; may change.
        sent: bytes of head and body that were read.
        fetched: fires with the body.
    """

    def __init__(
        self,
        clock: MemoryReactorClock,
        large: LargeBodies,
        body: bytes,
        *,
        speed: float = FAST,
        timeout: float = 600.0,
        packed: bool = False,
    ) -> None:
        self.speed = speed
        self.sent = 0
        self.transport = StringTransport()
        self._clock = clock
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        if packed:
            head += b"Content-Encoding: gzip\r\n"
        self._answer = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        self._allowed = 0.0
        upstream = Fetcher(
            agent=Agent.usingEndpointFactory(clock, self),
            url="http://upstream.example",
            token=lambda: Token("secret"),
            timeout=timeout,
            attempts=1,
            clock=clock,
            now=clock.seconds,
            jitter=lambda: 0.5,
            observe=lambda attempt: self.received.append(attempt.received),
            large=large,
        )
        self.received: list[int] = []
        self.fetched: Deferred[bytes] = upstream.fetch("api/peers", 0.0)

    def endpointForURI(self, _uri: URI) -> IStreamClientEndpoint:
        return self

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:  # noqa: N803
        protocol = protocolFactory.buildProtocol(self.transport.getPeer())
        assert protocol is not None
        self.protocol = protocol
        protocol.makeConnection(self.transport)
        return succeed(protocol)

    @property
    def paused(self) -> bool:
        return self.transport.producerState == "paused"

    def flow(self) -> None:
        """Send what may be sent after one more tick."""
        self._allowed = min(self._allowed + TICK * self.speed, TICK * FAST)
        while self._allowed >= 1 and not (self.paused or self.fetched.called):
            size = min(READ, int(self._allowed))
            data = self._answer[self.sent : self.sent + size]
            if not data:
                return
            self.sent += len(data)
            self._allowed -= len(data)
            self.protocol.dataReceived(data)
            self._clock.advance(0)  # the event loop turns after every read


class LargeBodiesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = MemoryReactorClock()
        self.large = LargeBodies(self.clock)
        self.servers: list[Server] = []

    def server(self, body: bytes, **options: float) -> Server:
        self.servers.append(Server(self.clock, self.large, body, **options))  # type: ignore[arg-type]
        return self.servers[-1]

    def until(self, end: float, over: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, to an end in seconds or until something is so."""
        while self.clock.seconds() < end and not over():
            for server in self.servers:
                server.flow()
            self.clock.advance(TICK)

    def assert_over(self) -> None:
        """Nothing is left behind."""
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_one_at_a_time(self) -> None:
        """While one is received, another large one waits where it became large."""
        bodies = [bytes(40 * MIB), b"1" * (40 * MIB)]
        first, second = (self.server(body) for body in bodies)
        self.until(60.0, lambda: first.fetched.called)
        self.assertEqual(bodies[0], self.successResultOf(first.fetched))
        self.assertLessEqual(second.sent, WAITING + 2 * READ)
        self.until(60.0, lambda: second.fetched.called)
        self.assertEqual(bodies[1], self.successResultOf(second.fetched))
        self.assertLess(self.clock.seconds(), 3.0)
        self.assert_over()

    def test_packed(self) -> None:
        """So do packed ones, of which what they hold counts, and in a step of work."""
        body = bytes(40 * MIB)
        packed = gzip.compress(body, 1)
        first = self.server(body, speed=8 * MIB)
        self.until(60.0, lambda: first.sent > LARGE + READ)
        second = self.server(packed, packed=True)
        self.until(self.clock.seconds() + 1.0)
        self.assertTrue(second.paused)
        self.assertLess(second.sent, len(packed))
        calls = self.clock.getDelayedCalls()
        self.assertLessEqual(len(calls), 3, "deadlines, and one look")
        self.assertFalse(second.fetched.called)
        self.until(60.0, lambda: first.fetched.called)
        self.until(60.0, lambda: second.fetched.called)
        self.assertEqual(body, self.successResultOf(second.fetched))
        self.assert_over()

    def test_stalled(self) -> None:
        """One that stalls gives way within its turn, and gets the place back."""
        first = self.server(bytes(40 * MIB))
        self.until(60.0, lambda: first.sent > 20 * MIB)
        first.speed = 0.0
        second = self.server(bytes(40 * MIB))
        begin = self.clock.seconds()
        self.until(60.0, lambda: second.fetched.called)
        self.assertEqual(40 * MIB, len(self.successResultOf(second.fetched)))
        self.assertLess(self.clock.seconds() - begin, 2 * TURN)
        self.assertFalse(first.paused)
        first.speed = FAST
        self.until(60.0, lambda: first.fetched.called)
        self.assertEqual(40 * MIB, len(self.successResultOf(first.fetched)))
        self.assert_over()

    def test_slow_enough(self) -> None:
        """A mebibyte a second is enough to keep the place."""
        first = self.server(bytes(24 * MIB))
        self.until(60.0, lambda: first.sent > 17 * MIB)
        first.speed = 1.1 * ENOUGH / TURN
        second = self.server(bytes(40 * MIB))
        self.until(60.0, lambda: first.fetched.called)
        self.assertLessEqual(second.sent, WAITING + 2 * READ)

    def test_all_slow(self) -> None:
        """Where all are slow the place goes round, and every one of them gets on."""
        servers = [self.server(bytes(30 * MIB)) for _ in range(3)]
        self.until(60.0, lambda: all(s.sent >= LARGE for s in servers))
        for server in servers:
            server.speed = 0.5 * MIB
        for _ in range(3):
            before = [server.sent for server in servers]
            # What was sent to one that waits comes at once, and gives a second turn.
            self.until(self.clock.seconds() + 3 * 2.2 * TURN)
            for server, sent in zip(servers, before, strict=True):
                self.assertGreater(server.sent, sent)
        self.until(200.0, lambda: all(s.fetched.called for s in servers))
        for server in servers:
            self.assertEqual(30 * MIB, len(self.successResultOf(server.fetched)))
        self.assertLess(self.clock.seconds(), 95.0)
        self.assert_over()

    def test_deadline(self) -> None:
        """Who waits has no more time than others, and is then forgotten."""
        first = self.server(bytes(100 * MIB))
        self.until(60.0, lambda: first.sent > LARGE + READ)
        first.speed = 2 * MIB
        second = self.server(bytes(40 * MIB), timeout=30.0)
        begin = self.clock.seconds()
        self.until(120.0, lambda: second.fetched.called)
        error = self.failureResultOf(second.fetched, UpstreamError).value
        self.assertEqual("timeout", error.reason)
        self.assertAlmostEqual(30.0, self.clock.seconds() - begin, delta=2 * TICK)
        self.assertEqual("stopped", second.transport.producerState)
        self.until(120.0, lambda: first.fetched.called)
        self.successResultOf(first.fetched)
        self.assert_over()

    def test_freed(self) -> None:
        """However the first one ends, the second goes on at once."""

        def lost(server: Server) -> None:
            server.protocol.connectionLost(Failure(ConnectionLost()))

        ends: tuple[Callable[[Server], object], ...] = (
            lambda server: server.fetched.cancel(),
            lost,
            lambda server: server.protocol.dataReceived(bytes(300 * MIB)),  # too long
            lambda _: self.clock.advance(30.0),  # too late
        )
        body = bytes(400 * MIB)
        for end in ends:
            self.setUp()
            first = self.server(body, timeout=30.0)
            second = self.server(bytes(40 * MIB))
            self.until(60.0, lambda: first.sent > 40 * MIB)  # noqa: B023
            self.assertTrue(second.paused)
            end(first)
            self.assertFalse(second.paused)
            self.failureResultOf(first.fetched, UpstreamError, CancelledError)
            self.until(60.0, lambda: second.fetched.called)  # noqa: B023
            self.successResultOf(second.fetched)
            self.assert_over()

    def test_waiting_ones_end(self) -> None:
        """One that is given up while it waits is nobody's turn any more."""
        first, second, third = (self.server(bytes(48 * MIB)) for _ in range(3))
        self.until(60.0, lambda: third.sent > LARGE)
        second.fetched.cancel()
        self.failureResultOf(second.fetched, CancelledError)
        for server in (first, third):
            self.until(60.0, lambda: server.fetched.called)  # noqa: B023
            self.successResultOf(server.fetched)
        self.assert_over()

    def test_small(self) -> None:
        """Bodies that are not large wait for nobody, however slow a large one is."""
        first = self.server(bytes(64 * MIB))
        self.until(60.0, lambda: first.sent > LARGE + READ)
        begin = self.clock.seconds()
        small = [self.server(bytes(15 * MIB)) for _ in range(3)]
        self.until(60.0, lambda: all(s.fetched.called for s in small))
        self.assertLess(self.clock.seconds() - begin, 0.5)
        for server in small:
            self.successResultOf(server.fetched)
        self.until(60.0, lambda: first.fetched.called)
        self.assertEqual(64 * MIB, len(self.successResultOf(first.fetched)))
        self.assert_over()

    def test_alone(self) -> None:
        """One that is alone may be as slow as it likes, and is not looked at."""
        first = self.server(bytes(20 * MIB))
        self.until(60.0, lambda: first.sent > 17 * MIB)
        self.assertEqual(1, len(self.clock.getDelayedCalls()), "its deadline")
        first.speed = 0.25 * MIB
        self.until(60.0, lambda: first.fetched.called)
        self.successResultOf(first.fetched)


class ReasonsTests(SynchronousTestCase):
    """The two reasons to let nothing come."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.large = LargeBodies(self.clock)

    def answer(self, *, packed: bool) -> tuple[ResponseBody, Protocol, StringTransport]:
        """An answer, what its body comes to, and from where."""
        answer, transport = ResponseBody(self.clock, self.large), StringTransport()
        answer.limit = 64 * MIB
        way = Gunzip(answer, self.clock) if packed else answer
        way.makeConnection(transport)
        return answer, way, transport

    def turn(self, times: int) -> None:
        """Let the event loop turn."""
        for _ in range(times):
            self.clock.advance(0)

    def test_do_not_undo_each_other(self) -> None:
        """What waits is not unpacked, and what is unpacked lets nothing come yet."""
        first, _, _ = self.answer(packed=False)
        first.dataReceived(bytes(LARGE + 1))
        second, way, transport = self.answer(packed=True)
        body = bytes(40 * MIB)
        way.dataReceived(gzip.compress(body))
        self.turn(200)
        self.assertEqual("paused", transport.producerState)
        self.assertLessEqual(second.received, LARGE + MIB)
        way.dataReceived(b"")  # a last one that was on its way
        way.connectionLost(Failure(ResponseDone()))
        self.turn(10)
        self.assertLessEqual(second.received, LARGE + MIB)
        self.assertNoResult(second.whole)
        first.connectionLost(None)
        self.turn(1)
        self.assertEqual("paused", transport.producerState)
        self.turn(200)
        self.assertEqual(body, self.successResultOf(second.whole))

    def test_unpacked_later(self) -> None:
        """One that gives way in the middle of unpacking does the rest in its turn."""
        body = bytes(40 * MIB)
        answer, way, transport = self.answer(packed=True)
        way.dataReceived(gzip.compress(body))
        way.connectionLost(Failure(ResponseDone()))
        answer.wait()
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertEqual("paused", transport.producerState)
        answer.go_on()
        self.turn(200)
        self.assertEqual(body, self.successResultOf(answer.whole))

    def test_plain_and_complete(self) -> None:
        """One that has come whole while it waits has nothing to wait for."""
        answers = [self.answer(packed=False)[0] for _ in range(2)]
        for answer in answers:
            answer.dataReceived(bytes(LARGE + 1))
        answers[1].connectionLost(None)
        self.assertEqual(LARGE + 1, len(self.successResultOf(answers[1].whole)))
        self.assertEqual([], self.clock.getDelayedCalls())
