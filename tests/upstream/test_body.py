"""Receiving bodies: cut, refused, and far too long."""

import tracemalloc
from typing import cast

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IProtocol
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse

from api_exporter.ports import UpstreamError
from api_exporter.upstream.body import BodyMemory, BodyReceiver
from api_exporter.upstream.headers import RECEIVED_ENCODING

MIB = 1024 * 1024
READ = 64 * 1024
"""Bytes that Twisted reads from a socket at once."""


class Response:
    """A response whose headers have arrived."""

    def __init__(self, *codings: bytes) -> None:
        self.headers = Headers({RECEIVED_ENCODING: codings})
        self.transport = StringTransport()

    def deliverBody(self, protocol: IProtocol) -> None:
        protocol.makeConnection(self.transport)


class ResponseBodyTests(SynchronousTestCase):
    def begin(
        self, limit: int, *codings: bytes, problem: UpstreamError | None = None
    ) -> Deferred[bytes]:
        self.body = BodyReceiver(BodyMemory())
        self.response = Response(*codings)
        return self.body.receive(cast("IResponse", self.response), limit, problem)

    def send(self, data: bytes) -> None:
        """Deliver data in pieces as Twisted does."""
        for start in range(0, len(data), READ):
            self.body.dataReceived(data[start : start + READ])

    def test_received(self) -> None:
        """A body is received as sent, gzip or not, with either complete end."""
        for codings, end in (
            ((), ResponseDone()),
            ((), PotentialDataLoss()),
            ((b"gzip",), ResponseDone()),
        ):
            whole = self.begin(100, *codings)
            for byte in b"packed or not":
                self.send(bytes([byte]))
            self.assertNoResult(whole)
            self.body.connectionLost(Failure(end))
            self.assertEqual(b"packed or not", self.successResultOf(whole))
            self.assertEqual(13, self.body.received)
            self.assertEqual(bool(codings), self.body.packed)

    def test_too_long(self) -> None:
        """Above the limit, the body fails and the connection is aborted."""
        for codings in ((), (b"gzip",)):
            whole = self.begin(3 * MIB, *codings)
            self.send(bytes(3 * MIB))
            self.assertNoResult(whole)
            self.send(bytes(MIB))
            error = self.failureResultOf(whole, UpstreamError).value
            self.assertEqual("too_large", error.reason)
            self.assertEqual("stopped", self.response.transport.producerState)
            self.assertEqual(3 * MIB + READ, self.body.received)

    def test_memory(self) -> None:
        """Receiving takes no more memory than the limit and an eighth."""
        limit = 16 * MIB
        for data in (bytes(limit), bytes(2 * limit)):
            whole = self.begin(limit)
            whole.addErrback(lambda _: None)
            tracemalloc.start()
            self.addCleanup(tracemalloc.stop)
            self.send(data)
            self.body.connectionLost(Failure(ResponseDone()))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            self.assertLess(peak, limit * 9 / 8 + MIB)

    def test_cancelled(self) -> None:
        """Cancelling aborts the connection; later bytes are ignored."""
        whole = self.begin(MIB)
        self.send(b"[")
        whole.cancel()
        self.failureResultOf(whole, CancelledError)
        self.assertEqual("stopped", self.response.transport.producerState)
        self.send(b"]")
        self.body.connectionLost(Failure(ResponseDone()))

    def test_not_wanted(self) -> None:
        """A body that cannot be used is not read."""
        problem = UpstreamError("decode", "a web page")
        end = ", but gzip was requested"
        for codings, words in (
            ((), "a web page"),
            ((b"br",), "a web page"),
            ((b"br",), f"encoded as 'br'{end}"),
            ((b"deflate", b"nbp_canary\xff"), f"encoded as 'deflate, unknown'{end}"),
            ((b"gzip", b"gzip"), f"encoded as 'gzip, gzip'{end}"),
        ):
            page = problem if words == "a web page" else None
            whole = self.begin(MIB, *codings, problem=page)
            self.assertEqual("stopped", self.response.transport.producerState)
            self.send(b"<html>")
            self.body.connectionLost(Failure(ResponseDone()))
            error = self.failureResultOf(whole, UpstreamError).value
            self.assertEqual(("decode", words), (error.reason, str(error)))
            self.assertEqual(0, self.body.received)
