"""The program with proxies and certificates in its environment."""

import re
from pathlib import Path

from cryptography import x509

from tests.authority import Authority, written
from tests.integration.exporter import GOOD, ExporterTestCase, Upstream
from tests.integration.programs import get, until
from tests.integration.proxies import folder, nginx, squid

NAME = "upstream.example"
"""A name that only the proxy can resolve."""

SANS = [x509.DNSName(NAME)]


class WayTests(ExporterTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = folder(self)
        self.authority = Authority("our authority")
        self.issued = self.authority.issue(NAME, sans=SANS)
        pem = Path(written(self.folder, "both", self.issued.pem, self.issued.key))
        self.upstream = Upstream(self, pem=pem)
        port = self.upstream.server_address[1]
        self.environ = self.reading(f"https://{NAME}:{port}", UPSTREAM_API_TOKEN=GOOD)
        self.environ.pop("SSL_CERT_FILE", None)
        self.trusted = written(self.folder, "trusted", self.authority.pem)

    def test_environment(self) -> None:
        """A proxy and authorities from environment or file are used and logged."""
        proxy = squid(self, self.folder / "squid", f"127.0.0.1 {NAME}\n")
        file = Path(written(self.folder, "config", b"# proxies\n"))
        for given, text in (
            (
                {
                    "https_proxy": f"http://{proxy.address}/",
                    "UPSTREAM_CA_FILE": self.trusted,
                },
                "",
            ),
            ({}, f"HTTPS_PROXY={proxy.address}\nSSL_CERT_FILE={self.trusted}\n"),
        ):
            file.write_text(text)
            command = [*self.exporter, "--check", "--config", str(file)]
            ended = self.ended(command, {**self.environ, **given})
            self.assertEqual(0, ended.returncode, ended.stdout + ended.stderr)
            name = next(iter(given), "HTTPS_PROXY")
            others = ("user:", "waiting for ")  # it waits if the machine is busy
            lines = [x for x in ended.stdout.splitlines() if not x.startswith(others)]
            upstream, way, certificate, reachable, *_ = lines
            self.assertEqual(
                f"NetBird API: {self.environ['UPSTREAM_API_URL']}", upstream
            )
            self.assertEqual(f"connection: through {proxy.address} ({name})", way)
            self.assertRegex(
                certificate,
                r"^certificate: expires 20\d\d-\d\d-\d\d \d\d:\d\d UTC, issued by"
                r" CN=our authority$",
            )
            self.assertEqual("reachable: yes", reachable)
        self.assertIn(f"CONNECT {NAME}:", proxy.log())
        self.assertNotIn(GOOD, proxy.log())

    def test_certificates(self) -> None:
        """The expiry of the upstream's and the client's certificates is a metric."""
        own = self.authority.issue("exporter", days=7)
        server = self.authority.issue("localhost", days=9)
        gateway = nginx(
            self,
            self.folder / "nginx",
            server.pem + server.key,
            self.authority.pem,
            self.upstream.url,
        )
        port = gateway.address.rpartition(":")[2]
        environ = {
            **self.environ,
            "UPSTREAM_API_URL": f"https://localhost:{port}",
            "UPSTREAM_CA_FILE": self.trusted,
            "UPSTREAM_CLIENT_CERT_FILE": written(self.folder, "own", own.pem, own.key),
            "COLLECTORS": "peers",
        }
        running = self.started(self.exporter, environ, "netbird_api_up 1.0")
        name = "api_exporter_{}_certificate_expiration_timestamp_seconds"
        page = get(self.url())[2].decode()
        for whose, ends in (("upstream", server.ends), ("client", own.ends)):
            [value] = re.findall(rf"^{name.format(whose)} (.*)$", page, re.MULTILINE)
            self.assertEqual(ends, float(value))
        until(lambda: "reached the NetBird API" in running.said(), "a line")
        self.assertIn(f"at https://localhost:{port}, direct", running.said())
