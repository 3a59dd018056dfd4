"""The client before a gateway that requires a certificate: Debian's nginx."""

from api_exporter.upstream.client import Client
from tests.authority import Authority, Issued, written
from tests.integration.proxies import Served, nginx, squid
from tests.integration.reaching import ReachingTestCase

NOBODY = "400"
"""The answer of nginx to an unknown client."""


class GatewayTests(ReachingTestCase):
    """The gateway knows an authority for persons, we one for servers."""

    def setUp(self) -> None:
        super().setUp()
        self.persons = Authority("the authority for persons")

    def gateway(self) -> Served:
        issued = self.authority.issue("localhost")
        plain = self.upstream(tls=False)
        return nginx(
            self,
            self.directory / "nginx",
            issued.pem + issued.key,
            self.persons.pem,
            plain,
        )

    def at(self, gateway: Served, **settings: str) -> Client:
        port = gateway.address.rpartition(":")[2]
        return self.client(f"https://localhost:{port}", **settings)

    def files(self, issued: Issued, *above: bytes) -> dict[str, str]:
        """Settings that name a certificate and its key, which are written."""
        certificate = written(self.directory, "own.pem", issued.pem, *above)
        key = written(self.directory, "own.key", issued.key)
        return {
            "UPSTREAM_CLIENT_CERT_FILE": certificate,
            "UPSTREAM_CLIENT_KEY_FILE": key,
        }

    def client_ends(self, client: Client) -> float | None:
        certificate = client.tls_policy.client_certificate
        return certificate.ends if certificate else None

    async def test_known(self) -> None:
        """Two files or one with both are shown, and what vouches for them."""
        gateway = self.gateway()
        own = self.persons.issue("exporter")
        await self.assert_read(self.at(gateway, **self.files(own)))
        both = written(self.directory, "both.pem", own.key, own.pem)
        await self.assert_read(self.at(gateway, UPSTREAM_CLIENT_CERT_FILE=both))
        between = Authority("below it", self.persons)
        leaf = between.issue("exporter")
        await self.assert_read(self.at(gateway, **self.files(leaf, between.pem)))
        await self.assert_fails(
            self.at(gateway, **self.files(leaf)), "http_4xx", NOBODY
        )
        await self.assert_fails(self.at(gateway), "http_4xx", NOBODY)

    async def test_through_a_proxy(self) -> None:
        """The gateway sees the certificate, the proxy before it does not ask for it."""
        gateway = self.gateway()
        proxy = squid(self, self.directory / "squid")
        files = self.files(self.persons.issue("exporter"))
        await self.assert_read(
            self.at(gateway, UPSTREAM_PROXY=f"http://{proxy.address}", **files)
        )

    async def test_renewed(self) -> None:
        """New files hold for new connections after a reload, or a minute."""
        gateway = self.gateway()
        stranger = self.authority.issue("exporter", days=5)
        client = self.at(gateway, **self.files(stranger))
        await self.assert_fails(client, "http_4xx", NOBODY)
        self.assertEqual(stranger.ends, self.client_ends(client))
        own = self.persons.issue("exporter", days=9)
        self.files(own)
        client.reload()
        await self.assert_read(client)
        self.assertEqual(own.ends, self.client_ends(client))

    async def test_disliked(self) -> None:
        """A certificate that OpenSSL trusts is used even if our parser refuses it."""
        authority = Authority("odd", country="XX")
        issued = authority.issue("localhost")
        issued.pem, trusted = authority.odd(issued), authority.odd()
        url = self.upstream(issued=issued)
        path = written(self.directory, "odd.pem", trusted)
        client = self.client(url, UPSTREAM_CA_FILE=path)
        await self.assert_read(client)
        self.assertIsNone(client.server_certificate)
