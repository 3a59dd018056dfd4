"""The failures of an upstream, through real sockets: directly, and through a proxy."""

import gzip

from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.web.server import NOT_DONE_YET, Request, Site

from api_exporter.upstream.client import Client
from tests.integration.ports import listening
from tests.integration.programs import PATIENCE, free_port
from tests.integration.proxies import squid
from tests.integration.reaching import FaultyApi, ReachingTestCase
from tests.scripted import says, silence, stall

PEERS = "/api/peers"
UNREACHED = "the proxy cannot reach the NetBird API"


def reset(request: Request) -> int:
    """Send half an answer, then abort the connection."""
    request.setHeader(b"Content-Length", b"1000")
    request.setHeader(b"Content-Type", b"application/json")
    request.write(b"[{")
    request.channel.forceAbortClient()
    return NOT_DONE_YET


class Closing(Protocol):
    """A server of HTTP/1.0, whose answers have no length."""

    def dataReceived(self, _data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(
            b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n[]"
        )
        self.transport.loseConnection()


class FailureTests(ReachingTestCase):
    tls = False

    def setUp(self) -> None:
        super().setUp()
        self.settings: dict[str, str] = {}

    def reader(self, url: str, **settings: str) -> Client:
        """Return a client of this upstream."""
        return self.client(url, **self.settings, **settings)

    async def test_responses(self) -> None:
        """Each bad response has a reason and a sentence, and ends with the fault."""
        packed = gzip.compress(b"[]" * 9)
        elsewhere = FaultyApi(lambda: 0.0)
        other = f"http://127.0.0.1:{listening(self, Site(elsewhere))}{PEERS}"
        url = self.upstream(tls=self.tls)
        for fault, reason, words in (
            (says(401, b'{"message":"x"}'), "auth", "401: the NetBird API rejects the"),
            (says(502, b"<html>", "text/html"), "http_5xx", "502"),
            (says(302, location=other), "redirect", "302: the NetBird API redirects"),
            (says(200, b"<html>", "text/html"), "decode", "a web page"),
            (says(200, b"x", content_encoding="gzip"), "decode", "the gzip body is"),
            (
                says(200, packed[:-9], content_encoding="gzip"),
                "decode",
                "the gzip body is incomplete",
            ),
            (
                says(200, packed[:10] + b"xxxx", content_encoding="gzip"),
                "decode",
                "the gzip body is",
            ),
            (stall, "timeout", "no response within 2 s"),
            (silence, "timeout", "no response within 2 s"),
            (reset, "connect", "the connection was lost"),
        ):
            self.api.faults[PEERS] = fault
            seconds = 2 if reason == "timeout" else PATIENCE
            client = self.reader(url, HTTP_TIMEOUT=f"{seconds:g}s")
            await self.assert_fails(client, reason, words)
            del self.api.faults[PEERS]
            await self.assert_read(client)
        self.assertEqual([], elsewhere.requests)

    async def test_ipv6(self) -> None:
        """An upstream may be an IPv6 address."""
        await self.assert_read(self.reader(self.upstream("[::1]", tls=self.tls)))

    async def test_old_protocol(self) -> None:
        """A body that ends where the server closes, as in HTTP/1.0, is complete."""
        server = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
        port = listening(self, Factory.forProtocol(Closing), server)
        client = self.reader(f"http://127.0.0.1:{port}")
        self.assertEqual(b"[]", await self.read(client))

    async def test_unreachable(self) -> None:
        """A closed port and an unknown name have a reason each."""
        for url, reason, words in (
            (f"http://127.0.0.1:{free_port()}", "connect", "no connection"),
            ("http://no-such-host.invalid", "dns", "the host name cannot be resolved"),
        ):
            await self.assert_fails(self.reader(url), reason, words)

    async def test_untrusted(self) -> None:
        """A certificate has a trusted authority, and the right name."""
        wrong = self.upstream(issued=self.authority.issue("elsewhere.example"))
        for url, trusted, words in (
            (self.upstream(), "", "certificate verify failed"),
            (wrong, self.trusted, "no trusted TLS connection"),
        ):
            client = self.reader(url, UPSTREAM_CA_FILE=trusted)
            await self.assert_fails(client, "tls", words)
        self.assertEqual([], self.api.requests)


class ProxiedFailureTests(FailureTests):
    """The same through squid, in a tunnel where the test chooses no other way."""

    tls = True

    def setUp(self) -> None:
        super().setUp()
        proxy = squid(self, self.directory / "squid")
        self.settings = {"UPSTREAM_PROXY": proxy.address}

    async def test_unreachable(self) -> None:
        """A host that the proxy cannot reach, or resolve, has the reason `proxy`."""
        for url in (f"https://localhost:{free_port()}", "https://no-such-host.invalid"):
            await self.assert_fails(self.reader(url), "proxy", UNREACHED)
