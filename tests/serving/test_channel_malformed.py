"""Malformed requests: refusals, and nothing else."""

import re
from random import Random

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.serving.site import BoundedSite
from tests import tries
from tests.logbook import logbook
from tests.web.connection import Connection
from tests.web.watched import Watched

STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3}) ")

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

ALLOWED = {200, 204, 206, 301, 302, 304, 307, 308, *range(400, 418), 431, 501, 503, 505}
"""Answers and refusals; 500 is neither."""

METHODS = (
    *("GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE", "CONNECT", "get", "G\0T", ""),
    *("GET\t", "A" * 500, "PRI", "\x16\x03\x01\x02"),
)
PATHS = (
    *("/", "/findings", "/status.json", "/metrics", "/health", "/ready", "//metrics"),
    *("/metrics/../metrics", "/%6detrics", "/metrics%00", "*", "", "http://x/metrics"),
    *("/" + "a" * 3000, "/\udcff\udcfe", "/?" + "&" * 500, "/metrics?%", "/metrics;x"),
    *("/%", "/%zz", "/..%2f..%2fetc/passwd", "/metrics#x"),
)
VERSIONS = (
    *("HTTP/1.1", "HTTP/1.0", "HTTP/1.1", "HTTP/2.0", "HTTP/9.9", "HTTP/", "HTTPS/1.1"),
    *("", "HTTP/1.1 HTTP/1.1", "HTTP/-1", "http/1.1", "HTTP/1.1\0", "HTTP/1"),
)
FIELDS = (
    *("Host: localhost", "Host: a\r\nHost: b", "Host:", "Content-Length: 10"),
    *("Content-Length: -1", "Content-Length: 9999999999999", "Content-Length: +5"),
    *("Content-Length: 1\r\nContent-Length: 2", "Transfer-Encoding: chunked"),
    *("Transfer-Encoding: gzip", "Transfer-Encoding: chunked\r\nContent-Length: 5"),
    "Accept: " + ",".join(["application/openmetrics-text;version=9"] * 50),
    *("Accept: ;;;,,,q=q=q=", "Accept: */*;q=1e999", "Accept-Encoding: gzip;q="),
    *("Accept-Encoding: " + "gzip," * 400, "Range: bytes=0-1", "Expect: 100-continue"),
    *("Connection: upgrade\r\nUpgrade: h2c", "Connection: close"),
    *("Authorization: Basic !!!", "Content-Type: multipart/form-data; boundary="),
    *("Cookie: " + "a=b;" * 300, "X: " + "y" * 20000, ": no name", "no colon"),
    *(" folded", "N\0me: v", "Name : v", "\udcff: \udcfe", "A: b\r\n" * 2000),
)
BODIES = (
    *("", "", "0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "zz\r\n", "ffffffffffffffff\r\n"),
    *("-1\r\n", "1;" + "x" * 5000 + "\r\na\r\n", "--x\r\n\r\n", "\0" * 200),
    "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 5,
)
ENDS = ("\r\n", "\r\n", "\r\n", "\n", "\r", "\n\r", "\0", "")

GOOD = (
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain;version=0.0.4"
    b"\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
)


def assembled(chance: Random) -> bytes:
    """Return a request of known malformed parts."""
    pick = chance.choice
    end = pick(ENDS)
    head = [f"{pick(METHODS)} {pick(PATHS)} {pick(VERSIONS)}"]
    head += chance.choices(FIELDS, k=chance.randrange(6))
    return end.join([*head, "", pick(BODIES)]).encode("utf-8", "surrogateescape")


def mutated(chance: Random) -> bytes:
    """Return a good request with some bytes changed, doubled or cut off."""
    text = bytearray(GOOD)
    for _ in range(chance.randrange(1, 8)):
        place = chance.randrange(len(text))
        end = place + chance.randrange(1, 4)
        text[place:end] = chance.choice(
            (b"", chance.randbytes(end - place), text[place:end] * 2)
        )
    return bytes(text)


class MalformedTests(SynchronousTestCase):
    def test_malformed(self) -> None:
        """Malformed requests are answered, refused or dropped, without an error."""
        book = logbook(self)
        clock = Clock()
        site = BoundedSite(Watched().start().tree, clock)
        chance = Random(20_261_121)
        seen = set()
        for _ in range(tries(4000)):
            request = chance.choice((assembled, mutated))(chance)
            connection = Connection(site)
            connection.send(request)
            clock.advance(0)
            answer = connection.heard().removeprefix(CONTINUE)
            connection.lose()
            if answer:
                status = STATUS_LINE.match(answer)
                assert status is not None, (request[:300], answer[:300])
                self.assertIn(int(status[1]), ALLOWED, (request, answer[:300]))
                seen.add(int(status[1]))
        self.assertLessEqual({200, 400, 404, 405, 413}, seen)
        self.assertEqual(([], []), (book.lines(), self.flushLoggedErrors()))
