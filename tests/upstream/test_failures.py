"""Failed responses, and exceptions as Twisted wraps them, become one reason each."""

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


def never(cause: Exception) -> ResponseNeverReceived:
    """Return a failure before the response, as Twisted wraps it."""
    return ResponseNeverReceived([Failure(cause)])


def within(cause: Exception) -> ResponseFailed:
    """Return a failure within the response, as Twisted wraps it."""
    return ResponseFailed([Failure(cause)])


def openssl(why: str) -> SSL.Error:
    return SSL.Error([("SSL routines", "", why)])


class RefusalTests(SynchronousTestCase):
    def test_login(self) -> None:
        """A 407 has the reason `proxy_auth`; the proxy's own words are not repeated."""
        valid = "a valid user and password"
        other = "authentication by NTLM or Negotiate; only Basic is supported"
        for schemes, needed in (
            ([], valid),
            (["Basic realm=x"], valid),
            (["NTLM", "basic"], valid),
            (["c4nary"], valid),
            (["Negotiate abc", "ntlm"], other),
        ):
            headers = Headers({"Proxy-Authenticate": schemes})
            error = response_error(407, headers, b"", now=0, secrets=())
            self.assertEqual("proxy_auth", error.reason)
            self.assertEqual(f"407: a proxy requires {needed}", str(error))
            self.assertFalse(error.retryable)

    def test_tls(self) -> None:
        """Answers of Go, nginx and Apache to a request without TLS are recognized."""
        tls = "the server speaks TLS on this port, not plain HTTP; write https:// in"
        for status, body in (
            (400, b"Client sent an HTTP request to an HTTPS server.\n"),
            (400, b"<p>The plain HTTP request was sent to HTTPS port</p>"),
            (400, b"You're speaking plain HTTP to an SSL-enabled server port.<br />"),
            (426, b""),
        ):
            error = response_error(status, Headers(), body, now=0, secrets=())
            line = f"{status}: {tls} UPSTREAM_API_URL"
            self.assertEqual(("tls", line), (error.reason, str(error)))
        error = response_error(400, Headers(), b"nothing", now=0, secrets=())
        self.assertEqual(("http_4xx", "400"), (error.reason, str(error)))

    def test_late(self) -> None:
        """A timeout while connecting to the proxy names the proxy."""
        held = ProxyTimeout("the proxy did not answer")
        wrapped = Failure(never(held))
        for result, reason, words in (
            (wrapped, "proxy", "the proxy did not answer within 3 s"),
            (Failure(CancelledError()), "timeout", "no response within 3 s"),
            (None, "timeout", "no response within 3 s"),
        ):
            error = self.assertRaises(UpstreamError, raise_timeout, result, 3.0)
            self.assertEqual((reason, words), (error.reason, str(error)))

    def test_not_found(self) -> None:
        """A 404 in plain text is an unknown path, one in JSON an unknown object."""
        path = "404: the NetBird API does not have this path"
        found = b'{"message":"peer not found"}'
        for kind, body, words in (
            ("text/plain; charset=utf-8", b"404 page not found", path),
            ("application/json", found, "404: peer not found"),
        ):
            headers = Headers({"Content-Type": [kind]})
            error = response_error(404, headers, body, now=0, secrets=())
            self.assertEqual(
                (words, "not_found", words == path),
                (str(error), error.reason, error.unsupported),
            )


class TranslateTests(SynchronousTestCase):
    def test_reasons(self) -> None:
        """The innermost cause decides, however deep it is wrapped."""
        name = "the host name cannot be resolved: DNS lookup failed: no such host"
        late = "no connection in time: TCP connection timed out"
        refused = "no connection: Connection was refused by other side"
        lost = "the connection was lost before the end of the response"
        tls = "no trusted TLS connection"
        plain = "the server does not speak TLS on this port; write http:// in"
        plain += " UPSTREAM_API_URL if that is right"
        invalid = "the response does not match its headers (ResponseFailed)"
        for cause, reason, words in (
            (error.DNSLookupError("no such\nhost."), "dns", name),
            (error.TCPTimedOutError(), "timeout", late),
            (error.ConnectionRefusedError(), "connect", refused),
            (within(error.ConnectionLost()), "connect", f"{lost} (ConnectionLost)"),
            (never(error.ConnectionDone()), "connect", f"{lost} (ConnectionDone)"),
            (never(openssl("verify failed")), "tls", f"{tls}: verify failed"),
            (
                never(openssl("wrong version number")),
                "tls",
                f"{tls}: {plain} (wrong version number)",
            ),
            (never(SSL.Error()), "tls", f"{tls} (Error)"),
            (never(SSL.SysCallError(9, "E")), "tls", f"{tls}: (9, 'E')"),
            (never(VerificationError(errors=[])), "tls", f"{tls} (VerificationError)"),
            (within(ValueError("no HTTP")), "decode", invalid),
            (within(MemoryError()), "internal", "not enough memory (MemoryError)"),
        ):
            raised = self.assertRaises(UpstreamError, translate, Failure(cause))
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
            self.assertRaises(CancelledError, translate, Failure(cause))

    def test_untouched(self) -> None:
        """An UpstreamError, or a defect of the program, is raised unchanged."""
        for cause in (UpstreamError("auth", "refused"), ZeroDivisionError()):
            raised = self.assertRaises(type(cause), translate, Failure(cause))
            self.assertIs(cause, raised)
