"""The client through Debian's proxies: squid and tinyproxy."""

from collections.abc import Callable, Iterator

from tests.integration.programs import free_port, until
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

    async def test_whole_address(self) -> None:
        """A plain upstream is requested by its whole URL, on kept connections."""
        for proxy in self.proxies():
            url = self.upstream(tls=False)
            client = self.client(url, UPSTREAM_PROXY=proxy.address)
            for _ in range(3):
                await self.assert_read(client)
            line = f"GET {url}/api/peers"
            until(lambda p=proxy, g=line: p.log().count(g) >= 3, "three lines")  # type: ignore[misc]
            self.assertEqual(3, proxy.log().count(line), proxy.log())

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
                        # Tinyproxy says 401 to what is wrong, which is the upstream's.
                        await self.assert_fails(client, "auth", "401")
                        continue
                    await self.assert_fails(client, "proxy_auth", words)
                    self.assertIn(words, await client.fetcher.reachability_problem())
                await known.stopService()

    async def test_ipv6(self) -> None:
        """Proxy and upstream may be IPv6 addresses."""
        for proxy in self.proxies("::1"):
            for tls in (True, False):
                url = self.upstream("[::1]", tls=tls)
                client = self.client(url, UPSTREAM_PROXY=f"http://{proxy.address}")
                await self.assert_read(client)

    async def test_tls_to_the_proxy(self) -> None:
        """A proxy over TLS is verified, and carries TLS to the upstream within."""
        issued = self.authority.issue("localhost")
        proxy = squid(self, self.directory / "squid", pem=issued.pem + issued.key)
        port = proxy.address.rpartition(":")[2]
        for tls in (True, False):
            url = self.upstream(tls=tls)
            client = self.client(url, UPSTREAM_PROXY=f"https://localhost:{port}")
            for _ in range(3):
                await self.assert_read(client)
            for host, trusted in (("127.0.0.1", self.trusted), ("localhost", "")):
                client = self.client(
                    url,
                    UPSTREAM_PROXY=f"https://{host}:{port}",
                    UPSTREAM_CA_FILE=trusted,
                )
                words = f"no trusted TLS connection to the proxy {host}:{port}"
                await self.assert_fails(client, "proxy", words)

    async def test_away(self) -> None:
        """A proxy that is not there is no fault of the upstream's."""
        for url in (self.upstream(), self.upstream(tls=False)):
            for address, words in (
                (f"127.0.0.1:{free_port()}", "Connection refused"),
                ("no-such-host.invalid:3128", "no-such-host.invalid"),
            ):
                client = self.client(url, UPSTREAM_PROXY=address)
                error = await self.failing(client)
                self.assertEqual("proxy", error.reason)
                self.assertIn(f"no connection to the proxy {address}: ", str(error))
                self.assertIn(words, str(error))
                self.assertTrue(error.unsent)
        self.assertEqual(0, self.connections)
