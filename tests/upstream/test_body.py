"""Bodies as they come over the wire: packed, cut, doubled, and far too long."""

import gzip
import time
import tracemalloc
import zlib
from collections.abc import Callable

from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseDone

from api_exporter.ports import UpstreamError
from api_exporter.upstream.body import ResponseBody
from api_exporter.upstream.gzip_agent import Gunzip

MIB = 1024 * 1024
READ = 64 * 1024
"""Bytes that Twisted reads from a socket at one go."""

STALL = 0.05
"""Seconds of processor time: a step takes one millisecond, and twenty where the
buffer has to move."""
TRIES = 3

ZEROS = gzip.compress(bytes(64 * MIB))


class Turns(Clock):
    """A clock by whose seconds the turns of an event loop are counted."""

    def callLater(  # noqa: N802
        self,
        delay: float,
        callable: Callable[..., object],  # noqa: A002
        *args: object,
        **kw: object,
    ) -> IDelayedCall:
        return super().callLater(delay + 1, callable, *args, **kw)


class ResponseBodyTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Turns()

    def begin(self, limit: int, *, packed: bool = True) -> ResponseBody:
        """An answer whose body is about to come."""
        answer = ResponseBody(self.clock)
        answer.limit = limit
        self.way: Protocol = Gunzip(answer, self.clock) if packed else answer
        self.transport = StringTransport()
        self.way.makeConnection(self.transport)
        return answer

    def send(self, body: bytes, *, end: bool = True) -> None:
        """Hand on a body as Twisted does, no more of it while nothing is wanted."""
        for start in range(0, len(body), READ):
            self.way.dataReceived(body[start : start + READ])
            self.turn()
        if end:
            self.way.connectionLost(Failure(ResponseDone()))
        self.turn()

    def turn(self) -> None:
        """Let the event loop turn until all that has come is unpacked."""
        while self.clock.getDelayedCalls():
            self.clock.advance(1)

    def failing(self, body: bytes) -> str:
        """Why a packed body is refused."""
        answer = self.begin(MIB)
        self.send(body)
        error = self.failureResultOf(answer.whole, UpstreamError).value
        self.assertEqual("decode", error.reason)
        return str(error)

    def test_unpacked(self) -> None:
        """A body comes out as it was, packed or not, in one read or byte by byte."""
        body = b'[{"id":"a"}]' * 100
        for packed in (False, True):
            for size in (1, 7, READ):
                answer = self.begin(MIB, packed=packed)
                sent = gzip.compress(body) if packed else body
                for start in range(0, len(sent), size):
                    self.send(sent[start : start + size], end=False)
                self.send(b"")
                self.assertEqual(body, self.successResultOf(answer.whole))
                self.assertEqual(len(body), answer.received)

    def test_steps(self) -> None:
        """A kilobyte that becomes a megabyte is unpacked in steps; reading waits."""
        answer = self.begin(65 * MIB)
        self.way.dataReceived(ZEROS)
        sizes = []
        while self.clock.getDelayedCalls():
            before = answer.received
            self.clock.advance(1)
            sizes.append(answer.received - before)
            if self.clock.getDelayedCalls():
                self.assertEqual("paused", self.transport.producerState)
        self.assertEqual("producing", self.transport.producerState)
        self.assertEqual(MIB // 4, max(sizes))
        self.way.connectionLost(Failure(ResponseDone()))
        self.assertEqual(64 * MIB, len(self.successResultOf(answer.whole)))

    def test_no_stall(self) -> None:
        """No step takes long, whatever is sent."""
        for sent in (ZEROS, gzip.compress(b"[{}]" * (4 * MIB)), bytes(READ)):
            # Others use this machine, too.
            tries = (self.longest_step(sent) for _ in range(TRIES))
            small = any(longest < max(STALL, total / 4) for longest, total in tries)
            self.assertTrue(small)

    def longest_step(self, sent: bytes) -> tuple[float, float]:
        """Processor seconds of the longest step, and of all of them."""
        answer, longest, total = self.begin(65 * MIB), 0.0, 0.0
        answer.whole.addErrback(lambda _: None)
        for start in range(0, len(sent), READ):
            self.way.dataReceived(sent[start : start + READ])
            while self.clock.getDelayedCalls():
                begin = time.process_time()
                self.clock.advance(1)
                spent = time.process_time() - begin
                longest, total = max(longest, spent), total + spent
        return longest, total

    def test_too_long(self) -> None:
        """At the limit it ends, without a body, and nothing more is unpacked."""
        for packed in (False, True):
            answer = self.begin(3 * MIB, packed=packed)
            self.send(ZEROS if packed else bytes(4 * MIB), end=False)
            error = self.failureResultOf(answer.whole, UpstreamError).value
            self.assertEqual("too_large", error.reason)
            self.assertLessEqual(3 * MIB, answer.received)
            self.assertLessEqual(answer.received, 4 * MIB)

    def test_nothing_in_it(self) -> None:
        """Megabytes that are unpacked to nothing end, too."""
        head = gzip.compress(b"")[:10]
        answer = self.begin(3 * MIB)
        self.send(head + b"\x00\x00\x00\xff\xff" * MIB, end=False)
        error = self.failureResultOf(answer.whole, UpstreamError).value
        self.assertEqual(("too_large", 0), (error.reason, answer.received))

    def test_memory(self) -> None:
        """Receiving takes the limit and an eighth, whatever comes and in which form."""
        limit = 16 * MIB
        body = bytes(limit)
        for packed, sent in (
            (False, body),
            (False, bytes(2 * limit)),
            (True, gzip.compress(body)),
            (True, gzip.compress(body, 0)),  # as long as what it holds
            (True, ZEROS),
            (True, gzip.compress(body)[:-1]),
        ):
            answer = self.begin(limit, packed=packed)
            answer.whole.addErrback(lambda _: None)
            tracemalloc.start()
            self.addCleanup(tracemalloc.stop)
            self.send(sent)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            # One step is under way beside what is gathered.
            self.assertLess(peak, limit * 9 / 8 + 4 * MIB)

    def test_cut(self) -> None:
        """What is cut short is told as such, wherever that is."""
        packed = gzip.compress(b"[]" * 1000)
        for length in (0, 5, 20, len(packed) - 9, len(packed) - 1):
            self.assertIn("incomplete", self.failing(packed[:length]))

    def test_members(self) -> None:
        """Several members are one body, however they come; an empty one is nothing."""
        parts = (b"[1,", b"", b"2,3" * 1000, b"]")
        sent = b"".join(map(gzip.compress, parts))
        for size in (1, 7, READ):
            answer = self.begin(MIB)
            for start in range(0, len(sent), size):
                self.send(sent[start : start + size], end=False)
            self.send(b"")
            self.assertEqual(b"".join(parts), self.successResultOf(answer.whole))

    def test_followed(self) -> None:
        """What follows and is no gzip, or is cut, is told as such."""
        packed = gzip.compress(b"[]")
        for more in (b"xyz", b"\0" * 10):
            self.assertIn("damaged", self.failing(packed + more))
        self.assertIn("incomplete", self.failing(packed + packed[:-1]))

    def test_damaged(self) -> None:
        """What is no gzip, or was damaged on its way, is told as such."""
        packed = bytearray(gzip.compress(b"[]" * 1000))
        packed[-6] ^= 1  # in the checksum
        for body in (b"[]" * 100, zlib.compress(b"[]"), bytes(packed)):
            self.assertIn("damaged", self.failing(body))

    def test_cancelled(self) -> None:
        """Given up in the middle of it, nothing goes on and nothing is kept."""
        answer = self.begin(65 * MIB)
        self.way.dataReceived(ZEROS)
        self.clock.advance(1)
        answer.whole.cancel()
        self.failureResultOf(answer.whole, CancelledError)
        self.assertEqual([], self.clock.getDelayedCalls())
        self.way.dataReceived(ZEROS)
        self.way.connectionLost(Failure(ResponseDone()))
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_not_wanted(self) -> None:
        """A body that is not wanted is not read."""
        answer = ResponseBody(self.clock)
        answer.problem = UpstreamError("decode", "a web page")
        answer.makeConnection(StringTransport())
        answer.dataReceived(b"<html>")
        answer.connectionLost(Failure(ResponseDone()))
        error = self.failureResultOf(answer.whole, UpstreamError).value
        self.assertIs(answer.problem, error)
        self.assertEqual(0, answer.received)
