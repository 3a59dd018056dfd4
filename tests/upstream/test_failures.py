"""Exceptions of the network, as Twisted wraps them, become one reason each."""

from OpenSSL import SSL
from service_identity import VerificationError
from twisted.internet import error
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseFailed, ResponseNeverReceived

from api_exporter.ports import UpstreamError
from api_exporter.upstream.failures import translate


class TranslateTests(SynchronousTestCase):
    def test_reasons(self) -> None:
        """The innermost cause decides, however deep it is wrapped."""
        broken = SSL.Error([("SSL routines", "", "certificate verify failed")])
        for cause, reason in (
            (error.DNSLookupError("no such host"), "dns"),
            (error.TCPTimedOutError(), "timeout"),
            (error.ConnectionRefusedError(), "connect"),
            (error.NoRouteError(), "connect"),
            (ResponseFailed([Failure(error.ConnectionLost())]), "connect"),
            (ResponseNeverReceived([Failure(error.ConnectionDone())]), "connect"),
            (ResponseNeverReceived([Failure(broken)]), "tls"),
            (ResponseNeverReceived([Failure(VerificationError(errors=[]))]), "tls"),
            (ResponseFailed([Failure(ValueError("no HTTP"))]), "decode"),
            (ResponseFailed([Failure(MemoryError())]), "internal"),
        ):
            raised = self.assertRaises(UpstreamError, translate, Failure(cause))
            self.assertEqual(reason, raised.reason)
            self.assertNotIn("\n", str(raised))

    def test_words(self) -> None:
        """A failed TLS handshake says what is wrong with it."""
        broken = SSL.Error([("SSL routines", "", "certificate verify failed")])
        wrapped = Failure(ResponseNeverReceived([Failure(broken)]))
        raised = self.assertRaises(UpstreamError, translate, wrapped)
        self.assertIn("certificate verify failed", str(raised))

    def test_cancelled(self) -> None:
        """A cancelled request is that, and no failure of the upstream."""
        wrapped = ResponseNeverReceived([Failure(CancelledError())])
        connecting = error.ConnectingCancelledError(None)
        for cause in (CancelledError(), wrapped, connecting):
            self.assertRaises(CancelledError, translate, Failure(cause))

    def test_untouched(self) -> None:
        """What is already translated, or a defect of ours, passes through."""
        for cause in (UpstreamError("auth", "refused"), ZeroDivisionError()):
            raised = self.assertRaises(type(cause), translate, Failure(cause))
            self.assertIs(cause, raised)
