"""The CONNECT request, and responses to it."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.ports import UpstreamError
from api_exporter.settings.proxy import proxy
from api_exporter.upstream.tunnel import MAX_TUNNEL_HEAD_BYTES, connect_request, is_open
from api_exporter.version import this_build

PROXY = proxy("http://me:c4nary@proxy.example:3128")
GOOD = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Fine\r\nA: b\r\n\r\n"


class RequestTests(SynchronousTestCase):
    def test_lines(self) -> None:
        """The host is in the first line and in a header, an address in brackets."""
        agent = f"User-Agent: api-exporter/{this_build().version}"
        login = "Proxy-Authorization: Basic bWU6YzRuYXJ5"
        nobody = proxy("proxy.example")
        for host, via, expected in (
            ("fd00::1", PROXY, ("[fd00::1]:443", agent, login)),
            ("api.example", nobody, ("api.example:443", agent)),
        ):
            target, *headers = expected
            first = f"CONNECT {target} HTTP/1.1"
            lines = [first, f"Host: {target}", *headers, "", ""]
            sent = connect_request(host, 443, via).decode()
            self.assertEqual(lines, sent.split("\r\n"))


class OpenedTests(SynchronousTestCase):
    @given(st.integers(0, len(GOOD)))
    def test_pieces(self, size: int) -> None:
        """The tunnel is open with the last byte of the response, and not before."""
        self.assertEqual(size == len(GOOD), is_open(GOOD[:size], PROXY))

    @given(st.binary(max_size=200))
    def test_anything(self, received: bytes) -> None:
        """Random bytes raise an error that names the proxy, or open no tunnel."""
        for start in (b"", b"HTTP/1.1 ", b"HTTP/1.1 407 ", b"HTTP/1.0 100 x\r\n\r\n"):
            try:
                is_open(start + received, PROXY)
            except UpstreamError as error:
                self.assertIn("proxy.example:3128", str(error))
                self.assertNotIn("c4nary", str(error))

    @given(st.integers(-50, 50))
    def test_bound(self, excess: int) -> None:
        """A response of more than 16 KiB is refused."""
        head = b"HTTP/1.1 200 Fine\r\nA: "
        size = MAX_TUNNEL_HEAD_BYTES + excess
        received = head + b"x" * (size - len(head) - 4) + b"\r\n\r\n"
        if excess > 0:
            error = self.assertRaises(UpstreamError, is_open, received, PROXY)
            self.assertIn("with more than 16384 bytes", str(error))
        else:
            self.assertTrue(is_open(received, PROXY))

    def test_words(self) -> None:
        """Each wrong response has a sentence."""
        ntlm = b"Proxy-Authenticate: Negotiate\r\nproxy-authenticate: NTLM abc\r\n"
        for answer, words in (
            (b"SSH-2.0-OpenSSH_9.2\r\n", "something that is not HTTP"),
            (b"HTTP/2 200\r\n\r\n", "that is not HTTP"),
            (b"HTTP/1.1 OK\r\n\r\n", "that is not HTTP"),
            (b"HTTP/1.1 103 x\r\n\r\n" * 1000, "more than 16384 bytes"),
            (GOOD + b"<html>", "sends a body after its 200"),
            (b"HTTP/1.1 301 No\r\n\r\n", "answers CONNECT with 301"),
            (b"HTTP/1.1 405 No\r\n\r\n", "does not allow this"),
            (b"HTTP/1.1 407 No\r\n\r\n", "a valid user and"),
            (
                b"HTTP/1.1 407 No\r\n" + ntlm + b"\r\n",
                "requires authentication by NTLM or Negotiate; only Basic is supported",
            ),
        ):
            error = self.assertRaises(UpstreamError, is_open, answer, PROXY)
            self.assertIn(words, str(error))

    def test_again(self) -> None:
        """An unsent request is retryable; failed authentication is not."""
        for code, reason, retryable, unsent in (
            (500, "proxy", True, True),
            (300, "proxy", False, False),
            (403, "proxy", False, False),
            (404, "proxy", False, False),
            (407, "proxy_auth", False, False),
            (401, "proxy_auth", False, False),
        ):
            answer = b"HTTP/1.1 %d x\r\n\r\n" % code
            error = self.assertRaises(UpstreamError, is_open, answer, PROXY)
            self.assertEqual(reason, error.reason)
            self.assertEqual((retryable, unsent), (error.retryable, error.unsent))
