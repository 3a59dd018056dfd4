"""Thousands of malformed requests at a real server: refusals, and nothing else."""

import re
import select
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

from tests.integration.exporter import ExporterTestCase
from tests.integration.programs import PATIENCE, get

REQUESTS = 5000
AT_ONCE = 50
"""Connections that are open at the same time."""

QUIET = 0.05
"""Seconds without a byte after which a server that has not closed waits for more."""


STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3}) ")

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

ALLOWED = {200, 204, 206, 301, 302, 304, 307, 308, *range(400, 418), 431, 501, 503, 505}
"""Answers and refusals; 500 is neither."""

PATHS = (
    *("/", "/findings", "/status.json", "/metrics", "/health", "/ready"),
    *("/debug/pprof/", "/debug/pprof/heap"),
    *("/metrics/", "//metrics", "/metrics/../metrics", "/%6detrics", "/metrics%00"),
    *("*", "", "http://x/metrics", "/" + "a" * 3000, "/\udcff\udcfe", "/?" + "&" * 500),
    *("/debug/pprof/profile?seconds=-1", "/debug/pprof/profile?seconds=1e9"),
    *("/metrics?%", "/metrics;x", "/%", "/%zz", "/..%2f..%2fetc/passwd", "/metrics#x"),
)

METHODS = (
    *("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH"),
    *("get", "G\0T", "", "GET\t", "A" * 500, "PRI", "\x16\x03\x01\x02"),
)

VERSIONS = (
    *("HTTP/1.1", "HTTP/1.0", "HTTP/1.1", "HTTP/2.0", "HTTP/9.9", "HTTP/", "HTTPS/1.1"),
    *("", "HTTP/1.1 HTTP/1.1", "HTTP/-1", "http/1.1", "HTTP/1.1\0", "HTTP/1"),
)

FIELDS = (
    *("Host: localhost", "Host: a\r\nHost: b", "Host:"),
    *("Content-Length: 10", "Content-Length: -1", "Content-Length: x"),
    *("Content-Length: 99999999999999999999999", "Content-Length: +5"),
    "Content-Length: 1\r\nContent-Length: 2",
    *("Transfer-Encoding: chunked", "Transfer-Encoding: gzip"),
    "Transfer-Encoding: chunked\r\nContent-Length: 5",
    "Transfer-Encoding: chunked, identity",
    "Accept: " + ",".join(["application/openmetrics-text;version=9"] * 50),
    'Accept: application/openmetrics-text;version="1.0.0',
    *("Accept: ;;;,,,q=q=q=", "Accept: text/plain;version=abc;q=nan"),
    *("Accept: */*;q=1e999", "Accept-Encoding: gzip;q="),
    *("Accept-Encoding: gzip;q=-1, *;q=x", "Accept-Encoding: " + "gzip," * 400),
    *("Range: bytes=0-1", "If-Modified-Since: yesterday", "Expect: 100-continue"),
    *("Connection: upgrade\r\nUpgrade: h2c", "Connection: close"),
    *("Authorization: Basic !!!", "Content-Type: multipart/form-data"),
    "Content-Type: multipart/form-data; boundary=",
    "Content-Type: application/x-www-form-urlencoded",
    *("Cookie: " + "a=b;" * 300, "X: " + "y" * 20000),
    *(": no name", "no colon", " folded", "N\0me: v", "Name : v", "\udcff: \udcfe"),
)

BODIES = (
    *("", "", "", "0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "zz\r\n"),
    "ffffffffffffffff\r\n",
    *("-1\r\n", "1;" + "x" * 5000 + "\r\na\r\n", "a=b&c=%", "--x\r\n\r\n", "\0" * 200),
    *("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 5, "0123456789"),
)

ENDS = ("\r\n", "\r\n", "\r\n", "\n", "\r", "\n\r", "\0", "")


def assembled(chance: Random) -> bytes:
    """Return a request of known malformed parts."""
    pick = chance.choice
    end = pick(ENDS)
    head = [f"{pick(METHODS)} {pick(PATHS)} {pick(VERSIONS)}"]
    head += chance.choices(FIELDS, k=chance.randrange(6))
    text = end.join([*head, "", pick(BODIES)])
    return text.encode("utf-8", "surrogateescape")


def mutated(chance: Random) -> bytes:
    """A good request with some bytes changed, doubled or cut off."""
    text = bytearray(
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain;version=0.0.4"
        b"\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
    )
    for _ in range(chance.randrange(1, 8)):
        place = chance.randrange(len(text))
        end = place + chance.randrange(1, 4)
        text[place:end] = chance.choice(
            (b"", chance.randbytes(end - place), text[place:end] * 2)
        )
    return bytes(text)


def noise(chance: Random) -> bytes:
    """Bytes that mean nothing."""
    return chance.randbytes(chance.randrange(1, 2000))


def many_fields(chance: Random) -> bytes:
    """Return far too many header fields, or a far too long line."""
    if chance.random() < 0.5:
        return b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * chance.randrange(2000) + b"\r\n"
    return b"GET /" + b"a" * chance.randrange(100_000) + b" HTTP/1.1\r\n\r\n"


KINDS: tuple[Callable[[Random], bytes], ...] = (
    *(assembled,) * 5,
    *(mutated,) * 3,
    noise,
    many_fields,
)


class FuzzTests(ExporterTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.statuses: Counter[int] = Counter()
        environ = self.settings(REFRESH_INTERVALS="peers=1h")  # no refresh delays it
        command = [*self.exporter, "--demo", "--enable-pprof"]
        self.process = self.started(command, environ)

    def ask(self, request: bytes, *, finished: bool) -> socket.socket | None:
        """Send a request on a new connection; `finished` says that nothing follows."""
        one = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        try:
            one.sendall(request)
            if finished:
                one.shutdown(socket.SHUT_WR)
        except OSError:  # refused before all of it was read
            one.close()
            return None
        return one

    def answers(
        self, asked: dict[socket.socket, bytes]
    ) -> Iterator[tuple[bytes, bytes]]:
        """Requests and what came back to them until the server was quiet."""
        got = {one: bytearray() for one in asked}
        open_ = set(asked)
        while open_:
            ready, _, _ = select.select(list(open_), [], [], QUIET)
            if not ready:
                break
            for one in ready:
                try:
                    piece = one.recv(1 << 16)
                except ConnectionError:
                    piece = b""
                got[one] += piece
                if not piece:
                    open_.discard(one)
        for one, request in asked.items():
            one.close()
            yield request, bytes(got[one])

    def send(self, requests: list[bytes], *, finished: bool) -> None:
        """Send them all at once, and check the answers."""
        asked = {}
        for request in requests:
            one = self.ask(request, finished=finished)
            if one is not None:
                asked[one] = request
        for request, received in self.answers(asked):
            # An interim answer comes first where the request expects one.
            answer = received.removeprefix(CONTINUE)
            status = STATUS_LINE.match(answer)
            if answer:
                assert status is not None, (request[:300], answer[:300])
                self.statuses[int(status[1])] += 1
                self.assertIn(int(status[1]), ALLOWED, (request, answer[:300]))

    def test_malformed_requests(self) -> None:
        """Malformed requests are answered, refused or closed, and disturb no other."""
        chance = Random(20_261_121)
        for _ in range(0, REQUESTS, AT_ONCE):
            requests = [chance.choice(KINDS)(chance) for _ in range(AT_ONCE)]
            self.send(requests, finished=chance.random() < 0.5)
            self.assertEqual(200, get(self.url("/health"))[0])
        self.assertLessEqual({200, 400, 404, 405}, set(self.statuses))
        self.assertGreater(self.statuses.total(), REQUESTS / 2)
        self.assert_stops(self.process)
        self.assertNotIn(" error ", self.process.said())
