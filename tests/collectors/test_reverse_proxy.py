"""The reverse_proxy collector."""

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import convert, json
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    ProxyCluster,
    ProxyDomain,
    ProxyService,
    ProxyServiceMeta,
    ProxyToken,
)
from tests.bodies import decoded
from tests.collectors.samples import Samples, scrape

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


def of(*services: ProxyService) -> Samples:
    return scrape("reverse_proxy", Inventory(proxy_services=services))


class ServicesTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Unknown resources have no families, each without effect on the others."""
        for inventory, families in (
            (Inventory(), set()),
            (Inventory(proxy_services=()), {"proxy_services"}),
            (
                Inventory(proxy_domains=(ProxyDomain(id="d", type="custom"),)),
                {"proxy_domain_validated"},
            ),
            (
                Inventory(proxy_clusters=(ProxyCluster(address="c"),)),
                {"proxy_cluster_online", "proxy_cluster_connected_proxies"},
            ),
            (
                Inventory(proxy_tokens=(ProxyToken(id="t", expires_at=NOON),)),
                {"proxy_token_expiration_timestamp_seconds"},
            ),
        ):
            self.assertEqual(families, set(scrape("reverse_proxy", inventory)))

    def test_counts(self) -> None:
        """All known statuses are counted, and other statuses that occur."""
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
        """A service without a status is counted with an empty one."""
        self.assertIn('{status=""} 1', of(service(""))["proxy_services"])

    def test_status(self) -> None:
        """A service has a series for each known status and for its own."""
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

    def test_restricted(self) -> None:
        """Only an allow-list restricts a service."""
        everybody = ("0.0.0.0/0", "::/0")
        cases: tuple[tuple[Mapping[str, object] | None, int], ...] = (
            (None, 0),
            ({}, 0),
            ({"allowed_cidrs": [], "allowed_countries": []}, 0),
            ({"blocked_cidrs": ["192.0.2.0/24"], "blocked_countries": ["XX"]}, 0),
            ({"allowed_cidrs": None, "allowed_countries": ["DE"]}, 1),
            ({"allowed_cidrs": ["192.0.2.0/24"]}, 1),
            *(({"allowed_cidrs": ["192.0.2.0/24", all_]}, 0) for all_ in everybody),
            ({"allowed_cidrs": ["::/0"], "allowed_countries": ["DE"]}, 1),
        )
        for lists, restricted in cases:
            body = [{"id": "s1", "name": "app", "access_restrictions": lists}]
            [record] = decoded("proxy_services", json.encode(body)).records
            assert isinstance(record, ProxyService)
            self.assertEqual(
                [f"{APP} {restricted}"], of(record)["proxy_service_restricted"], lists
            )

    def test_one_service(self) -> None:
        """A service has its properties, and a certificate's time once it has one."""
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

    def test_authenticated(self) -> None:
        """A private service, or any enabled authentication method, counts."""
        on, off = {"enabled": True}, {"enabled": False}
        cases: tuple[tuple[Mapping[str, object] | None, bool, int], ...] = (
            (None, False, 0),
            ({}, False, 0),
            ({}, True, 1),
            ({"password_auth": off}, False, 0),
            ({"password_auth": on}, False, 1),
            ({"password_auth": off, "from_the_future": on}, False, 1),
            ({"header_auths": []}, False, 0),
            ({"header_auths": [off, on]}, False, 1),
            ({"header_auths": [off, "odd", None, {}]}, False, 0),
            ({"from_the_future": True, "note": "on", "number": 1.0}, False, 0),
        )
        for auth, private, authenticated in cases:
            families = of(
                convert(
                    {
                        "id": "s1",
                        "name": "app",
                        "mode": "http",
                        "auth": auth,
                        "private": private,
                    },
                    ProxyService,
                )
            )
            self.assertEqual(
                [f"{APP} {authenticated}"], families["proxy_service_authenticated"]
            )

    def test_authenticated_bodies(self) -> None:
        """Any value below `auth` is accepted, and its secrets are not kept."""
        for auth, authenticated in (
            ("null", 0),
            ('{"pin_auth":null}', 0),
            ('{"pin_auth":{"enabled":true,"pin":"1234"}}', 1),
            ('{"header_auths":[{"enabled":true,"value":"1234"},null]}', 1),
            ('{"header_auths":null,"later":7,"else":"1"}', 0),
        ):
            body = f'[{{"id":"s1","name":"app","mode":"http","auth":{auth}}}]'
            found = decoded("proxy_services", body.encode())
            self.assertEqual(0, found.rejected)
            self.assertNotIn("1234", repr(found.records))
            known = Inventory().with_("proxy_services", found.records)
            self.assertEqual(
                [f"{APP} {authenticated}"],
                scrape("reverse_proxy", known)["proxy_service_authenticated"],
            )

    def test_not_http(self) -> None:
        """Only HTTP services can require authentication."""
        for mode in ("tcp", "udp", "tls", "HTTP", ""):
            families = of(ProxyService(id="s1", name="app", mode=mode, private=True))
            self.assertNotIn("proxy_service_authenticated", families)


class ProxiesTests(SynchronousTestCase):
    def test_domains(self) -> None:
        """Only domains with the type custom have a validation."""
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
            scrape("reverse_proxy", Inventory(proxy_domains=domains)),
        )

    def test_clusters(self) -> None:
        """The address identifies a cluster."""
        clusters = (
            ProxyCluster(address="x.example", online=True, connected_proxies=2),
            ProxyCluster(address="y.example"),
        )
        x, y = '{proxy_cluster="x.example"}', '{proxy_cluster="y.example"}'
        self.assertEqual(
            {
                "proxy_cluster_online": [f"{x} 1", f"{y} 0"],
                "proxy_cluster_connected_proxies": [f"{x} 2", f"{y} 0"],
            },
            scrape("reverse_proxy", Inventory(proxy_clusters=clusters)),
        )

    def test_cluster_bodies(self) -> None:
        """The `id` of a cluster, which changes with each start, has no effect."""
        for body, online in (
            (b'[{"id":"p1","address":"x","online":true}]', ["x"]),
            (b'[{"id":"p2","address":"x","online":true}]', ["x"]),
            (b'[{"address":"x","online":true}]', ["x"]),
            (b'[{"id":"","address":"x","online":true}]', ["x"]),
            (b'[{"id":"p","address":"x"},{"id":"p","address":"y"}]', ["x", "y"]),
            (b'[{"id":"p","address":"x"},{"id":"q","address":"x"}]', ["x"]),
            (b'[{"id":"p","address":""},{"id":"q","address":"x"}]', ["x"]),
            (b'[{"id":"p"},{"id":"q","address":"x"}]', ["x"]),
            (b'[{"id":"p"}]', []),
        ):
            clusters = decoded("proxy_clusters", body).records
            families = scrape(
                "reverse_proxy", Inventory().with_("proxy_clusters", clusters)
            )
            self.assertEqual(
                [f'{{proxy_cluster="{address}"}}' for address in online],
                [s.split()[0] for s in families.get("proxy_cluster_online", [])],
                body,
            )

    def test_tokens(self) -> None:
        """A revoked token has no expiry, but may have a time of last use."""
        tokens = (
            ProxyToken(id="t1", name="edge", expires_at=NOON, last_used=NOON),
            ProxyToken(
                id="t2", name="edge", expires_at=NOON, revoked=True, last_used=NOON
            ),
            ProxyToken(id="t3", expires_at=ZERO, last_used=ZERO),
            ProxyToken(id="t4"),
        )
        self.assertEqual(
            {
                "proxy_token_expiration_timestamp_seconds": [
                    '{proxy_token_id="t1",proxy_token="edge"} 1779451200'
                ],
                "proxy_token_last_used_timestamp_seconds": [
                    '{proxy_token_id="t1",proxy_token="edge"} 1779451200',
                    '{proxy_token_id="t2",proxy_token="edge"} 1779451200',
                ],
            },
            scrape("reverse_proxy", Inventory(proxy_tokens=tokens)),
        )
