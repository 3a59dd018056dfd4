"""The client through Debian's proxies: squid and tinyproxy."""

from collections.abc import Callable, Iterator

from tests.integration.programs import until
from tests.integration.proxies import Served, squid, tinyproxy
from tests.integration.reaching import ReachingTestCase

BOTH: tuple[Callable[..., Served], ...] = (squid, tinyproxy)


class RealProxyTests(ReachingTestCase):
    def proxies(
        self, host: str = "127.0.0.1", *, login: bool = False
    ) -> Iterator[Served]:
        """Each of them, started."""
        for made in BOTH:
            yield made(self, self.directory / made.__name__, host, login=login)

    async def test_tunnel(self) -> None:
        """Twenty refreshes go through one tunnel."""
        for proxy in self.proxies():
            before = self.connections
            client = self.client(
                self.upstream(), UPSTREAM_PROXY=f"http://{proxy.address}"
            )
            for _ in range(20):
                await self.assert_read(client)
            self.assertEqual(1, self.connections - before)
            assert client.server_certificate is not None
            self.assertEqual("CN=our authority", client.server_certificate.issuer)
            await client.stopService()
            until(lambda p=proxy: "CONNECT localhost:" in p.log(), "a line")  # type: ignore[misc]
            self.assertEqual(1, proxy.log().count("CONNECT localhost:"), proxy.log())

    async def test_login(self) -> None:
        """User and password of the address are decoded; wrong ones are `proxy_auth`."""
        for proxy in self.proxies(login=True):
            for tls in (True, False):
                url = self.upstream(tls=tls)
                known = self.client(
                    url, UPSTREAM_PROXY=f"http://{proxy.login}@{proxy.address}"
                )
                await self.assert_read(known)
                for login in ("", "exporter:wrong@"):
                    client = self.client(
                        url, UPSTREAM_PROXY=f"http://{login}{proxy.address}"
                    )
                    words = "requires a valid user and password"
                    if proxy.login.endswith("word") and login and not tls:
                        # Tinyproxy says 401 to what is wrong, as a server would.
                        asks = "asks for Basic authentication"
                        await self.assert_fails(client, "http_4xx", asks)
                        continue
                    await self.assert_fails(client, "proxy_auth", words)
                    self.assertIn(words, await client.fetcher.reachability_problem())
                await known.stopService()
