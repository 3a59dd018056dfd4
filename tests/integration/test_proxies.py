"""The client through real proxies, and through one that misbehaves."""

import random
import tempfile
import time
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.endpoints import (
    TCP4ServerEndpoint,
    TCP6ServerEndpoint,
    wrapServerTLS,
)
from twisted.internet.posixbase import PosixReactorBase
from twisted.trial.unittest import TestCase
from twisted.web.server import Site

from api_exporter.ports import Attempt, UpstreamError
from api_exporter.settings import reading
from api_exporter.upstream.client import Client
from tests.authority import Authority, written
from tests.integration.ports import listening
from tests.integration.proxies import squid, tinyproxy
from tests.integration.test_failures import FaultyApi

SECRET = "nbp_0canary0canary0canary0canary0can0000"


class ReachingTestCase(TestCase):
    """An upstream, with TLS and without, and clients of it."""

    timeout = 60

    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.directory = Path(made.name)
        self.directory.chmod(0o755)  # for squid, which drops its privileges
        self.authority = Authority("our authority")
        self.trusted = written(self.directory, "authority.pem", self.authority.pem)
        self.connections = 0
        self.api = FaultyApi(time.time)
        self.attempts: list[Attempt] = []

    def upstream(self, host: str = "localhost", *, tls: bool = True) -> str:
        """Serve the simulated API; its address."""
        kind = TCP6ServerEndpoint if ":" in host else TCP4ServerEndpoint
        endpoint = kind(reactor, 0, interface="::1" if ":" in host else "127.0.0.1")
        if tls:
            options = self.authority.issue(host.strip("[]")).server().options()
            endpoint = wrapServerTLS(options, endpoint)
        case = self

        class Counting(Site):
            def startFactory(self) -> None:
                pass

        port = listening(self, Counting(self.api), endpoint)
        return f"http{'s' * tls}://{host}:{port}"

    def client(self, url: str, **settings: str) -> Client:
        """One whose idle connections end with the test."""
        found = reading.read(
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
            now=time.time,
            jitter=random.random,
            observe=self.attempts.append,
        )
        self.addCleanup(client.stopService)
        return client

    async def failing(self, client: Client) -> UpstreamError:
        try:
            body = await client.upstream.fetch("api/peers", 60.0)
        except UpstreamError as error:
            return error
        raise self.failureException(f"it went well: {body[:80]!r}")

    async def assert_read(self, client: Client) -> None:
        body = await client.upstream.fetch("api/peers", 60.0)
        self.assertTrue(body.startswith(b"[{"), body[:80])


class RealProxyTests(ReachingTestCase):
    async def test_tunnels(self) -> None:
        for proxy in (squid, tinyproxy):
            served = proxy(self, self.directory / proxy.__name__)
            client = self.client(
                self.upstream(), UPSTREAM_PROXY=f"http://{served.address}"
            )
            begin = time.time()
            await self.assert_read(client)
            print(proxy, time.time() - begin)
            print(served.log())
            print(client.certificates.upstream)
