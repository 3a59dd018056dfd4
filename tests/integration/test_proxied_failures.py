"""The failure table through a real proxy: what is seen behind it is the same."""

import time
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.endpoints import SSL4ServerEndpoint
from twisted.internet.posixbase import PosixReactorBase
from twisted.web.iweb import IAgent
from twisted.web.server import Site

from api_exporter.settings.proxy import proxy
from api_exporter.upstream.agent import UpstreamAgent
from api_exporter.upstream.tls_policy import TlsPolicy
from tests.authority import Authority, written
from tests.integration import test_failures
from tests.integration.ports import listening
from tests.integration.programs import free_port
from tests.integration.proxies import folder, squid


class ProxiedFailureTests(test_failures.FailureTests):
    """With an https upstream where a test names no other, so in a tunnel."""

    def setUp(self) -> None:
        super().setUp()
        directory = folder(self)
        self.authority = Authority("our authority")
        self.trusted = Path(written(directory, "trusted.pem", self.authority.pem))
        self.proxy = squid(self, directory / "squid")

    def proxy_selection(self, url: str | None) -> tuple[IAgent, str]:
        trusted = None
        if url is None:
            trusted = self.trusted
            options = self.authority.issue("localhost").server().options()
            endpoint = SSL4ServerEndpoint(reactor, 0, options, interface="127.0.0.1")
            url = f"https://localhost:{listening(self, Site(self.api), endpoint)}"
        assert isinstance(reactor, PosixReactorBase)
        policy = TlsPolicy(trusted, None, time.time)
        agent = UpstreamAgent(
            reactor,
            proxy=proxy(self.proxy.address),
            policy=policy,
            proxy_policy=policy,
            timeout=self.deadline,
            on_certificate=lambda _: None,
        )
        self.addCleanup(agent.close)
        return agent, url

    async def test_refused(self) -> None:
        """If no server listens, the reason is the proxy's."""
        await self.assert_unreachable(
            f"https://localhost:{free_port()}",
            "proxy",
            "the proxy cannot reach the NetBird API",
            attempts=3,
        )

    async def test_no_such_name(self) -> None:
        """A name that the proxy cannot resolve is the proxy's reason, too."""
        await self.assert_unreachable(
            "https://no-such-host.invalid",
            "proxy",
            "the proxy cannot reach the NetBird API",
            attempts=3,
        )
