"""Findings about the reverse proxy appear, stay away, and end."""

from msgspec.structs import replace

from api_exporter.netbird.inventory import Inventory
from api_exporter.subjects.reverse_proxy import (
    PROXY_CLUSTERS,
    AccessRestrictions,
    ProxyAuth,
    ProxyCluster,
    ProxyService,
    ProxyServiceMeta,
    ProxyTarget,
    ProxyToken,
    open_paths,
    requires_authentication,
)
from tests.attention.looking import DAY, FindingsTestCase, at
from tests.inventories import inventory_of


class ReverseProxyExpiryTests(FindingsTestCase):
    def test_proxy_token(self) -> None:
        """A proxy's token in use that expires within 14 days is a finding."""
        token = ProxyToken(
            id="p", name="edge", expires_at=at(14 * DAY - 1), last_used=at(-DAY)
        )
        revoked = replace(token, revoked=True)
        for left, words in (
            (14 * DAY - 1, "expires soon: {} cannot connect then. (until 1209599)"),
            (0, "has expired: {} cannot connect. (since 0)"),
        ):
            line = words.format("the proxy that uses this token")
            ending = replace(token, expires_at=at(left))
            self.tells(
                inventory_of(proxy_tokens=(revoked, ending)),
                f"NetBirdProxyTokenExpiresSoon: Proxy token edge {line}",
            )
        for changes in (
            {"expires_at": at(14 * DAY)},
            {"last_used": at(-7 * DAY)},
            {"last_used": None},
        ):
            self.tells(inventory_of(proxy_tokens=(replace(token, **changes),)))


class ProxiesTests(FindingsTestCase):
    def service(self, **fields: object) -> Inventory:
        """Return a disabled service and an enabled one, by default with a password."""
        service = ProxyService(
            id="w",
            name="wiki",
            mode="http",
            enabled=True,
            auth={"password": ProxyAuth(enabled=True)},
        )
        off = ProxyService(id="off")
        return inventory_of(proxy_services=(off, replace(service, **fields)))

    def test_failed(self) -> None:
        """An enabled service that has failed is a finding."""
        tunnel = "NetBirdProxyTunnelFailed: Proxy service wiki cannot be reached:"
        for status, line in (
            (
                "certificate_failed",
                "NetBirdProxyCertificateFailed: Proxy service wiki has no certificate:"
                " NetBird could not get one.",
            ),
            ("tunnel_not_created", f"{tunnel} there is no tunnel to its target."),
            ("error", f"{tunnel} its status is error."),
        ):
            meta = ProxyServiceMeta(status=status)
            self.tells(self.service(meta=meta), line)
            self.tells(self.service(meta=meta, enabled=False))
        self.tells(self.service())

    def test_open(self) -> None:
        """A service without authentication is open, unless a list restricts it."""
        line = (
            "NetBirdProxyServiceOpen: Proxy service wiki is open to the internet: it"
            " requires no authentication"
        )
        everyone = ("10.0.0.0/8", "0.0.0.0/0")
        for line_, allowed in (
            (f"{line}.", AccessRestrictions()),
            (
                f"{line}, and its access list allows 0.0.0.0/0.",
                AccessRestrictions(allowed_cidrs=everyone),
            ),
            (
                f"{line}, and its access list allows ::/0.",
                AccessRestrictions(allowed_cidrs=("::/0",)),
            ),
            ("", AccessRestrictions(allowed_cidrs=("192.0.2.0/24",))),
            ("", AccessRestrictions(allowed_countries=("DE",))),
        ):
            for mode in ("http", ""):
                inventory = self.service(
                    auth=None, access_restrictions=allowed, mode=mode
                )
                self.tells(inventory, line_)

    def test_methods(self) -> None:
        """Any enabled method of any shape requires authentication."""
        on, off = ProxyAuth(enabled=True), ProxyAuth()
        for required, service in (
            (False, ProxyService(id="s", auth={})),
            (True, ProxyService(id="s", auth={"link": off, "pin": on})),
            (True, ProxyService(id="s", auth={"headers": (off, on)})),
            (False, ProxyService(id="s", auth={"headers": (off, "x", True)})),
        ):
            self.assertEqual(required, requires_authentication(service), service)

    def test_open_path(self) -> None:
        """A path that bypasses authentication is open; a blocked path is not."""
        line = (
            "NetBirdProxyServiceOpen: Proxy service wiki is open to the internet: it"
            " requires no authentication on"
        )
        target = ProxyTarget(path="/a", enabled=True, access_action="bypass")
        inherit, block = (
            replace(target, access_action=action) for action in ("inherit", "block")
        )
        off = replace(target, enabled=False)
        for line_, *targets in (
            (f"{line} /a.", block, target),
            (f"{line} /a, /.", target, replace(target, path="")),
            ("", inherit, block, off, replace(target, access_action="")),
        ):
            self.tells(self.service(targets=tuple(targets)), line_)
        self.tells(self.service(targets=(target,), mode="tcp"))
        for mode, found in (("http", ["/a"]), ("", ["/a"]), ("tcp", [])):
            service = ProxyService(id="s", targets=(target,), mode=mode)
            self.assertEqual(found, open_paths(service))
        listed = AccessRestrictions(allowed_cidrs=("192.0.2.0/24",))
        self.tells(self.service(targets=(target,), access_restrictions=listed))
        many = tuple(replace(target, path=f"/{n}") for n in range(12))
        paths = ", ".join(f"/{n}" for n in range(10))
        self.tells(self.service(targets=many), f"{line} {paths}, ….")

    def test_old_clusters(self) -> None:
        """Servers that do not say it list a cluster by its connected proxies."""
        body = b'[{"address":"eu","connected_proxies":1},{"address":"us"}]'
        clusters = PROXY_CLUSTERS.decoder.decode(body).records
        self.tells(
            inventory_of(proxy_clusters=clusters),
            "NetBirdProxyClusterOffline: Proxy cluster us has no connected proxy: its"
            " services cannot be reached.",
        )

    def test_clusters(self) -> None:
        """The finding of a cluster without a proxy names its address."""
        cluster = ProxyCluster(address="eu.example")
        self.tells(
            inventory_of(proxy_clusters=(cluster, replace(cluster, online=True))),
            "NetBirdProxyClusterOffline: Proxy cluster eu.example has no connected"
            " proxy: its services cannot be reached.",
        )
