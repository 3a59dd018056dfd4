"""An upstream on loopback, with TLS and without, and clients that find their way."""

import random
import time

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import (
    TCP4ServerEndpoint,
    TCP6ServerEndpoint,
    wrapServerTLS,
)
from twisted.internet.interfaces import IStreamServerEndpoint
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.threads import deferToThread
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.trial.unittest import TestCase
from twisted.web.server import Site

from api_exporter.clocks import Clocks
from api_exporter.demo.api import DemoApi
from api_exporter.netbird.unpacking import unpack
from api_exporter.ports import ResponseBody, UpstreamError
from api_exporter.settings import environment
from api_exporter.upstream.client import Client
from simulation.company.network import SimulatedNetwork
from tests.authority import Authority, Issued, written
from tests.integration.ports import listening
from tests.integration.programs import PATIENCE
from tests.integration.proxies import folder

SECRET = "nbp_0canary0canary0canary0canary0can0000"


class ReachingTestCase(TestCase):
    """Certificates, servers and clients for tests of connections to the API."""

    timeout = 2 * PATIENCE

    def setUp(self) -> None:
        self.directory = folder(self)
        self.authority = Authority("our authority")
        self.trusted = written(self.directory, "authority.pem", self.authority.pem)
        network = SimulatedNetwork(20)
        self.api = DemoApi({SECRET: network}, now=time.time)
        self.sites: list[Counting] = []

    def upstream(
        self, host: str = "localhost", *, tls: bool = True, issued: Issued | None = None
    ) -> str:
        """Serve the simulated API; its address."""
        endpoint: IStreamServerEndpoint
        if ":" in host:
            endpoint = TCP6ServerEndpoint(reactor, 0, interface="::1")
        else:
            endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
        if tls:
            issued = issued or self.authority.issue(host.strip("[]"))
            endpoint = wrapServerTLS(issued.server().options(), endpoint)
        site = Counting(Site(self.api))
        self.sites.append(site)
        return f"http{'s' * tls}://{host}:{listening(self, site, endpoint)}"

    @property
    def connections(self) -> int:
        """Return the connections of all upstreams."""
        return sum(site.connections for site in self.sites)

    def client(self, url: str, **settings: str) -> Client:
        """One whose idle connections end with the test."""
        found = environment.read_settings(
            {
                "UPSTREAM_API_URL": url,
                "UPSTREAM_API_TOKEN": SECRET,
                "UPSTREAM_CA_FILE": self.trusted,
                "API_RETRY_ATTEMPTS": "1",
                "HTTP_TIMEOUT": "10s",
                **settings,
            }
        )
        assert isinstance(reactor, PosixReactorBase)
        client = Client(
            found.accounts[""],
            reactor,
            clocks=Clocks(reactor, time.time, random.random),
            on_attempt=lambda _: None,
        )
        self.addCleanup(client.stopService)
        return client

    def fetch(self, client: Client) -> Deferred[ResponseBody]:
        return client.fetcher.fetch("api/peers", 60.0)

    async def read(self, client: Client) -> bytes:
        """Return the peers, decompressed."""
        body = await self.fetch(client)
        body.close()
        return await deferToThread(unpack, body)

    async def assert_read(self, client: Client) -> None:
        body = await self.read(client)
        self.assertTrue(body.startswith(b"[{"), body[:80])

    async def failing(self, client: Client) -> UpstreamError:
        """Return the error of a fetch that fails."""
        try:
            body = await self.read(client)
        except UpstreamError as error:
            return error
        raise self.failureException(f"no error: {body[:80]!r}")

    async def assert_fails(self, client: Client, reason: str, words: str) -> None:
        """Fail unless the peers cannot be fetched; the error contains no secret."""
        error = await self.failing(client)
        self.assertEqual(reason, error.reason, error)
        self.assertIn(words, str(error))
        self.assertNotIn(SECRET, str(error))


class Counting(WrappingFactory):
    """Knows how many connections there have been."""

    noisy = False
    connections = 0

    def registerProtocol(self, p: ProtocolWrapper) -> None:  # noqa: N802
        self.connections += 1
        super().registerProtocol(p)
