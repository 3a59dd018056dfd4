"""Each finding appears, stays away, and ends."""

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.finders import unknown_resources
from api_exporter.attention.thresholds import Groups, default_thresholds
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    AccessRestrictions,
    AccessToken,
    Checks,
    GroupId,
    NetBirdAccount,
    NetBirdSettings,
    Network,
    NetworkResource,
    NetworkRouter,
    Peer,
    Policy,
    PostureCheck,
    ProxyAuth,
    ProxyCluster,
    ProxyService,
    ProxyServiceMeta,
    ProxyToken,
    Route,
    Rule,
    SetupKey,
    User,
    VersionCheck,
)
from api_exporter.ports import UpstreamError
from api_exporter.telemetry.freshness import Freshness
from api_exporter.web.status.findings import when
from tests.attention.looking import (
    DAY,
    HOUR,
    NOW,
    at,
    findings,
    found,
    group,
    only,
    peer,
    seen,
)

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


class RoutingTests(SynchronousTestCase):
    def depot(self, *connected: bool) -> Inventory:
        """Return a network with a resource and some routing peers."""
        peers = tuple(
            peer(f"r{number}", connected=there, since=-HOUR * (number + 1))
            for number, there in enumerate(connected)
        )
        return Inventory(
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
        for states, words in (
            ((False, False), "none of its 2 routing peers is connected"),
            ((False,), "its only routing peer is offline"),
            ((), "it has no enabled routing peer (1 disabled)"),
        ):
            looked = seen(self.depot(*states))
            self.assertEqual(
                [
                    (
                        "NetBirdNetworkUnreachable",
                        "Network depot",
                        f"cannot be reached: {words}; 1 unreachable resource: printer.",
                    )
                ],
                found(looked),
            )
        self.assertEqual([], found(seen(self.depot(True, True))))
        self.assertEqual([], found(seen(self.depot(True))))

    def test_nothing_behind(self) -> None:
        """A network without an enabled resource has no finding."""
        empty = replace(self.depot(False), network_resources=())
        self.assertEqual([], found(seen(empty)))

    def test_last(self) -> None:
        """A network with one routing peer left of several has no redundancy."""
        finding = only(seen(self.depot(True, False, False)))
        self.assertEqual(
            "Network depot has only 1 of 3 routing peers connected (no redundancy).",
            finding.text,
        )
        self.assertEqual("NetBirdNetworkRedundancyLost", finding.alert)
        self.assertEqual(NOW - 2 * HOUR, finding.since)

    def test_shared(self) -> None:
        """Networks with the same router have the same finding."""
        depot = self.depot(True, False)
        assert depot.networks is not None
        shed = Network(id="m", name="shed", routers=("x",))
        looked = seen(replace(depot, networks=(*depot.networks, shed)))
        self.assertEqual(
            ["Network depot", "Network shed"], [named for _, named, _ in found(looked)]
        )

    def test_routes(self) -> None:
        """Routes with one identifier and one network replace each other."""

        def routes(*connected: bool) -> Inventory:
            depot = self.depot(*connected)
            return replace(
                depot,
                networks=None,
                routes=tuple(
                    Route(
                        id=f"{number}",
                        network_id="office",
                        network="10.0.0.0/8",
                        enabled=True,
                        peer=f"r{number}",
                    )
                    for number in range(len(connected))
                )
                + (Route(id="off", network_id="off", peer="nobody"),),
            )

        lost = only(seen(routes(False, False)))
        self.assertEqual("NetBirdRouteUnreachable", lost.alert)
        self.assertEqual("Route office to 10.0.0.0/8", lost.object)
        self.assertEqual("critical", lost.severity)
        self.assertEqual(NOW - HOUR, lost.since)
        last = only(seen(routes(True, False)))
        self.assertEqual("NetBirdRouteRedundancyLost", last.alert)
        self.assertEqual([], found(seen(routes(True, True))))
        self.assertEqual([], found(seen(routes(True))))

    def test_outage(self) -> None:
        """While the peers cannot be read, that is the only finding about peers."""
        looked = seen(self.depot(False, False), freshness=FAILING)
        finding = only(looked)
        self.assertEqual("ApiExporterUpstreamFailing", finding.alert)
        self.assertEqual("critical", finding.severity)
        self.assertEqual(NOW - 60, finding.since)
        self.assertIn("are old", finding.message)

    def test_withdrawn(self) -> None:
        """Without peers, there is no finding that needs peers."""
        gone = replace(self.depot(False, False), peers=None)
        looked = seen(gone, freshness={**FAILING, "users": Freshness(period=60)})
        self.assertIn("are missing", only(looked).message)
        self.assertEqual(("peers", "users"), unknown_resources(looked))


class GroupsTests(SynchronousTestCase):
    def servers(self, *connected: bool) -> Inventory:
        peers = tuple(peer(f"s{n}", connected=on) for n, on in enumerate(connected))
        return Inventory(
            peers=peers, groups=(group("servers", *(p.id for p in peers)),)
        )

    def test_offline(self) -> None:
        """A finding names the offline peers of an important group."""
        finding = only(seen(self.servers(True, False), chosen=SERVERS))
        self.assertEqual("NetBirdImportantPeerOffline", finding.alert)
        self.assertEqual("Group servers", finding.object)
        self.assertEqual("has 1 of 2 peers offline: s1.", finding.message)
        self.assertEqual(NOW - HOUR, finding.since)
        self.assertEqual(
            "has 4 of 5 peers offline: s1, s2, s3 and 1 more.",
            only(seen(self.servers(True, *4 * [False]), chosen=SERVERS)).message,
        )
        self.assertEqual([], found(seen(self.servers(True, True), chosen=SERVERS)))

    def test_not_chosen(self) -> None:
        """By default, no group is important."""
        self.assertEqual([], found(seen(self.servers(False))))

    def test_not_listed(self) -> None:
        """An unlisted member is not offline, and a repeated member counts once."""
        inventory = self.servers(True, False)
        servers = group("servers", "s0", "s1", "s1", "of nobody")
        looked = seen(replace(inventory, groups=(servers,)), chosen=SERVERS)
        self.assertEqual("has 1 of 2 peers offline: s1.", only(looked).message)

    def test_not_named(self) -> None:
        """Peers without series of their own are only counted (`PEER_DETAIL`)."""
        hidden = replace(self.servers(True, False), detail=frozenset())
        finding = only(seen(hidden, chosen=SERVERS))
        self.assertEqual("has 1 of 2 peers offline.", finding.message)

    def test_chosen(self) -> None:
        """IMPORTANT_GROUPS names groups by name or id; a missing group is a finding."""
        servers = self.servers(False)
        lost = only(seen(servers, chosen=("g-servers",)))
        self.assertEqual("NetBirdImportantPeerOffline", lost.alert)
        missing = only(seen(servers, chosen=("databases",)))
        self.assertEqual("NetBirdImportantGroupMissing", missing.alert)
        self.assertEqual("Group databases", missing.object)
        self.assertEqual(
            "does not exist, but the settings name it as important.", missing.message
        )

    def test_thresholds(self) -> None:
        """The thresholds name groups too; a missing routing group is a finding."""
        named = replace(
            default_thresholds(), groups=Groups(important=["servers"], routers=["x"])
        )
        lost, missing = findings(seen(self.servers(False), thresholds=named))
        self.assertEqual("NetBirdImportantPeerOffline", lost.alert)
        self.assertEqual("Group x", missing.object)
        self.assertIn("as a group of routing peers", missing.message)
        chosen = findings(
            seen(self.servers(False), thresholds=named, chosen=("g-servers",))
        )
        self.assertEqual([lost, missing], chosen)

    def test_routers(self) -> None:
        """A routing group is down if none of its peers is connected."""
        gates = (peer("a", connected=False), peer("b", connected=False, since=-60))
        down = Inventory(peers=gates, groups=(group("routers", "a", "b", "gone"),))
        finding = only(seen(down, thresholds=ROUTERS))
        self.assertEqual("NetBirdRouterGroupDown", finding.alert)
        self.assertEqual(NOW - 60, finding.since)
        self.assertIn("has no connected routing peer: ", finding.message)
        bare = replace(down, groups=(group("routers"),))
        empty = only(seen(bare, thresholds=ROUTERS))
        self.assertIn("has no routing peer: ", empty.message)
        up = replace(down, peers=(gates[0], peer("b")))
        self.assertEqual([], found(seen(up, thresholds=ROUTERS)))

    def test_login(self) -> None:
        """An expired login of an important peer is a finding."""
        out = replace(peer("s0"), login_expired=True)
        inventory = replace(self.servers(True), peers=(out,))
        finding = only(seen(inventory, chosen=SERVERS))
        self.assertEqual("NetBirdImportantLoginExpired", finding.alert)
        self.assertEqual("has 1 peer with expired login: s0.", finding.message)
        self.assertEqual([], found(seen(self.servers(True), chosen=SERVERS)))


class EndingsTests(SynchronousTestCase):
    def test_logins(self) -> None:
        """Logins of connected peers are a finding in the day before they expire."""

        def login(id_: str, left: float, *, connected: bool = True) -> Peer:
            return replace(
                peer(id_, connected=connected),
                user_id="u",
                login_expiration_enabled=True,
                last_login=at(left - 10 * DAY),
            )

        settings = NetBirdSettings(
            peer_login_expiration_enabled=True, peer_login_expiration=864000
        )
        inventory = Inventory(
            accounts=(NetBirdAccount(id="a", settings=settings),),
            peers=(
                login("soon", DAY - 1),
                login("sooner", 1),
                login("later", 2 * DAY),
                login("over", 0),
                login("away", 60, connected=False),
            ),
        )
        finding = only(seen(inventory))
        self.assertEqual("NetBirdLoginExpiresSoon", finding.alert)
        self.assertEqual(NOW + 1, finding.until)
        self.assertIn("Logins of 2 connected peers expire within 24 h", finding.text)
        self.assertIn(": soon, sooner.", finding.message)
        single = only(seen(inventory, now=NOW + 2))
        self.assertIn("Login of 1 connected peer expires within", single.text)
        self.assertEqual([], found(seen(inventory, now=NOW + 3 * DAY)))

    def test_lifetime(self) -> None:
        """Soon means a tenth of the lifetime, at most a day. Below three days, a login
        is routine.
        """
        for lifetime, left, soon in (
            (DAY, 60, False),
            (3 * DAY - 1, 60, False),
            (3 * DAY, 0.3 * DAY - 1, True),
            (3 * DAY, 0.3 * DAY, False),
            (7 * DAY, 0.7 * DAY - 1, True),
            (7 * DAY, 0.7 * DAY, False),
            (180 * DAY, DAY - 1, True),
            (180 * DAY, DAY, False),
        ):
            settings = NetBirdSettings(
                peer_login_expiration_enabled=True,
                peer_login_expiration=round(lifetime),
            )
            mine = replace(
                peer("laptop"),
                user_id="u",
                login_expiration_enabled=True,
                last_login=at(left - lifetime),
            )
            inventory = Inventory(
                accounts=(NetBirdAccount(id="a", settings=settings),), peers=(mine,)
            )
            alerts = [alert for alert, _, _ in found(seen(inventory))]
            self.assertEqual(["NetBirdLoginExpiresSoon"] if soon else [], alerts, left)
            off = replace(settings, peer_login_expiration_enabled=False)
            never = replace(inventory, accounts=(NetBirdAccount(id="a", settings=off),))
            self.assertEqual([], found(seen(never)))

    def key(self, **fields: object) -> Inventory:
        key = SetupKey(id="k", name="fleet", type="reusable", state="valid")
        return Inventory(setup_keys=(replace(key, **fields),))

    def test_setup_key(self) -> None:
        """A reusable key in use is a finding from a day before its expiry.

        The finding ends when the key has not been used for a week.
        """
        soon, used = at(DAY - 1), at(-7 * DAY + 1)
        finding = only(seen(self.key(expires=soon, last_used=used)))
        self.assertEqual("NetBirdSetupKeyExpiresSoon", finding.alert)
        self.assertEqual(NOW + DAY - 1, finding.until)
        self.assertEqual("Setup key fleet", finding.object)
        self.assertEqual(
            "expires soon: machines used this key recently.", finding.message
        )
        for expires, state, words in (
            (used, "expired", "has expired"),
            (soon, "overused", "expires soon"),
        ):
            over = only(seen(self.key(expires=expires, state=state, last_used=used)))
            self.assertEqual(f"{words}: machines used this key recently.", over.message)
        for fields in (
            {"expires": at(DAY), "last_used": used},
            {"expires": soon, "last_used": used, "type": "one-off"},
            {"expires": soon},
            {"expires": soon, "last_used": at(-7 * DAY)},
            {"expires": soon, "last_used": used, "state": "revoked"},
            {"last_used": used},
        ):
            self.assertEqual([], found(seen(self.key(**fields))), fields)

    def test_new_key(self) -> None:
        """A new key with the dashboard's seven days is a finding on its last day."""
        new = self.key(expires=at(7 * DAY), last_used=at(0))
        for passed, count in ((0, 0), (6 * DAY, 0), (6 * DAY + 1, 1), (7 * DAY, 0)):
            self.assertEqual(count, len(found(seen(new, now=NOW + passed))), passed)

    def test_used_up(self) -> None:
        """A key is a finding when four fifths of its uses are spent."""
        finding = only(seen(self.key(usage_limit=10, used_times=8)))
        self.assertEqual("NetBirdSetupKeyUsedUp", finding.alert)
        self.assertEqual("is nearly used up: 8 of 10 uses.", finding.message)
        for fields in (
            {"usage_limit": 10, "used_times": 7},
            {"usage_limit": 0, "used_times": 100},
            {"usage_limit": 10, "used_times": 10, "state": "overused"},
            {"usage_limit": 10, "used_times": 9, "state": "revoked"},
        ):
            self.assertEqual([], found(seen(self.key(**fields))), fields)
        spent = self.key(
            usage_limit=10, used_times=10, state="overused", last_used=at(0)
        )
        self.assertEqual("NetBirdSetupKeyUsedUp", only(seen(spent)).alert)
        self.assertEqual("is used up: 10 of 10 uses.", only(seen(spent)).message)
        once = self.key(usage_limit=1, used_times=1)
        self.assertEqual("is used up: 1 of 1 use.", only(seen(once)).message)

    def test_expired(self) -> None:
        """An expired object has its expiry as `since`, not as `until`."""
        key = SetupKey(
            id="k", type="reusable", expires=at(-HOUR), last_used=at(-2 * HOUR)
        )
        looked = seen(
            Inventory(
                users=(),
                access_tokens=(
                    AccessToken(id="t", expiration_date=at(-HOUR), last_used=at(-60)),
                ),
                proxy_tokens=(
                    ProxyToken(id="p", expires_at=at(-HOUR), last_used=at(-60)),
                ),
                setup_keys=(key,),
            ),
            client_expires_at=NOW - HOUR,
            server_expires_at=NOW - HOUR,
        )
        every = findings(looked)
        self.assertEqual(5, len(every))
        for finding in every:
            self.assertIn("has expired: ", finding.message)
            self.assertEqual((NOW - HOUR, None), (finding.since, finding.until))

    def test_access_token(self) -> None:
        """The exporter's token is a finding for 14 days, and a worse one for three."""
        for left, used, alert in (
            (14 * DAY, 0, None),
            (14 * DAY - 1, 0, "ApiExporterTokenExpiresSoon"),
            (3 * DAY, 0, "ApiExporterTokenExpiresSoon"),
            (3 * DAY - 1, 0, "ApiExporterTokenExpiresVerySoon"),
            (-1, 0, "ApiExporterTokenExpiresVerySoon"),
            (DAY, DAY, None),
        ):
            token = AccessToken(
                id="t", name="mine", expiration_date=at(left), last_used=at(-used)
            )
            inventory = Inventory(users=(), access_tokens=(token,))
            alerts = [one for one, _, _ in found(seen(inventory))]
            self.assertEqual([alert] if alert else [], alerts, left)
        endless = Inventory(users=(), access_tokens=(AccessToken(id="t"),))
        self.assertEqual([], found(seen(endless)))

    def test_proxy_token(self) -> None:
        """A proxy's token in use that expires within 14 days is a finding."""
        token = ProxyToken(
            id="p", name="edge", expires_at=at(14 * DAY - 1), last_used=at(-DAY)
        )
        finding = only(seen(Inventory(proxy_tokens=(token,))))
        self.assertEqual("NetBirdProxyTokenExpiresSoon", finding.alert)
        for changes in (
            {"expires_at": at(14 * DAY)},
            {"revoked": True},
            {"last_used": at(-7 * DAY)},
            {"last_used": None},
        ):
            changed = Inventory(proxy_tokens=(replace(token, **changes),))
            self.assertEqual([], found(seen(changed)), changes)

    def test_certificates(self) -> None:
        """A certificate that expires within a week, or has expired, is a finding."""
        week = 7 * DAY
        for left, verb in ((week - 1, "until"), (-1, "since"), (week, "")):
            for alert, mine in (
                ("ApiExporterUpstreamCertificateExpiresSoon", False),
                ("ApiExporterClientCertificateExpiresSoon", True),
            ):
                looked = seen(
                    Inventory(),
                    client_expires_at=NOW + left if mine else None,
                    server_expires_at=None if mine else NOW + left,
                )
                shown = [(f.alert, when(f, NOW).split()[0]) for f in findings(looked)]
                self.assertEqual([(alert, verb)] if verb else [], shown)


class ProxiesTests(SynchronousTestCase):
    def test_services(self) -> None:
        """An enabled service is a finding if it has failed or is open to anyone."""
        service = ProxyService(
            id="w",
            name="wiki",
            mode="http",
            enabled=True,
            auth={"password": ProxyAuth(enabled=True)},
        )
        for status, alert in (
            ("certificate_failed", "NetBirdProxyCertificateFailed"),
            ("tunnel_not_created", "NetBirdProxyTunnelFailed"),
            ("error", "NetBirdProxyTunnelFailed"),
        ):
            bad = replace(service, meta=ProxyServiceMeta(status=status))
            self.assertEqual(alert, only(seen(Inventory(proxy_services=(bad,)))).alert)
            off = Inventory(proxy_services=(replace(bad, enabled=False),))
            self.assertEqual([], found(seen(off)))
        self.assertEqual([], found(seen(Inventory(proxy_services=(service,)))))
        opened = replace(service, auth=None)
        for lists, count in (
            (AccessRestrictions(), 1),
            (AccessRestrictions(allowed_cidrs=("10.0.0.0/8", "0.0.0.0/0")), 1),
            (AccessRestrictions(allowed_cidrs=("192.0.2.0/24",)), 0),
            (AccessRestrictions(allowed_countries=("DE",)), 0),
        ):
            one = replace(opened, access_restrictions=lists)
            looked = seen(Inventory(proxy_services=(one,)))
            alerts = [alert for alert, _, _ in found(looked)]
            self.assertEqual(count * ["NetBirdProxyServiceOpen"], alerts, lists)
        everyone = AccessRestrictions(allowed_cidrs=("0.0.0.0/0",))
        one = replace(opened, access_restrictions=everyone)
        self.assertEqual(
            "is open to the internet: it requires no authentication, and its access"
            " list allows 0.0.0.0/0.",
            only(seen(Inventory(proxy_services=(one,)))).message,
        )

    def test_clusters(self) -> None:
        """The finding of a cluster without a proxy names its address."""
        cluster = ProxyCluster(address="eu.example")
        finding = only(seen(Inventory(proxy_clusters=(cluster,))))
        self.assertEqual("NetBirdProxyClusterOffline", finding.alert)
        self.assertEqual("Proxy cluster eu.example", finding.object)
        online = Inventory(proxy_clusters=(replace(cluster, online=True),))
        self.assertEqual([], found(seen(online)))


class AccountTests(SynchronousTestCase):
    def test_peer_approvals(self) -> None:
        """A peer that waits is a finding two hours after its registration."""
        new = Peer(id="n", approval_required=True, created_at=at(0))
        inventory = Inventory(peers=(new, peer("fine")))
        self.assertEqual([], found(seen(inventory, now=NOW + 2 * HOUR - 1)))
        finding = only(seen(inventory, now=NOW + 2 * HOUR))
        self.assertEqual("NetBirdPeerAwaitsApproval", finding.alert)
        self.assertEqual(NOW, finding.since)
        self.assertEqual("1 peer waits for approval: n.", finding.text)
        old = replace(new, created_at=None)
        both = only(seen(Inventory(peers=(old, old))))
        self.assertIsNone(both.since)
        self.assertIn("2 peers wait", both.text)

    def test_user_approvals(self) -> None:
        """Users that wait are counted, not named."""
        user = User(id="u", name="Eve", pending_approval=True)
        finding = only(seen(Inventory(users=(user, User(id="v")))))
        self.assertEqual("1 user waits for approval.", finding.text)
        more = only(seen(Inventory(users=(user, user))))
        self.assertEqual("2 users wait for approval.", more.text)
        self.assertEqual([], found(seen(Inventory(users=()))))

    def checked(self, minimum: str, *, enabled: bool = True) -> Inventory:
        """Return a posture check for one of two groups with peers of three versions."""
        demanded = Checks(nb_version_check=VersionCheck(min_version=minimum))
        names = ("0.9.0", "0.60.1", "dev")
        laptops, phones = (tuple(f"{kind}-{v}" for v in names) for kind in ("l", "p"))
        rule = Rule(
            enabled=True,
            sources=(GroupId(id="g-laptops"),),
            destinations=(GroupId(id="g-phones"),),
        )
        return Inventory(
            peers=tuple(
                replace(peer(id_), version=id_[2:]) for id_ in (*laptops, *phones)
            ),
            groups=(group("laptops", *laptops), group("phones", *phones)),
            policies=(
                Policy(
                    id="p", enabled=enabled, rules=(rule,), source_posture_checks=("c",)
                ),
            ),
            posture_checks=(PostureCheck(id="c", name="new", checks=demanded),),
        )

    def test_versions(self) -> None:
        """Only peers that a posture check excludes by their version are counted."""
        for minimum, words in (
            ("0.60.0", "excludes 1 peer with a version below the minimum 0.60.0."),
            ("0.61.0", "excludes 2 peers with a version below the minimum 0.61.0."),
        ):
            self.assertEqual(words, only(seen(self.checked(minimum))).message)
        for minimum in ("0.9.0", "latest"):
            self.assertEqual([], found(seen(self.checked(minimum))))

    def test_unused_check(self) -> None:
        """A check that no enabled policy uses is a finding, without outdated peers."""
        for inventory in (
            self.checked("9.9.9", enabled=False),
            replace(self.checked("9.9.9"), policies=()),
            # The alert needs neither groups nor peers.
            replace(self.checked("9.9.9"), policies=(), peers=None, groups=None),
        ):
            finding = only(seen(inventory))
            self.assertEqual("NetBirdPostureCheckUnused", finding.alert)
            self.assertEqual("info", finding.severity)
            self.assertEqual("Posture check new", finding.object)

    def test_addresses(self) -> None:
        """A range with more than nine tenths of its addresses in use is a finding."""
        for taken, full in ((12, False), (13, True)):
            settings = NetBirdSettings(network_range="100.64.0.0/28")  # 14 addresses
            inventory = Inventory(
                accounts=(
                    NetBirdAccount(id="a", settings=settings),
                    NetBirdAccount(id="b", settings=NetBirdSettings()),
                ),
                peers=tuple(peer(f"{number}") for number in range(taken)),
            )
            alerts = [alert for alert, _, _ in found(seen(inventory))]
            self.assertEqual(["NetBirdAddressPoolNearlyFull"] if full else [], alerts)

    def test_policies(self) -> None:
        """A policy is a finding if a side of an enabled rule is empty."""
        rule = Rule(
            enabled=True,
            sources=(GroupId(id="g-all"),),
            destinations=(GroupId(id="g-empty"),),
        )
        inventory = Inventory(
            peers=(peer("a"),),
            groups=(group("all", "a"), group("empty")),
            policies=(Policy(id="p", name="way in", enabled=True, rules=(rule,)),),
        )
        finding = only(seen(inventory))
        self.assertEqual("NetBirdPolicyEmpty", finding.alert)
        self.assertIn("has 1 rule side without members", finding.message)
        neither = replace(rule, sources=None)
        both = (Policy(id="p", enabled=True, rules=(neither,)),)
        self.assertIn(
            "2 rule sides", only(seen(replace(inventory, policies=both))).message
        )
        off = (Policy(id="p", rules=(rule,)),)
        self.assertEqual([], found(seen(replace(inventory, policies=off))))
        self.assertEqual([], found(seen(replace(inventory, peers=()))))


class ExporterTests(SynchronousTestCase):
    def test_partial(self) -> None:
        """The finding of a peer list that may be incomplete says what to do."""
        user = User(id="me", role="user", is_current=True)
        finding = only(seen(Inventory(users=(user,))))
        self.assertEqual(
            "The token's user has the role user and may not read everything. The list"
            " of peers may be incomplete. Use the token of a service user with the role"
            " auditor.",
            finding.text,
        )
        self.assertEqual("", finding.runbook("x"))
        admin = Inventory(users=(replace(user, role="admin"),))
        self.assertEqual([], found(seen(admin)))

    def test_not_watched(self) -> None:
        """A token with an unknown expiry is a finding if the tokens are requested."""
        for supported, count in ((False, 1), (True, 0), (None, 0)):
            freshness = {"access_tokens": Freshness(period=600, supported=supported)}
            looked = seen(Inventory(access_tokens=()), freshness=freshness)
            self.assertEqual(count, len(found(looked)))
            self.assertEqual((), unknown_resources(looked))

    def test_rejected(self) -> None:
        """Records that are left out are a finding."""
        standing = Freshness(period=30, last_success=NOW, rejected=2)
        looked = seen(Inventory(routes=()), freshness={"routes": standing})
        self.assertEqual("ApiExporterRecordsRejected", only(looked).alert)
        good = {"routes": replace(standing, rejected=0)}
        self.assertEqual([], found(seen(Inventory(), freshness=good)))

    def test_detail(self) -> None:
        """A missing group of PEER_DETAIL is a finding once the groups are known."""
        wanted = frozenset({"servers", "g-laptops", "gone"})
        inventory = Inventory(
            detail=wanted, groups=(group("servers"), group("laptops"))
        )
        finding = only(seen(inventory))
        self.assertEqual(("Group gone", "warning"), (finding.object, finding.severity))
        self.assertEqual([], found(seen(Inventory(detail=wanted))))


class FleetTests(SynchronousTestCase):
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
        return Inventory(peers=tuple(peers))

    def test_dropped(self) -> None:
        """A third of the peers with a setup key, and at least five, lost within ten
        minutes are one finding, for 70 minutes.
        """
        inventory = self.fleet(10, 900, 800, 700, 600, 500)
        finding = only(seen(inventory))
        self.assertEqual("NetBirdFleetDropped", finding.alert)
        self.assertEqual(NOW - 900, finding.since)
        self.assertIn("10 of 15 peers", finding.message)
        for passed, count in ((3300, 1), (3301, 0)):
            later = seen(inventory, now=NOW + passed)
            self.assertEqual(count, len(found(later)), passed)
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
            self.assertEqual([], found(seen(case)))

    def test_second_drop(self) -> None:
        """A second drop within the hour is found, with or without the first one."""
        second = 7 * [300]
        for name, inventory, since in (
            ("a small loss before it", self.fleet(10, *4 * [3000], *second), 300),
            ("losses one by one", self.fleet(10, 3800, 3100, 2400, *second), 300),
            ("a first drop", self.fleet(6, *7 * [3000], *second), 3000),
        ):
            self.assertEqual(NOW - since, only(seen(inventory)).since, name)
            later = only(seen(inventory, now=NOW + 1300))
            self.assertEqual(NOW - 300, later.since, name)

    def test_all(self) -> None:
        """Half of all peers, and at least twenty, are a finding together with a third
        of those with a setup key.
        """
        for keyed, lost, users, count in (
            (2, 1, (18, 19), 1),
            (2, 1, (19, 19), 0),  # less than half
            (2, 1, (0, 18), 0),  # 19 in all
            (3, 1, (0, 60), 0),  # a quarter of those by key
            (1, 0, (0, 60), 0),
        ):
            inventory = self.fleet(keyed, *lost * [60], users=users)
            self.assertEqual(count, len(found(seen(inventory))), (keyed, lost, users))

    def test_held_back(self) -> None:
        """During a drop, only findings that began before it are shown."""
        inventory = self.fleet(4, 7200, *6 * [60])
        for members, count in (
            (("l0", "k0"), 1),
            (("l0", "l1"), 1),  # it was incomplete before
            (("l1", "l2"), 0),
        ):
            looked = seen(
                replace(inventory, groups=(group("servers", *members),)),
                chosen=("servers", "nobody's"),
            )
            self.assertEqual(
                [
                    "NetBirdFleetDropped",
                    *count * ["NetBirdImportantPeerOffline"],
                    "NetBirdImportantGroupMissing",
                ],
                [alert for alert, _, _ in found(looked)],
                members,
            )
        later = replace(inventory, groups=(group("servers", "l1"),))
        looked = seen(later, now=NOW + 2 * HOUR, chosen=("servers",))
        self.assertEqual("NetBirdImportantPeerOffline", only(looked).alert)
