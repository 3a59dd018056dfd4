"""Exceptions of the network, as Twisted wraps them, become one reason each."""

from OpenSSL import SSL
from service_identity import VerificationError
from twisted.internet import error
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseFailed, ResponseNeverReceived
from twisted.web.http_headers import Headers

from api_exporter.ports import UpstreamError
from api_exporter.upstream.failures import (
    ProxyTimeout,
    raise_timeout,
    response_error,
    translate,
)


class RefusalTests(SynchronousTestCase):
    def test_login(self) -> None:
        """A 407 has the reason `proxy_auth`; the proxy's own words are not repeated."""
        for schemes, words in (
            ([], "407: a proxy requires a valid user and password"),
            (["Basic realm=x"], "407: a proxy requires a valid user and password"),
            (["NTLM", "basic"], "407: a proxy requires a valid user and password"),
            (["c4nary"], "407: a proxy requires a valid user and password"),
            (
                ["Negotiate abc", "ntlm"],
                "407: a proxy requires authentication by NTLM or Negotiate; only"
                " Basic is supported",
            ),
        ):
            headers = Headers({"Proxy-Authenticate": schemes})
            error = response_error(407, headers, b"", now=0, secrets=())
            self.assertEqual("proxy_auth", error.reason)
            self.assertEqual(words, str(error))
            self.assertFalse(error.retryable)

    def test_tls(self) -> None:
        """Answers of Go, nginx and Apache to a request without TLS are recognized."""
        for body in (
            b"Client sent an HTTP request to an HTTPS server.\n",
            b"<center>The plain HTTP request was sent to HTTPS port</center>",
            b"Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />",
        ):
            error = response_error(400, Headers(), body, now=0, secrets=())
            self.assertEqual("tls", error.reason)
            self.assertEqual(
                "400: the server speaks TLS on this port, not plain HTTP; set"
                " UPSTREAM_API_URL to its https address",
                str(error),
            )
        other = response_error(
            400, Headers(), b"Client sent nothing", now=0, secrets=()
        )
        self.assertEqual("http_4xx", other.reason)

    def test_late(self) -> None:
        """A timeout while connecting to the proxy names the proxy."""
        held = ProxyTimeout("the proxy did not answer")
        wrapped = Failure(ResponseNeverReceived([Failure(held)]))
        for result, reason, words in (
            (wrapped, "proxy", "the proxy did not answer within 3 s"),
            (Failure(CancelledError()), "timeout", "no response within 3 s"),
            (None, "timeout", "no response within 3 s"),
        ):
            error = self.assertRaises(UpstreamError, raise_timeout, result, 3.0)
            self.assertEqual(reason, error.reason)
            self.assertEqual(words, str(error))


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

    def test_tls(self) -> None:
        """The error of a failed handshake has OpenSSL's reason, or "plain HTTP"."""
        start = "no trusted TLS connection: "
        plain = "the server speaks plain HTTP on this port, or another protocol without"
        for cause, words in (
            ("certificate verify failed", "certificate verify failed"),
            ("wrong version number", f"{plain} TLS (wrong version number)"),
        ):
            broken = SSL.Error([("SSL routines", "", cause)])
            wrapped = Failure(ResponseNeverReceived([Failure(broken)]))
            raised = self.assertRaises(UpstreamError, translate, wrapped)
            self.assertEqual(("tls", f"{start}{words}"), (raised.reason, str(raised)))

    def test_cancelled(self) -> None:
        """A cancelled request raises CancelledError."""
        wrapped = ResponseNeverReceived([Failure(CancelledError())])
        connecting = error.ConnectingCancelledError(None)
        for cause in (CancelledError(), wrapped, connecting, ProxyTimeout("x")):
            self.assertRaises(CancelledError, translate, Failure(cause))

    def test_untouched(self) -> None:
        """An UpstreamError, or a defect of the program, is raised unchanged."""
        for cause in (UpstreamError("auth", "refused"), ZeroDivisionError()):
            raised = self.assertRaises(type(cause), translate, Failure(cause))
            self.assertIs(cause, raised)
