"""The canary: a token in any part of a response is found nowhere."""

import base64
import hashlib
import random
from collections.abc import Iterator

from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.logger import LogLevel
from twisted.python.failure import Failure

from api_exporter.daemon import logs
from api_exporter.subjects.table import COLLECTORS
from tests.canary import CANARY, PROXY_USER, assert_clean, forms
from tests.test_service import ProgramTestCase

PAGES = (
    *("/", "/health", "/ready", "/metrics", "/findings", "/status.json"),
    *("/sd?port=9100", "/lookup.json", f"/lookup?name={CANARY[:4]}"),
    *("/nothing", f"/{CANARY[:4]}", "/debug/pprof/", "/debug/pprof/heap?seconds=0"),
)

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


class Transport(StringTransport):
    """A transport that may be paused and resumed after its end, as a real one."""

    def _checkState(self) -> None:  # noqa: N802 - the name is Twisted's
        pass


class EchoTests(ProgramTestCase):
    hidden = (*forms(CANARY), PASSWORD, *forms(PASSWORD))

    def respond(self, left: list[bytes]) -> None:
        """Respond as a proxy to each new connection; the peers can be read."""
        for _, _, factory, *_ in self.reactor.tcpClients:
            protocol, transport = factory.buildProtocol(None), Transport()
            assert protocol is not None
            protocol.makeConnection(transport)
            good = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"
            is_peers = b"/api/peers " in transport.value()
            protocol.dataReceived(good if is_peers or not left else left.pop())
            protocol.connectionLost(Failure(ConnectionDone()))
        self.reactor.tcpClients.clear()

    def test_every_part(self) -> None:
        """No status line, header or body that holds a secret makes it visible."""
        login = f"{PROXY_USER}:{PASSWORD}"
        packed = base64.b64encode(login.encode())
        left = [GONE] * 10
        for secret in (CANARY.encode(), PASSWORD.encode(), packed):
            left += raw_responses(secret)
        random.Random(1).shuffle(left)
        self.program(
            pprof=True,
            UPSTREAM_API_URL="http://netbird.example",
            UPSTREAM_API_TOKEN=CANARY,
            UPSTREAM_PROXY=f"http://{login}@10.0.0.2:3128",
            COLLECTORS=",".join(one.name for one in COLLECTORS),
            LOOKUP="true",
        )
        rounds = 0
        while left:
            rounds += 1
            self.assertLess(rounds, 20_000)
            self.respond(left)
            self.reactor.advance(1.0)
            if rounds % 50 == 0:
                for path in PAGES:
                    assert_clean(self, self.hidden, self.get(path), path)
        self.assertLess(400, len(self.book.lines(LogLevel.debug)))
        for event in self.book.events:
            for line in (logs.text_line(event), logs.json_line(event)):
                assert_clean(self, self.hidden, line, "the log")
