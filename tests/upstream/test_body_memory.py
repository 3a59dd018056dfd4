"""Bodies of several accounts at once: the real client, and servers with a speed."""

import random
from collections.abc import Callable

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.error import ConnectionLost
from twisted.internet.interfaces import (
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
)
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import URI, Agent
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from api_exporter.ports import ResponseBody, UpstreamError
from api_exporter.settings.token import Token
from api_exporter.upstream import body as bodies
from api_exporter.upstream.body import BodyMemory
from api_exporter.upstream.fetcher import Fetcher
from tests import tries
from tests.memory_reactor import MemoryReactorClock
from tests.parts import account_settings, clocks_of

MIB = 1024 * 1024
READ = 64 * 1024
TICK = 0.05
"""Seconds of one simulated step; all bytes sent by then are read."""

FAST = 4 * MIB
"""Bytes a second, like all speeds below."""

ALL = 8 * MIB
LARGE = MIB
"""The limits of these tests: a sixteenth or less of the real ones."""


@implementer(IAgentEndpointFactory, IStreamClientEndpoint)
class Server:
    """A server that sends one body at a speed, while the client reads.

    Attributes:
        speed: bytes a second; may change.
        sent: bytes of head and body that were read.
        fetched: fires with the body.
    """

    def __init__(
        self,
        clock: MemoryReactorClock,
        memory: BodyMemory,
        body: bytes,
        *,
        speed: float = FAST,
        timeout: float = 600.0,
    ) -> None:
        self.speed = speed
        self.sent = 0
        self.transport = StringTransport()
        self._clock = clock
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        self._answer = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        self._allowed = 0.0
        upstream = Fetcher(
            agent=Agent.usingEndpointFactory(clock, self),
            token=lambda: Token("secret"),
            on_attempt=lambda _: None,
            body_memory=memory,
            longest_body=ALL,
            settings=account_settings(http_timeout=timeout, api_retry_attempts=1),
            clocks=clocks_of(clock),
        )
        self.fetched: Deferred[ResponseBody] = upstream.fetch("api/peers", 0.0)

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
        """Send the bytes of one more tick."""
        self._allowed = min(self._allowed + TICK * self.speed, TICK * FAST)
        while self._allowed >= 1 and not (self.paused or self.fetched.called):
            size = min(READ, int(self._allowed))
            data = self._answer[self.sent : self.sent + size]
            if not data:
                return
            self.sent += len(data)
            self._allowed -= len(data)
            self.protocol.dataReceived(data)
            self._clock.advance(0)  # one event loop iteration after each read


class LimitsTests(SynchronousTestCase):
    def test_limits(self) -> None:
        """All bodies together have 256 MiB, and so has one; 16 MiB are always free."""
        limits = bodies.LONGEST_BODY_BYTES, bodies.MAX_BODIES_BYTES
        self.assertEqual((2**28, 2**28), limits)
        self.assertEqual(2**24, bodies.LARGE_BODY_BYTES)


class BodyMemoryTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.patch(bodies, "MAX_BODIES_BYTES", ALL)
        self.patch(bodies, "LARGE_BODY_BYTES", LARGE)
        self.clock = MemoryReactorClock()
        self.memory = BodyMemory()
        self.servers: list[Server] = []

    def server(
        self, size: int, *, speed: float = FAST, timeout: float = 600.0
    ) -> Server:
        server = Server(
            self.clock, self.memory, bytes(size), speed=speed, timeout=timeout
        )
        self.servers.append(server)
        return server

    def until(self, is_done: Callable[[], bool], end: float = 120.0) -> None:
        """Advance time until a condition is true, or for some seconds."""
        end += self.clock.seconds()
        while self.clock.seconds() < end and not is_done():
            for server in self.servers:
                server.flow()
            self.clock.advance(TICK)

    def after(self, seconds: float) -> None:
        self.until(lambda: False, seconds)

    def received(self, *servers: Server) -> None:
        """Receive bodies, and decode each at once."""
        for server in servers:
            self.until(lambda: server.fetched.called)  # noqa: B023
            self.successResultOf(server.fetched).close()

    def assert_freed(self) -> None:
        """Assert that no timer is left and all memory is free."""
        self.assertEqual([], self.clock.getDelayedCalls())
        last = [self.server(ALL // 2) for _ in range(2)]
        self.until(lambda: any(server.paused for server in last), 3.0)
        for server in last:
            self.successResultOf(server.fetched)

    def test_together(self) -> None:
        """With enough memory for all, no body waits for a slow one."""
        slow = self.server(4 * MIB)
        self.until(lambda: slow.sent > 3 * MIB)
        slow.speed = 0.0
        begin = self.clock.seconds()
        self.received(*[self.server(2 * MIB) for _ in range(2)])
        self.assertLess(self.clock.seconds() - begin, 1.0)
        slow.speed = FAST
        self.received(slow)
        self.assert_freed()

    def test_longest_first(self) -> None:
        """With too little memory, the longest body is received first."""
        first = self.server(6 * MIB)
        self.until(lambda: first.sent > MIB)
        others = [self.server(5 * MIB) for _ in range(2)]
        self.until(lambda: others[0].paused)
        self.assertTrue(others[1].paused)
        self.assertFalse(first.paused)
        sent = [server.sent for server in others]
        self.received(first)
        self.assertEqual(sent, [server.sent for server in others])
        self.received(*others)
        self.assert_freed()

    def test_waits_to_be_decoded(self) -> None:
        """While a body waits to be decoded, a full memory admits only small bodies."""
        first, second = self.server(6 * MIB), self.server(4 * MIB, speed=2 * MIB)
        self.until(lambda: first.fetched.called)
        self.received(self.server(MIB // 2))
        self.after(5.0)
        self.assertTrue(second.paused)
        self.assertNoResult(second.fetched)
        self.successResultOf(first.fetched).close()
        self.received(second)
        self.assert_freed()

    def test_small(self) -> None:
        """A small body waits for no slow connection."""
        first, second = self.server(7 * MIB), self.server(7 * MIB)
        self.until(lambda: first.paused or second.paused)
        first.speed = second.speed = 0.0
        begin = self.clock.seconds()
        small = [self.server(MIB // 2) for _ in range(3)]
        self.received(*small)
        self.assertLess(self.clock.seconds() - begin, 0.5)
        first.speed = second.speed = FAST
        self.received(first, second)
        self.assert_freed()

    def test_deadline(self) -> None:
        """A paused body has the same deadline as others, and frees its memory."""
        first = self.server(ALL)
        self.until(lambda: first.sent > 6 * MIB)
        first.speed = MIB / 32
        second = self.server(4 * MIB, timeout=30.0)
        begin = self.clock.seconds()
        self.until(lambda: second.fetched.called)
        error = self.failureResultOf(second.fetched, UpstreamError).value
        self.assertEqual("timeout", error.reason)
        self.assertAlmostEqual(30.0, self.clock.seconds() - begin, delta=2 * TICK)
        self.assertEqual("stopped", second.transport.producerState)
        first.speed = FAST
        self.received(first)
        self.assert_freed()

    def test_freed(self) -> None:
        """At each end of the longest body, the others continue at once."""

        def lost(server: Server) -> None:
            server.protocol.connectionLost(Failure(ConnectionLost()))

        ends: tuple[Callable[[Server], object], ...] = (
            lambda server: server.fetched.cancel(),
            lost,
            lambda server: server.protocol.dataReceived(bytes(ALL)),  # too long
            lambda _: self.clock.advance(30.0),  # too late
        )
        for end in ends:
            self.setUp()
            first = self.server(2 * ALL, timeout=30.0)
            self.until(lambda: first.sent > 6 * MIB)  # noqa: B023
            first.speed = MIB / 32
            second = self.server(4 * MIB)
            self.until(lambda: second.paused)  # noqa: B023
            end(first)
            self.assertFalse(second.paused)
            self.failureResultOf(first.fetched, UpstreamError, CancelledError)
            self.received(second)
            self.assert_freed()

    def test_bound(self) -> None:
        """Waiting bodies never exceed the limit, in any order."""
        for seed in range(tries(20)):
            self.setUp()
            chance = random.Random(seed)
            waiting: list[ResponseBody] = []
            due = [
                self.server(chance.randint(1, ALL), speed=chance.uniform(0.1, 1) * FAST)
                for _ in range(8)
            ]
            while due or waiting:
                self.after(TICK)
                for server in [server for server in due if server.fetched.called]:
                    waiting.append(self.successResultOf(server.fetched))
                    due.remove(server)
                self.assertLessEqual(sum(len(body.data) for body in waiting), ALL)
                if waiting and chance.random() < 0.1:
                    waiting.pop(0).close()
                self.assertLess(self.clock.seconds(), 600.0)
            self.assert_freed()
