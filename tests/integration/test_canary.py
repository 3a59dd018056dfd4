"""The canary: a token goes through every path that can fail and is found nowhere."""

import base64
import hashlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from unittest import TestCase

from api_exporter.subjects.table import COLLECTORS
from tests.integration.exporter import ExporterTestCase, Upstream, key_and_certificate
from tests.integration.programs import free_port, get, serve, until

CANARY = "nbp_0canary0canary0canary0canary0c4PYgFe"
"""Well-formed: its checksum is right."""

PROXY_USER = "me"
"""The user of a proxy, whose password is the canary."""

PAGES = (
    "/",
    "/health",
    "/ready",
    "/metrics",
    "/findings",
    "/status.json",
    "/sd?port=9100",
    "/lookup.json",
    f"/lookup?name={CANARY[:4]}",
    "/nothing",
    f"/{CANARY[:4]}",
    "/debug/pprof/",
    "/debug/pprof/heap?seconds=0",
)


def forms(token: str) -> Iterator[str]:
    """All texts that tell the token, or whether a guess at it is right."""
    digest = hashlib.sha256(token.encode()).digest()
    yield token
    yield token[4:-6]
    yield base64.b64encode(token.encode()).decode().rstrip("=")
    yield base64.b64encode(f"{PROXY_USER}:{token}".encode()).decode().rstrip("=")
    yield digest.hex()
    yield base64.b64encode(digest).decode().rstrip("=")
    yield base64.b64encode(digest).decode().rstrip("=").lower()


class CanaryTestCase(ExporterTestCase):
    """Secrets that no text may contain."""

    hidden: Sequence[str] = tuple(forms(CANARY))

    def assert_clean(self, text: str | bytes, what: str) -> None:
        """Nothing of a secret is in a text."""
        if isinstance(text, bytes):
            text = text.decode(errors="replace")
        for form in self.hidden:
            self.assertFalse(form in text, f"{form} in {what}: {text[-3000:]}")


PASSWORD = "c4nary0of0the0forward0proxy"

HEADERS = (
    *("Server", "Location", "X-Request-Id", "Date", "Retry-After", "Via", "Upgrade"),
    *("WWW-Authenticate", "Proxy-Authenticate", "Set-Cookie", "Connection", "X-Other"),
)
"""Headers that may have any value; the next ones make the body unreadable."""

FRAMING = ("Content-Type", "Content-Encoding", "Content-Length", "Transfer-Encoding")

STATUSES = (200, 204, 206, 302, 304, 401, 403, 404, 405, 407, 426, 429, 500, 503)

BODIES = (
    b"%b",
    b'"%b"',
    b"[]%b",
    b'["%b"]',
    b'{"%b":1}',
    b'[{"id":"%b","name":"Bearer %b","%b":"%b","type":"%b","state":"%b"}]',
    b'[{"id":["%b"],"%b":{}}]',
    b"<html>%b</html>",
    b'{"message":"who is %b?","code":500}',
    b'{"message":"user role: %b not found","code":404}',
)

DIGEST = base64.b64encode(hashlib.sha256(CANARY.encode()).digest()).lower()

GONE = (
    b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n\r\n"
    b'{"message":"invalid token: pat: %b not found","code":404}' % DIGEST
)
"""NetBird's answer to a token that it does not know any more: with its hash."""


def raw_responses(secret: bytes) -> Iterator[bytes]:
    """All responses of a server that sends a secret in one place or another."""
    for line in (b"HTTP/1.1 500 %b", b"HTTP/1.1 %b No", b"%b 200 OK", b"%b"):
        yield line % secret + b"\r\nContent-Length: 0\r\n\r\n"
    for status in STATUSES:
        head = b"HTTP/1.1 %d Said\r\n" % status
        for value in (b"%b" % secret, b"https://%b/" % secret):
            lines = [b"%b: %b\r\n" % (name.encode(), value) for name in HEADERS]
            yield head + b"".join(lines) + b"\r\nx"
        for name in FRAMING:
            yield head + b"%b: %b\r\n\r\nx" % (name.encode(), secret)
        yield head + b"X-%b: x\r\n\r\nx" % secret
    for status in (200, 401, 403, 404, 500):
        head = b"HTTP/1.1 %d Said\r\nContent-Type: application/json\r\n\r\n" % status
        for form in BODIES:
            yield head + form.replace(b"%b", secret)


class RawProxy(ThreadingTCPServer):
    """A forward proxy with a raw response for each request; the peers can be read.

    Attributes:
        left: the responses that were not sent yet.
    """

    allow_reuse_address = daemon_threads = True
    request_queue_size = 100

    def __init__(self, test: TestCase) -> None:
        super().__init__(("127.0.0.1", 0), _RawConversation)
        self.left: list[bytes] = []
        serve(test, self)

    def answer(self, path: bytes) -> bytes:
        if path.endswith(b"/api/peers") or not self.left:
            return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"
        return self.left.pop()


class _RawConversation(StreamRequestHandler):
    server: RawProxy

    def handle(self) -> None:
        _, path, _ = self.rfile.readline().split()
        while self.rfile.readline().strip():
            pass
        self.wfile.write(self.server.answer(path))


class EchoTests(CanaryTestCase):
    hidden = (*forms(CANARY), PASSWORD, *forms(PASSWORD))

    def test_every_part(self) -> None:
        """No status line, header or body that holds a secret makes it visible."""
        proxy = RawProxy(self)
        login = f"{PROXY_USER}:{PASSWORD}"
        environ = self.reading(
            "http://netbird.example",
            UPSTREAM_API_TOKEN=CANARY,
            UPSTREAM_PROXY=f"http://{login}@127.0.0.1:{proxy.server_address[1]}",
            COLLECTORS=",".join(one.name for one in COLLECTORS),
            HTTP_TIMEOUT="2s",
            LOG_LEVEL="debug",
            LOOKUP="true",
        )
        packed = base64.b64encode(login.encode())
        for secret in (CANARY.encode(), PASSWORD.encode(), packed):
            proxy.left += raw_responses(secret)
        proxy.left += [GONE] * 10
        random.Random(1).shuffle(proxy.left)
        rounds = 0
        while proxy.left:
            rounds += 1
            self.assertLess(rounds, 200)
            if rounds % 4:
                ended = self.ended([*self.exporter, "--check"], environ)
                self.assert_clean(ended.stdout + ended.stderr, "--check")
                continue
            sent = max(0, len(proxy.left) - 5)  # more refusals at once are held back
            form = ("text", "json")[rounds // 4 % 2]
            command = [*self.exporter, "--enable-pprof"]
            running = self.serving(command, {**environ, "LOG_FORMAT": form})
            until(lambda: len(proxy.left) <= sent, "some responses")  # noqa: B023
            for path in PAGES:
                self.assert_clean(get(self.url(path))[2], path)
            shown = Path(f"/proc/{running.process.pid}/cmdline").read_bytes()
            self.assert_clean(shown, "the process list")
            self.assertEqual(0, running.stop()[0], running.said())
            self.assert_clean(running.said(), "the log")


class CanaryTests(CanaryTestCase):
    def assert_report_clean(self, words: str, url: str, **settings: str) -> None:
        """Fail unless the reports contain some words, and no secret."""
        given = {"UPSTREAM_API_TOKEN": CANARY, "COLLECTORS": "peers", **settings}
        for flag in ("--check", "--once"):
            ended = self.ended([*self.exporter, flag], self.reading(url, **given))
            text = ended.stdout + ended.stderr
            self.assertNotIn("Traceback", text)
            self.assert_clean(text, flag)
            self.assertIn(words, text)

    def test_reports(self) -> None:
        """Reports show no secret: of NetBird, of an untrusted server, or of a proxy."""
        both, _ = key_and_certificate(self.directory)
        known = Upstream(self, CANARY).url
        untrusted = Upstream(self, CANARY, pem=both)
        nobody = f"127.0.0.1:{free_port()}"
        self.assert_report_clean("peers", known, COLLECTORS="default")
        self.assert_report_clean("certificate", untrusted.url)
        self.assertEqual([], untrusted.asked)
        login = f"{PROXY_USER}:{CANARY}"
        other = {"UPSTREAM_API_TOKEN": "other"}
        proxy = {"UPSTREAM_PROXY": f"http://{login}@{nobody}"}
        self.assert_report_clean("refused", "https://localhost:1", **other, **proxy)
        proxy = {"HTTPS_PROXY": f"http://{PROXY_USER}:/{CANARY}@proxy.example"}
        words = "HTTPS_PROXY: its value is not allowed"
        self.assert_report_clean(words, "https://x.example", **other, **proxy)
