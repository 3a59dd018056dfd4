"""Each finding appears, stays away, and ends."""

from msgspec.structs import replace

from api_exporter.attention.lifetime import Lifetime
from api_exporter.attention.thresholds import Groups, default_thresholds
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.joins import Reading
from api_exporter.netbird.records import (
    GroupId,
    NetBirdAccount,
    NetBirdSettings,
    Peer,
    User,
)
from api_exporter.ports import UpstreamError
from api_exporter.subjects.findings import unknown_resources
from api_exporter.subjects.groups import count_important
from api_exporter.subjects.networks import Network, NetworkResource, NetworkRouter
from api_exporter.subjects.policies import (
    Checks,
    Policy,
    PostureCheck,
    Rule,
    VersionCheck,
)
from api_exporter.subjects.reverse_proxy import (
    AccessRestrictions,
    ProxyAuth,
    ProxyCluster,
    ProxyService,
    ProxyServiceMeta,
    ProxyTarget,
    ProxyToken,
)
from api_exporter.subjects.routes import Route
from api_exporter.subjects.setup_keys import SetupKey
from api_exporter.subjects.users import AccessToken, UserInvite
from api_exporter.telemetry.freshness import Freshness
from tests.attention.looking import (
    DAY,
    HOUR,
    NOW,
    FindingsTestCase,
    at,
    findings,
    group,
    peer,
    seen,
)
from tests.inventories import changed, inventory_of

STANDING = {
    "NetBirdImportantPeerOffline",
    "NetBirdNetworkUnreachable",
    "NetBirdPeerAwaitsApproval",
    "NetBirdPeersOutdated",
    "NetBirdPolicyEmpty",
    "NetBirdPostureCheckUnused",
    "NetBirdUserAwaitsApproval",
}
"""Alerts of findings that the simulated company has at every instant."""

NEVER = {
    # The simulated API is always reachable and complete: tests and newcomers use it.
    "ApiExporterUpstreamFailing",
    "ApiExporterRecordsRejected",
    "ApiExporterTokenNotWatched",
    # The exporter reaches it without TLS.
    "ApiExporterUpstreamCertificateExpiresSoon",
    "ApiExporterClientCertificateExpiresSoon",
    # The test names an existing group.
    "NetBirdImportantGroupMissing",
    # The threshold has no default.
    "NetBirdAgentCostHigh",
    # A login lasts a day in NetBird: a daily login is routine.
    "NetBirdLoginExpiresSoon",
}
"""Alerts of findings that the simulated company never has."""

SERVERS = ("servers",)

ROUTERS = replace(
    default_thresholds(), groups=Groups(important=[], routers=["routers"])
)

REFUSED = UpstreamError("auth", "401")
FAILING = {
    "peers": Freshness(period=30, error=REFUSED, failing_since=NOW - 60, ended_at=NOW)
}


class RoutingTests(FindingsTestCase):
    def depot(self, *connected: bool) -> Inventory:
        """Return a network with a resource and some routing peers."""
        peers = tuple(
            peer(f"r{number}", connected=there, since=-HOUR * (number + 1))
            for number, there in enumerate(connected)
        )
        return inventory_of(
            peers=peers,
            groups=(group("gates", *(p.id for p in peers)),),
            networks=(
                Network(id="n", name="depot", routers=("x", "off"), resources=("a",)),
            ),
            network_routers=(
                NetworkRouter(id="x", enabled=True, peer_groups=("g-gates",)),
                NetworkRouter(id="off", peer="elsewhere"),
            ),
            network_resources=(
                NetworkResource(id="a", name="printer", enabled=True),
                NetworkResource(id="b", name="of no network", enabled=True),
            ),
        )

    def test_network(self) -> None:
        """A network is unreachable since its last routing peer went offline."""
        for states, words, time in (
            (
                (False, False),
                "none of its 2 routing peers is connected",
                " (since -3600)",
            ),
            ((False,), "its only routing peer is offline", " (since -3600)"),
            ((), "it has no enabled routing peer (1 disabled)", ""),
        ):
            self.tells(
                self.depot(*states),
                f"NetBirdNetworkUnreachable: Network depot cannot be reached: {words};"
                f" 1 unreachable resource: printer.{time}",
            )
        # Without an enabled resource, nothing is unreachable.
        self.tells(changed(self.depot(False), network_resources=()))
        self.tells(self.depot(True, True))
        self.tells(self.depot(True))

    def test_last(self) -> None:
        """Networks with one routing peer left of several have no redundancy."""
        shed = Network(id="m", name="shed", routers=("x",))
        for offline in (1, 2):
            depot = self.depot(True, *([False] * offline))
            words = (
                f"has only 1 of {offline + 1} routing peers connected (no redundancy)."
                " (since -7200)"
            )
            self.tells(
                changed(depot, networks=(*depot.records["networks"], shed)),
                f"NetBirdNetworkRedundancyLost: Network depot {words}",
                f"NetBirdNetworkRedundancyLost: Network shed {words}",
            )

    def test_routes(self) -> None:
        """Routes with one identifier and one network replace each other."""
        office = Route(id="", network_id="office", network="10.0.0.0/8", enabled=True)
        for connected, alert, words in (
            (
                (False, False),
                "Unreachable",
                "leads to no connected peer: none of its 2 routing peers is connected."
                " (since -3600)",
            ),
            (
                (True, False),
                "RedundancyLost",
                "has only 1 of 2 routing peers connected (no redundancy). (since"
                " -7200)",
            ),
            ((True, True), "", ""),
            ((True,), "", ""),
        ):
            routes = [
                replace(office, id=f"{number}", peer=f"r{number}")
                for number in range(len(connected))
            ]
            off = Route(id="off", network_id="off", peer="nobody")
            depot = self.depot(*connected)
            line = f"NetBirdRoute{alert}: Route office to 10.0.0.0/8 {words}"
            self.tells(
                changed(depot, networks=None, routes=(*routes, off)), alert and line
            )

    def test_without_peers(self) -> None:
        """A network or a route without any routing peer is unreachable, too."""
        networks = (Network(id="n", name="depot", resources=("a",)),)
        office = Route(id="r", network_id="office", network="10.0.0.0/8", enabled=True)
        self.tells(
            changed(self.depot(), networks=networks, routes=(office,)),
            "NetBirdNetworkUnreachable: Network depot cannot be reached: it has no"
            " routing peer; 1 unreachable resource: printer.",
            "NetBirdRouteUnreachable: Route office to 10.0.0.0/8 leads to no connected"
            " peer: it has no routing peer.",
        )

    def test_unreadable(self) -> None:
        """While the peers cannot be read, that is the only finding about peers."""
        route = Route(id="r", network_id="r", enabled=True, peer="r0")
        depot = changed(self.depot(False, False), routes=(route,))
        freshness = {**FAILING, "users": Freshness(period=60)}
        unreadable = "ApiExporterUpstreamFailing: The peers cannot be read from the"
        self.tells(
            seen(depot, freshness=freshness),
            f"{unreadable} NetBird API: their metrics are old. (since -60)",
        )
        withdrawn = seen(changed(depot, peers=None), freshness=freshness)
        self.tells(
            withdrawn,
            f"{unreadable} NetBird API: their metrics are missing. (since -60)",
        )
        self.assertEqual(("peers", "users"), unknown_resources(withdrawn))


class GroupsTests(FindingsTestCase):
    OFFLINE = "NetBirdImportantPeerOffline: Group servers has"
    MISSING = "NetBirdImportantGroupMissing: Group"

    def servers(self, *connected: bool) -> Inventory:
        peers = tuple(peer(f"s{n}", connected=on) for n, on in enumerate(connected))
        return inventory_of(
            peers=peers, groups=(group("servers", *(p.id for p in peers)),)
        )

    def test_offline(self) -> None:
        """A finding names the offline peers of an important group."""
        two = self.servers(True, False)
        # An unlisted member is not offline, and a repeated member counts once.
        odd = (group("servers", "s0", "s1", "s1", "of nobody"),)
        for inventory, words in (
            (two, "1 of 2 peers offline: s1."),
            (changed(two, groups=odd), "1 of 2 peers offline: s1."),
            # Peers without series of their own are only counted (`PEER_DETAIL`).
            (changed(two, detail=frozenset()), "1 of 2 peers offline."),
            (
                self.servers(True, *4 * [False]),
                "4 of 5 peers offline: s1, s2, s3 and 1 more.",
            ),
        ):
            looked = seen(inventory, chosen=SERVERS)
            self.tells(looked, f"{self.OFFLINE} {words} (since -3600)")
        self.tells(seen(self.servers(True, True), chosen=SERVERS))

    def test_chosen(self) -> None:
        """IMPORTANT_GROUPS names groups by name or id, and else the thresholds do.

        A missing group is a finding.
        """
        servers = self.servers(False)
        named = replace(
            default_thresholds(), groups=Groups(important=["servers"], routers=["x"])
        )
        lost = f"{self.OFFLINE} 1 of 1 peer offline: s0. (since -3600)"
        words = "does not exist, but the settings name it as"
        self.tells(servers)  # by default, no group is important
        self.tells(seen(servers, chosen=("g-servers",)), lost)
        self.tells(
            seen(servers, chosen=("databases",)),
            f"{self.MISSING} databases {words} important.",
        )
        for chosen in ((), ("g-servers",)):
            self.tells(
                seen(servers, thresholds=named, chosen=chosen),
                lost,
                f"{self.MISSING} x {words} a group of routing peers.",
            )
        # A group that joins do not use yet exists, but its numbers are unknown.
        peers = inventory_of(peers=()).settle(inventory_of(), "peers", Reading(0, 1))
        new = changed(peers, groups=(group("new", "unlisted"),))
        looked = seen(new.settle(peers, "groups", Reading(2, 3)), chosen=("new",))
        self.tells(looked)
        self.assertIsNone(count_important(looked))

    def test_routers(self) -> None:
        """A routing group is down if none of its peers is connected."""
        gates = (peer("a", connected=False), peer("b", connected=False, since=-60))
        down = inventory_of(peers=gates, groups=(group("routers", "a", "b", "gone"),))
        for inventory, peers, time in (
            (down, "connected routing peer", " (since -60)"),
            (changed(down, groups=(group("routers"),)), "routing peer", ""),
        ):
            self.tells(
                seen(inventory, thresholds=ROUTERS),
                f"NetBirdRouterGroupDown: Group routers has no {peers}: networks behind"
                f" this group cannot be reached.{time}",
            )
        up = changed(down, peers=(gates[0], peer("b")))
        self.tells(seen(up, thresholds=ROUTERS))

    def test_login(self) -> None:
        """Expired logins of important peers are a finding."""
        for out, words in (
            ((), ""),
            (("s0",), "1 peer with expired login: s0."),
            (("s0", "s1"), "2 peers with expired logins: s0, s1."),
        ):
            peers = tuple(
                replace(peer(id_), login_expired=id_ in out) for id_ in ("s0", "s1")
            )
            looked = seen(
                changed(self.servers(True, True), peers=peers), chosen=SERVERS
            )
            line = f"NetBirdImportantLoginExpired: Group servers has {words}"
            self.tells(looked, words and line)

    def test_login_of_router(self) -> None:
        """An expired login of a routing peer is a finding, important or not."""
        routing = (replace(peer("a"), login_expired=True), peer("b"))
        inventory = inventory_of(peers=routing, groups=(group("routers", "a", "b"),))
        self.tells(
            seen(inventory, thresholds=ROUTERS),
            "NetBirdImportantLoginExpired: Group routers has 1 peer with expired login:"
            " a.",
        )


class ExpirationsTests(FindingsTestCase):
    def logins(self, lifetime: float, *peers: Peer) -> Inventory:
        """Return an account with this lifetime of logins, and peers with a login."""
        settings = NetBirdSettings(
            peer_login_expiration_enabled=True, peer_login_expiration=round(lifetime)
        )
        return inventory_of(
            accounts=(NetBirdAccount(id="a", settings=settings),),
            peers=tuple(
                replace(one, user_id="u", login_expiration_enabled=True)
                for one in peers
            ),
        )

    def test_logins(self) -> None:
        """Logins of connected peers are a finding in the day before they expire."""
        inventory = self.logins(
            10 * DAY,
            *(
                replace(peer(id_), last_login=at(left - 10 * DAY), connected=there)
                for id_, left, there in (
                    ("soon", DAY - 1, True),
                    ("sooner", 1, True),
                    ("later", 2 * DAY, True),
                    ("over", 0, True),
                    ("away", 60, False),
                )
            ),
        )
        alert = "NetBirdLoginExpiresSoon:"
        self.tells(
            inventory,
            f"{alert} Logins of 2 connected peers expire within 24 hours: soon, sooner."
            " (until 1)",
        )
        self.tells(
            seen(inventory, now=NOW + 2),
            f"{alert} Login of 1 connected peer expires within 24 hours: soon."
            " (until 86399)",
        )
        self.tells(seen(inventory, now=NOW + 3 * DAY))

    def test_lifetime(self) -> None:
        """Soon means a tenth of the lifetime, at most a day. Below three days, a login
        is routine.
        """
        for lifetime, left, hours in (
            (DAY, 60, None),
            (3 * DAY - 1, 60, None),
            (3 * DAY, 0.3 * DAY - 1, 8),
            (3 * DAY, 0.3 * DAY, None),
            (7 * DAY, 0.7 * DAY - 1, 17),
            (7 * DAY, 0.7 * DAY, None),
            (180 * DAY, DAY - 1, 24),
            (180 * DAY, DAY, None),
        ):
            mine = replace(peer("laptop"), last_login=at(left - lifetime))
            inventory = self.logins(lifetime, mine)
            line = (
                "NetBirdLoginExpiresSoon: Login of 1 connected peer expires within"
                f" {hours} hours: laptop. (until {left:g})"
            )
            self.tells(inventory, line if hours else "")
            [account] = inventory.accounts or ()
            off = replace(account.settings, peer_login_expiration_enabled=False)
            never = replace(account, settings=off)
            self.tells(changed(inventory, accounts=(never,)))

    def key(self, **fields: object) -> Inventory:
        """Return a setup key, and one that never has a finding."""
        key = SetupKey(id="k", name="fleet", type="reusable", state="valid")
        single = SetupKey(id="o", type="one-off", state="valid")
        return inventory_of(setup_keys=(single, replace(key, **fields)))

    def test_setup_key(self) -> None:
        """A reusable key in use is a finding from a day before its expiry.

        The finding ends when the key has not been used for a week.
        """
        soon, used = at(DAY - 1), at(-7 * DAY + 1)
        for expires, state, words, time in (
            (soon, "valid", "expires soon", "until 86399"),
            (soon, "overused", "expires soon", "until 86399"),
            (used, "expired", "has expired", "since -604799"),
            (at(0), "expired", "has expired", "since 0"),
        ):
            self.tells(
                self.key(expires=expires, state=state, last_used=used),
                f"NetBirdSetupKeyExpiresSoon: Setup key fleet {words}: machines used"
                f" this key recently. ({time})",
            )
        for fields in (
            {"expires": at(DAY), "last_used": used},
            {"expires": soon, "last_used": used, "type": "one-off"},
            {"expires": soon},
            {"expires": soon, "last_used": at(-7 * DAY)},
            {"expires": soon, "last_used": used, "state": "revoked"},
            {"last_used": used},
            # A new key with the dashboard's seven days.
            {"expires": at(7 * DAY), "last_used": at(0)},
        ):
            self.tells(self.key(**fields))

    def test_used_up(self) -> None:
        """A key is a finding when four fifths of its uses are spent."""
        for limit, used, words in (
            (10, 8, "nearly used up: 8 of 10 uses."),
            (10, 10, "used up: 10 of 10 uses."),
            (1, 1, "used up: 1 of 1 use."),
        ):
            line = f"NetBirdSetupKeyUsedUp: Setup key fleet is {words}"
            self.tells(self.key(usage_limit=limit, used_times=used), line)
            spent = self.key(
                usage_limit=limit, used_times=used, state="overused", last_used=at(-60)
            )
            self.tells(spent, f"{line} (since -60)")
        for fields in (
            {"usage_limit": 10, "used_times": 7},
            {"usage_limit": 0, "used_times": 100},
            {"usage_limit": 10, "used_times": 10, "state": "overused"},
            {"usage_limit": 10, "used_times": 9, "state": "revoked"},
        ):
            self.tells(self.key(**fields))

    def test_access_token(self) -> None:
        """The exporter's token is a finding for 14 days, and a worse one for three."""
        for left, used, alert, words in (
            (14 * DAY, 0, "", ""),
            (14 * DAY - 1, 0, "Soon", "expires soon"),
            (3 * DAY, 0, "Soon", "expires soon"),
            (3 * DAY - 1, 0, "VerySoon", "expires very soon"),
            (1, 0, "VerySoon", "expires very soon"),
            (0, 0, "VerySoon", "has expired"),
            (DAY, DAY, "", ""),
        ):
            token = AccessToken(
                id="t", name="mine", expiration_date=at(left), last_used=at(-used)
            )
            line = (
                f"ApiExporterTokenExpires{alert}: Access token mine of the exporter's"
                f" user {words}: create a new token."
                f" ({'until' if left else 'since'} {left:.0f})"
            )
            tokens = (AccessToken(id="of unknown end"), token)
            inventory = inventory_of(users=(), access_tokens=tokens)
            self.tells(inventory, alert and line)

    def test_proxy_token(self) -> None:
        """A proxy's token in use that expires within 14 days is a finding."""
        token = ProxyToken(
            id="p", name="edge", expires_at=at(14 * DAY - 1), last_used=at(-DAY)
        )
        revoked = replace(token, revoked=True)
        for left, words in (
            (14 * DAY - 1, "expires soon: {} stops then. (until 1209599)"),
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

    def test_certificates(self) -> None:
        """A certificate that expires within a week is a finding."""
        texts = (
            "ApiExporterUpstreamCertificateExpiresSoon: The certificate of the NetBird"
            " API {}: peers and this exporter cannot connect{}. ({})",
            "ApiExporterClientCertificateExpiresSoon: The exporter's client certificate"
            " {}: the gateway of the NetBird API refuses requests{}. ({})",
        )
        for left, words in (
            (7 * DAY, None),
            (7 * DAY - 1, ("expires soon", " after that", "until 604799")),
            (0, ("has expired", "", "since 0")),
        ):
            end = NOW + left
            life = Lifetime(None, end)
            for lives in ((life, life), (life, None), (None, life)):
                known = zip(texts, lives, strict=True)
                lines = [text.format(*words) for text, one in known if words and one]
                looked = seen(
                    inventory_of(),
                    server_certificate=lives[0],
                    client_certificate=lives[1],
                )
                self.tells(looked, *lines)

    def test_short_lives(self) -> None:
        """Soon is within the threshold, and in the last third of a life; very soon is
        in its last ninth.
        """
        for life, left, token, other in (
            (12 * HOUR, 12 * HOUR, "", False),
            (12 * HOUR, 4 * HOUR, "", False),
            (12 * HOUR, 4 * HOUR - 1, "ExpiresSoon", True),
            (9 * DAY, DAY, "ExpiresSoon", True),
            (9 * DAY, DAY - 1, "ExpiresVerySoon", True),
            (90 * DAY, 14 * DAY, "", False),
            (90 * DAY, 4 * DAY, "ExpiresSoon", True),
            (90 * DAY, 3 * DAY - 1, "ExpiresVerySoon", True),
            (DAY, 0, "ExpiresVerySoon", True),
            (-DAY, 0, "ExpiresVerySoon", True),
        ):
            begin, end = at(left - life), at(left)
            certificate = Lifetime(NOW + left - life, NOW + left)
            looked = seen(
                inventory_of(
                    access_tokens=(
                        AccessToken(
                            id="t",
                            created_at=begin,
                            expiration_date=end,
                            last_used=at(0),
                        ),
                    ),
                    proxy_tokens=(
                        ProxyToken(
                            id="p", created_at=begin, expires_at=end, last_used=at(0)
                        ),
                    ),
                    users=(),
                ),
                server_certificate=certificate,
                client_certificate=certificate,
            )
            found = sorted(one.alert for one in findings(looked))
            expected = [f"ApiExporterToken{token}"] if token else []
            if other:
                expected += [
                    "ApiExporterClientCertificateExpiresSoon",
                    "ApiExporterUpstreamCertificateExpiresSoon",
                    "NetBirdProxyTokenExpiresSoon",
                ]
            self.assertEqual(sorted(expected), found, (life, left))


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
            ("", AccessRestrictions(allowed_cidrs=("192.0.2.0/24",))),
            ("", AccessRestrictions(allowed_countries=("DE",))),
        ):
            self.tells(self.service(auth=None, access_restrictions=allowed), line_)

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
        listed = AccessRestrictions(allowed_cidrs=("192.0.2.0/24",))
        self.tells(self.service(targets=(target,), access_restrictions=listed))
        many = tuple(replace(target, path=f"/{n}") for n in range(12))
        paths = ", ".join(f"/{n}" for n in range(10))
        self.tells(self.service(targets=many), f"{line} {paths}, ….")

    def test_clusters(self) -> None:
        """The finding of a cluster without a proxy names its address."""
        cluster = ProxyCluster(address="eu.example")
        self.tells(
            inventory_of(proxy_clusters=(cluster, replace(cluster, online=True))),
            "NetBirdProxyClusterOffline: Proxy cluster eu.example has no connected"
            " proxy: its services cannot be reached.",
        )


class AccountTests(FindingsTestCase):
    def test_peer_approvals(self) -> None:
        """A peer that waits is a finding two hours after its registration."""
        new = Peer(id="n", approval_required=True, created_at=at(0))
        old = replace(new, created_at=None)
        late = replace(new, id="m", created_at=at(HOUR))
        both = "2 peers wait for approval: m, n. (since 0)"
        for peers, passed, words in (
            ((late, new), 3 * HOUR, both),
            ((new, peer("fine")), 2 * HOUR - 1, ""),
            ((new, peer("fine")), 2 * HOUR, "1 peer waits for approval: n. (since 0)"),
            ((old, old), 0, "2 peers wait for approval: n, n."),
        ):
            looked = seen(inventory_of(peers=peers), now=NOW + passed)
            self.tells(looked, words and f"NetBirdPeerAwaitsApproval: {words}")

    def test_user_approvals(self) -> None:
        """Users that wait are counted, not named."""
        user = User(id="u", name="Eve", pending_approval=True)
        for users, words in (
            ((user, User(id="v")), "1 user waits for approval."),
            ((user, user), "2 users wait for approval."),
            ((), ""),
        ):
            line = f"NetBirdUserAwaitsApproval: {words}"
            self.tells(inventory_of(users=users), words and line)

    def checked(self, minimum: str, *, enabled: bool = True) -> Inventory:
        """Return a posture check for a group with peers of three versions."""
        versions = ("0.9.0", "0.60.1", "dev")
        check = Checks(nb_version_check=VersionCheck(min_version=minimum))
        laptops = (GroupId(id="g-laptops"),)
        rule = Rule(enabled=True, sources=laptops, destinations=laptops)
        policy = Policy(
            id="p", enabled=enabled, rules=(rule,), source_posture_checks=("c",)
        )
        return inventory_of(
            peers=tuple(replace(peer(v), version=v) for v in versions),
            groups=(group("laptops", *versions),),
            policies=(policy,),
            posture_checks=(PostureCheck(id="c", name="new", checks=check),),
        )

    def test_versions(self) -> None:
        """A posture check that excludes peers by their version is a finding."""
        for minimum, number in (("0.60.0", "1 peer"), ("0.61.0", "2 peers")):
            self.tells(
                self.checked(minimum),
                f"NetBirdPeersOutdated: Posture check new excludes {number} with a"
                f" version below the minimum {minimum}.",
            )
        self.tells(self.checked("0.9.0"))

    def test_unused_check(self) -> None:
        """A check that no enabled policy uses is a finding, without outdated peers."""
        for inventory in (
            self.checked("9.9.9", enabled=False),
            changed(self.checked("9.9.9"), policies=()),
            # The alert needs neither groups nor peers.
            changed(self.checked("9.9.9"), policies=(), peers=None, groups=None),
        ):
            self.tells(
                inventory,
                "NetBirdPostureCheckUnused: Posture check new has no effect: no enabled"
                " policy uses this check.",
            )

    def test_addresses(self) -> None:
        """A range with more than nine tenths of its addresses in use is a finding."""
        settings = NetBirdSettings(network_range="100.64.0.0/27")  # 30 addresses
        accounts = (
            NetBirdAccount(id="a", settings=settings),
            NetBirdAccount(id="b", settings=NetBirdSettings()),
        )
        full = (
            "NetBirdAddressPoolNearlyFull: The address range is nearly full: peers use"
            " 28 of 30 addresses."
        )
        for taken, line in ((27, ""), (28, full)):
            peers = tuple(peer(f"{number}") for number in range(taken))
            self.tells(inventory_of(accounts=accounts, peers=peers), line)

    def test_policies(self) -> None:
        """A policy is a finding if a side of an enabled rule is empty."""
        rule = Rule(
            enabled=True,
            sources=(GroupId(id="g-all"),),
            destinations=(GroupId(id="g-empty"),),
        )
        policy = Policy(id="p", name="way in", enabled=True, rules=(rule,))
        inventory = inventory_of(
            peers=(peer("a"),), groups=(group("all", "a"), group("empty"))
        )
        neither = replace(policy, rules=(replace(rule, sources=None),))
        for one, sides in ((policy, "1 rule side"), (neither, "2 rule sides")):
            self.tells(
                changed(inventory, policies=(one,)),
                f"NetBirdPolicyEmpty: Policy way in has {sides} without members: these"
                " sources or destinations match no peer and no resource.",
            )
        self.tells(changed(inventory, policies=(replace(policy, enabled=False),)))
        self.tells(changed(inventory, policies=(policy,), peers=()))

    def test_settings(self) -> None:
        """A setting that differs from its required value is a finding."""
        chosen = {"local_mfa_enabled": False, "lazy_connection_enabled": True}
        settings = replace(NetBirdSettings(), **chosen)
        account = NetBirdAccount(id="a", settings=settings)
        wrong = {name: not value for name, value in chosen.items()}
        alert = "NetBirdSettingDiffers: Setting"
        for wanted, lines in (
            ({}, ()),
            (
                wrong,
                (
                    f"{alert} lazy_connection_enabled is on, but must be off.",
                    f"{alert} local_mfa_enabled is off, but must be on.",
                ),
            ),
            ({**chosen, "auto_update_always": True}, ()),
        ):
            thresholds = replace(default_thresholds(), settings=wanted)
            inventory = inventory_of(accounts=(account,))
            self.tells(seen(inventory, thresholds=thresholds), *lines)

    def test_invites(self) -> None:
        """Expired invites are one finding."""
        known, unknown = (
            UserInvite(id=f"{time}", expired=True, expires_at=time)
            for time in (at(-60), None)
        )
        later = replace(known, id="4", expires_at=at(-30))
        valid = UserInvite(id="3", expires_at=at(60))
        for invites, words in (
            ((later, known, unknown, valid), "3 invites have expired"),
            ((known,), "1 invite has expired"),
        ):
            self.tells(
                inventory_of(user_invites=invites),
                f"NetBirdInviteExpired: {words} and cannot be accepted. (since -60)",
            )


class ExporterTests(FindingsTestCase):
    def test_limited(self) -> None:
        """The finding of a user with too few rights says what to do."""
        user = User(id="me", role="user", is_current=True)
        looked = seen(inventory_of(users=(user,)))
        self.tells(
            looked,
            ": The token's user has the role user and may not read everything. The list"
            " of peers may be incomplete. Use the token of a service user with the role"
            " auditor.",
        )
        [finding] = findings(looked)
        self.assertEqual(("warning", ""), (finding.severity, finding.runbook("x")))
        self.tells(inventory_of(users=(replace(user, role="admin"),)))

    def test_not_watched(self) -> None:
        """A token with an unknown expiry is a finding if the tokens are requested."""
        line = (
            "ApiExporterTokenNotWatched: The exporter's token has an unknown expiry"
            " date: no alert warns before the token expires."
        )
        for supported, expected in ((False, line), (True, ""), (None, "")):
            freshness = {"access_tokens": Freshness(period=600, supported=supported)}
            looked = seen(inventory_of(access_tokens=()), freshness=freshness)
            self.tells(looked, expected)
            self.assertEqual((), unknown_resources(looked))

    def test_rejected(self) -> None:
        """Records that are left out are a finding."""
        for number, words in (
            (0, ""),
            (1, "1 unreadable record"),
            (2, "2 unreadable records"),
        ):
            state = Freshness(period=30, last_success=NOW, rejected=number)
            line = (
                f"ApiExporterRecordsRejected: Resource routes has {words}, left out of"
                " the metrics: its counts are too small."
            )
            looked = seen(inventory_of(), freshness={"routes": state})
            self.tells(looked, words and line)

    def test_detail(self) -> None:
        """A missing group of PEER_DETAIL is a finding once the groups are known."""
        wanted = frozenset({"servers", "g-laptops", "gone"})
        inventory = inventory_of(
            detail=wanted, groups=(group("servers"), group("laptops"))
        )
        self.tells(inventory, ": Group gone does not exist, but PEER_DETAIL names it.")
        self.tells(inventory_of(detail=wanted))


class FleetTests(FindingsTestCase):
    def fleet(
        self,
        connected: int,
        *lost: float,
        users: tuple[int, int] = (0, 0),
        **fields: object,
    ) -> Inventory:
        """Return peers by their enrolment and by the time of their loss.

        Args:
            connected: the number of connected peers that a setup key has enrolled.
            lost: for each lost peer with a setup key, how many seconds ago it was lost.
            users: numbers of peers with a person's login: connected, and lost just now.
        """
        there, gone = users
        keyed = [peer(f"k{n}") for n in range(connected)]
        keyed += [
            peer(f"l{n}", connected=False, since=-ago) for n, ago in enumerate(lost)
        ]
        peers = [replace(one, **fields) for one in keyed]
        peers += [replace(peer(f"u{n}"), user_id="u") for n in range(there)]
        peers += [
            replace(peer(f"g{n}", connected=False, since=-60), user_id="u")
            for n in range(gone)
        ]
        return inventory_of(peers=tuple(peers))

    def drop(self, inventory: Inventory, passed: float = 0) -> float | None:
        """Return how many seconds ago the fleet dropped, or None."""
        began = seen(inventory, now=NOW + passed).drop_at
        return None if began is None else NOW - began

    def test_dropped(self) -> None:
        """A third of the peers with a setup key, and at least five, lost within ten
        minutes are one finding, for 70 minutes.
        """
        inventory = self.fleet(10, 900, 800, 700, 600, 500)
        self.tells(
            inventory,
            "NetBirdFleetDropped: Many peers lost their connection within ten minutes:"
            " 10 of 15 peers are connected. (since -900)",
        )
        self.assertEqual(900, self.drop(inventory, 3300))
        self.assertIsNone(self.drop(inventory, 3301))
        for case in (
            self.fleet(8, 60, 60, 60, 60),  # four of twelve
            self.fleet(11, *5 * [60]),  # less than a third
            self.fleet(10, *range(60, 60 + 5 * 301, 301)),  # one by one
            self.fleet(0, *5 * [7200]),  # long ago
            self.fleet(0, *5 * [-7200]),  # by a clock that is wrong
            self.fleet(10, *5 * [60], ephemeral=True),
            self.fleet(6, users=(8, 4)),  # four laptops of twelve are closed
            self.fleet(6, users=(0, 60)),  # all go home
            self.fleet(0),
        ):
            self.tells(case)

    def test_window(self) -> None:
        """Peers that were lost exactly ten minutes apart were not lost at once."""
        for seconds, since in ((599, 700), (600, None)):
            inventory = self.fleet(10, 700, *4 * [700 - seconds])
            self.assertEqual(since, self.drop(inventory), seconds)

    def test_second_drop(self) -> None:
        """A second drop within the hour is found, with or without the first one."""
        second = 7 * [300]
        for name, inventory, since in (
            ("a small loss before it", self.fleet(10, *4 * [3000], *second), 300),
            ("losses one by one", self.fleet(10, 3800, 3100, 2400, *second), 300),
            ("a first drop", self.fleet(6, *7 * [3000], *second), 3000),
        ):
            self.assertEqual(since, self.drop(inventory), name)
            self.assertEqual(300, self.drop(inventory, 1300), name)

    def test_all(self) -> None:
        """Half of all peers, and at least twenty, are a finding together with a third
        of those with a setup key.
        """
        for keyed, lost, users, since in (
            (2, 1, (18, 19), 60),
            (2, 1, (19, 19), None),  # less than half
            (2, 1, (0, 18), None),  # 19 in all
            (3, 1, (0, 60), None),  # a quarter of those by key
            (1, 0, (0, 60), None),
        ):
            inventory = self.fleet(keyed, *lost * [60], users=users)
            self.assertEqual(since, self.drop(inventory), (keyed, lost, users))

    def test_held_back(self) -> None:
        """During a drop, only findings that began before it are shown."""
        inventory = self.fleet(4, 7200, *6 * [60])
        for members, passed, alerts in (
            (("l0", "k0"), 0, ["FleetDropped", "ImportantPeerOffline"]),
            # It was incomplete before.
            (("l0", "l1"), 0, ["FleetDropped", "ImportantPeerOffline"]),
            (("l1", "l2"), 0, ["FleetDropped"]),
            (("l1", "l2"), 2 * HOUR, ["ImportantPeerOffline"]),
        ):
            looked = seen(
                changed(inventory, groups=(group("servers", *members),)),
                now=NOW + passed,
                chosen=("servers", "nobody's"),
            )
            self.assertEqual(
                [f"NetBird{alert}" for alert in (*alerts, "ImportantGroupMissing")],
                [one.alert for one in findings(looked)],
                members,
            )
