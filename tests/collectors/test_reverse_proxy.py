"""The reverse_proxy collector, a claim of the contract at a time."""

from datetime import UTC, datetime

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.reverse_proxy import measure
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    ProxyCluster,
    ProxyDomain,
    ProxyService,
    ProxyServiceMeta,
    ProxyToken,
)
from tests.collectors.samples import Told, told

NOON = datetime(2026, 5, 22, 12, tzinfo=UTC)
ZERO = datetime(1, 1, 1, tzinfo=UTC)
KNOWN = (
    "pending",
    "active",
    "tunnel_not_created",
    "certificate_pending",
    "certificate_failed",
    "error",
)
APP = '{proxy_service_id="s1",proxy_service="app"}'


def service(status: str, *, id_: str = "s1") -> ProxyService:
    return ProxyService(id=id_, name="app", meta=ProxyServiceMeta(status=status))


def of(*services: ProxyService) -> Told:
    return told(measure, Inventory(proxy_services=services))


class ServicesTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Nothing is said of what is unknown; each resource stands alone."""
        for inventory, families in (
            (Inventory(), set()),
            (Inventory(proxy_services=()), {"proxy_services"}),
            (
                Inventory(proxy_domains=(ProxyDomain(id="d", type="custom"),)),
                {"proxy_domain_validated"},
            ),
            (
                Inventory(proxy_clusters=(ProxyCluster(id="c"),)),
                {"proxy_cluster_online", "proxy_cluster_connected_proxies"},
            ),
            (
                Inventory(proxy_tokens=(ProxyToken(id="t", expires_at=NOON),)),
                {"proxy_token_expiration_timestamp_seconds"},
            ),
        ):
            self.assertEqual(families, set(told(measure, inventory)))

    def test_counts(self) -> None:
        """All known statuses are counted, and others that occur."""
        for statuses, others in (
            ((), {}),
            (("active", "active", "error"), {}),
            (("active", "levitating"), {"levitating": 1}),
        ):
            services = [service(s, id_=str(n)) for n, s in enumerate(statuses)]
            counts = {status: statuses.count(status) for status in KNOWN} | others
            self.assertEqual(
                [f'{{status="{status}"}} {n}' for status, n in counts.items()],
                of(*services)["proxy_services"],
            )

    def test_no_status(self) -> None:
        """A service without a status is counted too, as what it was sent with."""
        self.assertIn('{status=""} 1', of(service(""))["proxy_services"])

    def test_status(self) -> None:
        """A service has a series for each known status, and for its own."""
        for status, statuses in (
            ("active", KNOWN),
            ("error", KNOWN),
            ("", KNOWN),
            ("levitating", (*KNOWN, "levitating")),
        ):
            self.assertEqual(
                [
                    f'{{proxy_service_id="s1",proxy_service="app",status="{each}"}}'
                    f" {int(each == status)}"
                    for each in statuses
                ],
                of(service(status))["proxy_service_status"],
            )

    def test_one_service(self) -> None:
        """A service has its properties, and a certificate once it was issued."""
        for issued, samples in (
            (NOON, [f"{APP} 1779451200"]),
            (ZERO, None),
            (None, None),
        ):
            families = of(
                ProxyService(
                    id="s1",
                    name="app",
                    mode="http",
                    domain="app.example",
                    enabled=True,
                    meta=ProxyServiceMeta(certificate_issued_at=issued),
                )
            )
            self.assertEqual(
                [
                    (
                        '{proxy_service_id="s1",proxy_service="app",mode="http",'
                        'domain="app.example"} 1'
                    )
                ],
                families["proxy_service_info"],
            )
            self.assertEqual([f"{APP} 1"], families["proxy_service_enabled"])
            self.assertEqual(
                samples,
                families.get("proxy_service_certificate_issued_timestamp_seconds"),
            )
        self.assertEqual([f"{APP} 0"], of(service(""))["proxy_service_enabled"])


class ProxiesTests(SynchronousTestCase):
    def test_domains(self) -> None:
        """Only domains whose type is exactly custom are validated or not."""
        domains = (
            ProxyDomain(id="d1", domain="a.example", type="custom", validated=True),
            ProxyDomain(id="d2", domain="a.example", type="custom"),
            ProxyDomain(id="d3", domain="b.example", type="free", validated=True),
            ProxyDomain(id="d4", domain="c.example", type="Custom", validated=True),
            ProxyDomain(id="d5", domain="d.example"),
        )
        self.assertEqual(
            {
                "proxy_domain_validated": [
                    '{proxy_domain_id="d1",domain="a.example"} 1',
                    '{proxy_domain_id="d2",domain="a.example"} 0',
                ]
            },
            told(measure, Inventory(proxy_domains=domains)),
        )

    def test_clusters(self) -> None:
        """A cluster goes by its address."""
        clusters = (
            ProxyCluster(
                id="c1", address="x.example", online=True, connected_proxies=2
            ),
            ProxyCluster(id="c2"),
        )
        x, none = (
            '{proxy_cluster_id="c1",proxy_cluster="x.example"}',
            '{proxy_cluster_id="c2",proxy_cluster=""}',
        )
        self.assertEqual(
            {
                "proxy_cluster_online": [f"{x} 1", f"{none} 0"],
                "proxy_cluster_connected_proxies": [f"{x} 2", f"{none} 0"],
            },
            told(measure, Inventory(proxy_clusters=clusters)),
        )

    def test_tokens(self) -> None:
        """A token that never ends, or is revoked, has no end."""
        tokens = (
            ProxyToken(id="t1", name="edge", expires_at=NOON),
            ProxyToken(id="t2", name="edge", expires_at=NOON, revoked=True),
            ProxyToken(id="t3", expires_at=ZERO),
            ProxyToken(id="t4"),
        )
        self.assertEqual(
            {
                "proxy_token_expiration_timestamp_seconds": [
                    '{proxy_token_id="t1",proxy_token="edge"} 1779451200'
                ]
            },
            told(measure, Inventory(proxy_tokens=tokens)),
        )
