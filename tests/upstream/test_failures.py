"""Exceptions, as Twisted wraps them, become one reason each."""

from OpenSSL import SSL
from twisted.internet import error
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseFailed, ResponseNeverReceived

from api_exporter.ports import UpstreamError
from api_exporter.upstream.failures import (
    CertificateProblem,
    ConnectTimeout,
    ProxyTimeout,
    raise_timeout,
    raise_upstream_error,
)


def never(cause: Exception) -> ResponseNeverReceived:
    """Return a failure before the response, as Twisted wraps it."""
    return ResponseNeverReceived([Failure(cause)])


def within(cause: Exception) -> ResponseFailed:
    """Return a failure within the response, as Twisted wraps it."""
    return ResponseFailed([Failure(cause)])


def openssl(why: str) -> SSL.Error:
    return SSL.Error([("SSL routines", "", why)])


class TranslateTests(SynchronousTestCase):
    def test_late(self) -> None:
        """A timeout while connecting says so; the proxy is named."""
        held = ProxyTimeout("the proxy did not answer")
        wrapped = Failure(never(held))
        for result, reason, words in (
            (wrapped, "proxy", "the proxy did not answer within 3 s"),
            (Failure(ConnectTimeout()), "timeout", "no connection in time"),
            (Failure(CancelledError()), "timeout", "no complete response within 3 s"),
            (None, "timeout", "no complete response within 3 s"),
        ):
            error = self.assertRaises(UpstreamError, raise_timeout, result, 3.0)
            self.assertEqual((reason, words), (error.reason, str(error)))
            self.assertEqual("complete" not in words, error.unsent)

    def test_reasons(self) -> None:
        """The innermost cause decides, however deep it is wrapped."""
        name = "the host name cannot be resolved: DNS lookup failed: no such host"
        late = "no connection in time: TCP connection timed out"
        refused = "no connection: Connection was refused by other side"
        lost = "the connection was lost before the end of the response"
        tls = "no trusted TLS connection"
        plain = "the server does not speak TLS on this port; write http:// in"
        plain += " UPSTREAM_API_URL if that is right"
        invalid = "the response is not valid HTTP"
        for cause, reason, words in (
            (error.DNSLookupError("no such\nhost."), "dns", name),
            (error.TCPTimedOutError(), "timeout", late),
            (error.ConnectionRefusedError(), "connect", refused),
            (within(error.ConnectionLost()), "connect", lost),
            (never(error.ConnectionDone()), "connect", lost),
            (never(openssl("verify failed")), "tls", f"{tls}: verify failed"),
            (
                never(openssl("wrong version number")),
                "tls",
                f"{tls}: {plain} (wrong version number)",
            ),
            (never(SSL.Error()), "tls", tls),
            (never(SSL.Error([("", "", ""), ("", "", "no")])), "tls", f"{tls}: no"),
            (never(SSL.SysCallError(9, "E")), "tls", f"{tls}: E"),
            (never(CertificateProblem("why", "cure")), "tls", f"{tls}: why"),
            (within(ValueError("no HTTP")), "decode", invalid),
            (within(MemoryError()), "internal", "not enough memory"),
        ):
            raised = self.assertRaises(
                UpstreamError, raise_upstream_error, Failure(cause)
            )
            self.assertEqual((reason, words), (raised.reason, str(raised)))
            is_retried = reason in {"dns", "connect", "tls"}
            is_unsent = words in {name, late, refused}
            self.assertEqual(
                (is_retried, is_unsent), (raised.retryable, raised.unsent), words
            )

    def test_cancelled(self) -> None:
        """A cancelled request raises CancelledError."""
        connecting = error.ConnectingCancelledError(None)
        cancelled = CancelledError()
        for cause in (cancelled, never(cancelled), connecting, ProxyTimeout("x")):
            self.assertRaises(CancelledError, raise_upstream_error, Failure(cause))
