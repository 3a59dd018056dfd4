"""Each finding: it appears, it does not, it ends."""

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.exporter import PARTIAL
from api_exporter.attention.findings import unknown
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    AccessToken,
    Account,
    AccountSettings,
    Checks,
    GroupId,
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
from api_exporter.telemetry.history import Count
from api_exporter.telemetry.standing import Standing
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

REFUSED = UpstreamError("auth", "401")
FAILING = {
    "peers": Standing(period=30, error=REFUSED, failing_since=NOW - 60, ended=NOW)
}


class RoutingTests(SynchronousTestCase):
    def depot(self, *connected: bool) -> Inventory:
        """A network with a resource, and so many routing peers."""
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
        """A network and its resources are lost with the last routing peer, and since
        then.
        """
        for states, words in (
            ((False, False), "none of its 2 routing peers is connected"),
            ((False,), "its only routing peer is not connected"),
            ((), "it has no routing peer"),
        ):
            looked = seen(self.depot(*states))
            self.assertEqual(
                [
                    (
                        "NetBirdNetworkUnreachable",
                        "Network depot",
                        f"It cannot be reached: {words}.",
                    ),
                    (
                        "NetBirdResourceUnreachable",
                        "Network depot",
                        "Nobody can reach 1 resource of it: printer.",
                    ),
                ],
                found(looked),
            )
        self.assertEqual([], found(seen(self.depot(True, True))))
        self.assertEqual([], found(seen(self.depot(True))))

    def test_nothing_behind(self) -> None:
        """A network without an enabled resource misses nobody."""
        empty = replace(self.depot(False), network_resources=())
        self.assertEqual([], found(seen(empty)))

    def test_last(self) -> None:
        """A network that has lost all but one of its routing peers hangs on that."""
        finding = only(seen(self.depot(True, False, False)))
        self.assertEqual("NetBirdNetworkRedundancyLost", finding.alert)
        self.assertEqual(NOW - 2 * HOUR, finding.since)

    def test_shared(self) -> None:
        """Networks with one router are told of alike."""
        depot = self.depot(True, False)
        assert depot.networks is not None
        shed = Network(id="m", name="shed", routers=("x",))
        looked = seen(replace(depot, networks=(*depot.networks, shed)))
        self.assertEqual(
            ["Network depot", "Network shed"], [named for _, named, _ in found(looked)]
        )

    def test_routes(self) -> None:
        """Routes with one identifier and one network stand in for each other."""

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
        """While the peers cannot be read, that is told, and no single thing."""
        looked = seen(self.depot(False, False), standings=FAILING)
        finding = only(looked)
        self.assertEqual("ApiExporterUpstreamFailing", finding.alert)
        self.assertEqual("critical", finding.severity)
        self.assertEqual(NOW - 60, finding.since)
        self.assertIn("is old", finding.words)

    def test_withdrawn(self) -> None:
        """Without peers nothing is told of what they are needed for."""
        gone = replace(self.depot(False, False), peers=None)
        looked = seen(gone, standings={**FAILING, "users": Standing(period=60)})
        self.assertIn("nothing is known of them", only(looked).words)
        self.assertEqual(("peers", "users"), unknown(looked))


class GroupsTests(SynchronousTestCase):
    def servers(self, *connected: bool) -> Inventory:
        peers = tuple(peer(f"s{n}", connected=on) for n, on in enumerate(connected))
        return Inventory(
            peers=peers, groups=(group("servers", *(p.id for p in peers)),)
        )

    def test_offline(self) -> None:
        """A peer of an important group that is offline is named."""
        finding = only(seen(self.servers(True, False)))
        self.assertEqual("NetBirdImportantPeerOffline", finding.alert)
        self.assertEqual("Group servers", finding.object)
        self.assertEqual("1 of 2 peers is not connected: s1.", finding.words)
        self.assertEqual(NOW - HOUR, finding.since)
        self.assertEqual(
            "4 of 5 peers are not connected: s1, s2, s3 and 1 more.",
            only(seen(self.servers(True, *4 * [False]))).words,
        )
        self.assertEqual([], found(seen(self.servers(True, True))))

    def test_not_named(self) -> None:
        """Peers without series of their own are counted only (`PEER_DETAIL`)."""
        hidden = replace(self.servers(True, False), detail=frozenset())
        self.assertEqual("1 of 2 peers is not connected.", only(seen(hidden)).words)

    def test_chosen(self) -> None:
        """IMPORTANT_GROUPS names others, by name or id; one that is missing is told."""
        servers = self.servers(False)
        lost = only(seen(servers, chosen=("g-servers",)))
        self.assertEqual("NetBirdImportantPeerOffline", lost.alert)
        missing = only(seen(servers, chosen=("databases",)))
        self.assertEqual("NetBirdImportantGroupMissing", missing.alert)
        self.assertEqual("Group databases", missing.object)

    def test_routers(self) -> None:
        """A group of routers is down when none of them is connected."""
        gates = (peer("a", connected=False), peer("b", connected=False, since=-60))
        down = Inventory(peers=gates, groups=(group("routers", "a", "b", "gone"),))
        finding = only(seen(down))
        self.assertEqual("NetBirdRouterGroupDown", finding.alert)
        self.assertEqual(NOW - 60, finding.since)
        self.assertIn("None of its routers is connected: ", finding.words)
        empty = only(seen(replace(down, groups=(group("routers"),))))
        self.assertIn("It has no routers: ", empty.words)
        up = replace(down, peers=(gates[0], peer("b")))
        self.assertEqual([], found(seen(up)))

    def test_login(self) -> None:
        """A login of an important peer that has expired is told."""
        out = replace(peer("s0"), login_expired=True)
        inventory = replace(self.servers(True), peers=(out,))
        finding = only(seen(inventory))
        self.assertEqual("NetBirdImportantLoginExpired", finding.alert)
        self.assertEqual(
            "1 peer of it cannot connect, as the login has expired: s0.", finding.words
        )
        self.assertEqual([], found(seen(self.servers(True))))


class EndingsTests(SynchronousTestCase):
    def test_logins(self) -> None:
        """Logins of connected peers that end within a day are told, until they end."""

        def login(id_: str, left: float, *, connected: bool = True) -> Peer:
            return replace(
                peer(id_, connected=connected),
                user_id="u",
                login_expiration_enabled=True,
                last_login=at(left - 10 * DAY),
            )

        settings = AccountSettings(
            peer_login_expiration_enabled=True, peer_login_expiration=864000
        )
        inventory = Inventory(
            accounts=(Account(id="a", settings=settings),),
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
        self.assertIn("2 connected peers are cut off within 1 day", finding.words)
        self.assertIn(": soon, sooner.", finding.words)
        self.assertIn("is cut off", only(seen(inventory, now=NOW + 2)).words)
        self.assertEqual([], found(seen(inventory, now=NOW + 3 * DAY)))

    def key(self, **fields: object) -> Inventory:
        key = SetupKey(id="k", name="fleet", type="reusable", valid=True)
        return Inventory(setup_keys=(replace(key, **fields),))

    def test_setup_key(self) -> None:
        """A reusable key that ends within a week is told, if it is valid or in use."""
        soon, used = at(7 * DAY - 1), at(-DAY)
        finding = only(seen(self.key(expires=soon)))
        self.assertEqual("NetBirdSetupKeyExpiresSoon", finding.alert)
        self.assertEqual(NOW + 7 * DAY - 1, finding.until)
        self.assertEqual("Setup key fleet", finding.object)
        over = only(seen(self.key(expires=used, valid=False, last_used=used)))
        spent = only(seen(self.key(expires=soon, valid=False, last_used=used)))
        for finding in (over, spent):
            self.assertEqual("Machines cannot enrol with it any more.", finding.words)
        for fields in (
            {"expires": at(7 * DAY)},
            {"expires": soon, "type": "one-off"},
            {"expires": soon, "valid": False},
            {"expires": soon, "valid": False, "last_used": at(-7 * DAY)},
            {},
        ):
            self.assertEqual([], found(seen(self.key(**fields))), fields)

    def test_used_up(self) -> None:
        """A key is told when four fifths of its uses are spent."""
        finding = only(seen(self.key(usage_limit=10, used_times=8)))
        self.assertEqual("NetBirdSetupKeyUsedUp", finding.alert)
        self.assertEqual("8 of its 10 uses are spent.", finding.words)
        for limit, used in ((10, 7), (0, 100)):
            inventory = self.key(usage_limit=limit, used_times=used)
            self.assertEqual([], found(seen(inventory)))

    def test_revoked(self) -> None:
        """A key that was revoked is not told, however lately it was used."""
        for fields in ({"expires": at(DAY)}, {"usage_limit": 10, "used_times": 9}):
            revoked = self.key(valid=False, revoked=True, last_used=at(-DAY), **fields)
            self.assertEqual([], found(seen(revoked)), fields)

    def test_access_token(self) -> None:
        """A token of ours is told twice: 14 days ahead, worse from three days on."""
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
        """A proxy's token in use that ends within 14 days is told."""
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
        """A certificate that ends within a week is told, and when it has ended."""
        week = 7 * DAY
        for left, verb in ((week - 1, "until"), (-1, "ended"), (week, "")):
            for alert, mine in (
                ("ApiExporterUpstreamCertificateExpiresSoon", False),
                ("ApiExporterClientCertificateExpiresSoon", True),
            ):
                looked = seen(
                    Inventory(),
                    own_ends=NOW + left if mine else None,
                    upstream_ends=None if mine else NOW + left,
                )
                told = [(f.alert, when(f, NOW).split()[0]) for f in findings(looked)]
                self.assertEqual([(alert, verb)] if verb else [], told)


class ProxiesTests(SynchronousTestCase):
    def test_services(self) -> None:
        """An enabled service is told when it has failed, and when it stands open."""
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
        opened = Inventory(proxy_services=(replace(service, auth=None),))
        self.assertEqual("NetBirdProxyServiceOpen", only(seen(opened)).alert)

    def test_clusters(self) -> None:
        """A cluster without a proxy is told by its address."""
        cluster = ProxyCluster(address="eu.example")
        finding = only(seen(Inventory(proxy_clusters=(cluster,))))
        self.assertEqual("NetBirdProxyClusterOffline", finding.alert)
        self.assertEqual("Proxy cluster eu.example", finding.object)
        online = Inventory(proxy_clusters=(replace(cluster, online=True),))
        self.assertEqual([], found(seen(online)))


class AccountTests(SynchronousTestCase):
    def test_peer_approvals(self) -> None:
        """A peer waits since it was registered, and is told after two hours."""
        new = Peer(id="n", approval_required=True, created_at=at(0))
        inventory = Inventory(peers=(new, peer("fine")))
        self.assertEqual([], found(seen(inventory, now=NOW + 2 * HOUR - 1)))
        finding = only(seen(inventory, now=NOW + 2 * HOUR))
        self.assertEqual("NetBirdPeerAwaitsApproval", finding.alert)
        self.assertEqual(NOW, finding.since)
        self.assertEqual("1 peer waits for approval: n.", finding.words)
        old = replace(new, created_at=None)
        both = only(seen(Inventory(peers=(old, old))))
        self.assertIsNone(both.since)
        self.assertIn("2 peers wait", both.words)

    def test_user_approvals(self) -> None:
        """Users who wait are counted, not named."""
        user = User(id="u", name="Eve", pending_approval=True)
        finding = only(seen(Inventory(users=(user, User(id="v")))))
        self.assertEqual("1 user waits for approval.", finding.words)
        more = only(seen(Inventory(users=(user, user))))
        self.assertEqual("2 users wait for approval.", more.words)
        self.assertEqual([], found(seen(Inventory(users=()))))

    def test_versions(self) -> None:
        """Peers below what a posture check demands are counted."""

        def check(minimum: str) -> PostureCheck:
            demanded = VersionCheck(min_version=minimum)
            return PostureCheck(
                id="c", name="new", checks=Checks(nb_version_check=demanded)
            )

        peers = tuple(
            Peer(id=version, version=version) for version in ("0.9.0", "0.60.1", "dev")
        )
        for minimum, words in (
            ("0.60.0", "1 peer is older than 0.60.0, which it demands."),
            ("0.61.0", "2 peers are older than 0.61.0, which it demands."),
        ):
            looked = seen(Inventory(peers=peers, posture_checks=(check(minimum),)))
            self.assertEqual(words, only(looked).words)
        fine = (check("0.9.0"), check("latest"), PostureCheck(id="other"))
        self.assertEqual([], found(seen(Inventory(peers=peers, posture_checks=fine))))

    def test_addresses(self) -> None:
        """A range is told when more than nine tenths of it are taken."""
        for taken, full in ((12, False), (13, True)):
            settings = AccountSettings(network_range="100.64.0.0/28")  # 14 addresses
            inventory = Inventory(
                accounts=(
                    Account(id="a", settings=settings),
                    Account(id="b", settings=AccountSettings()),
                ),
                peers=tuple(peer(f"{number}") for number in range(taken)),
            )
            alerts = [alert for alert, _, _ in found(seen(inventory))]
            self.assertEqual(["NetBirdAddressPoolNearlyFull"] if full else [], alerts)

    def test_policies(self) -> None:
        """A policy is told when a side of an enabled rule holds nothing."""
        rule = Rule(
            enabled=True,
            sources=(GroupId(id="g-all"),),
            destinations=(GroupId(id="g-empty"),),
        )
        inventory = Inventory(
            groups=(group("all", "a"), group("empty")),
            policies=(Policy(id="p", name="way in", enabled=True, rules=(rule,)),),
        )
        finding = only(seen(inventory))
        self.assertEqual("NetBirdPolicyEmpty", finding.alert)
        self.assertIn("1 side of its rules is empty", finding.words)
        neither = replace(rule, sources=None)
        both = (Policy(id="p", enabled=True, rules=(neither,)),)
        self.assertIn("2 sides", only(seen(replace(inventory, policies=both))).words)
        off = (Policy(id="p", rules=(rule,)),)
        self.assertEqual([], found(seen(replace(inventory, policies=off))))


class ExporterTests(SynchronousTestCase):
    def test_partial(self) -> None:
        """A list that may lack peers is told with what to do about it."""
        user = User(id="me", role="user", is_current=True)
        finding = only(seen(Inventory(users=(user,))))
        self.assertEqual((PARTIAL, ""), (finding.words, finding.runbook))
        admin = Inventory(users=(replace(user, role="admin"),))
        self.assertEqual([], found(seen(admin)))

    def test_not_watched(self) -> None:
        """A token whose end cannot be seen is told, where it is asked for."""
        for supported, told in ((False, 1), (True, 0), (None, 0)):
            standings = {"access_tokens": Standing(period=600, supported=supported)}
            looked = seen(Inventory(access_tokens=()), standings=standings)
            self.assertEqual(told, len(found(looked)))
            self.assertEqual((), unknown(looked))

    def test_rejected(self) -> None:
        """Records that are left out are told."""
        standing = Standing(period=30, last_success=NOW, rejected=2)
        looked = seen(Inventory(routes=()), standings={"routes": standing})
        self.assertEqual("ApiExporterRecordsRejected", only(looked).alert)
        good = {"routes": replace(standing, rejected=0)}
        self.assertEqual([], found(seen(Inventory(), standings=good)))

    def test_fleet(self) -> None:
        """A third of the peers that went within ten minutes is one finding, as long
        as they stay away, for an hour at most.
        """

        def runs(*connected: int, peers: int = 30) -> list[list[Count]]:
            """The newest an instant ago, a minute apart."""
            first = NOW - 60 * (len(connected) - 1)
            return [
                [
                    Count(at=first + 60 * n, connected=on, disconnected=peers - on)
                    for n, on in enumerate(connected)
                ]
            ]

        peers = tuple(peer(f"{n}", connected=n < 18) for n in range(30))
        servers = (group("servers", *(p.id for p in peers)),)
        inventory = Inventory(peers=peers, groups=servers)
        fallen = runs(28, 28, 18, 18)
        finding = only(seen(inventory, runs=fallen))
        self.assertEqual("NetBirdFleetDropped", finding.alert)
        self.assertEqual(NOW - 60, finding.since)
        self.assertIn("18 of 30 peers", finding.words)
        slowly = [28 - n // 4 for n in range(44)]
        for counts in (
            (28, 18, 28),  # they came back
            (18, 18, 18),
            tuple(slowly),
            (),
            (28, *71 * [18]),  # long ago
        ):
            drawn = runs(*counts) if counts else []
            [alert, *others] = [a for a, _, _ in found(seen(inventory, runs=drawn))]
            self.assertEqual("NetBirdImportantPeerOffline", alert, counts)
            self.assertEqual([], others)
        few = Inventory(peers=peers[17:19])
        self.assertEqual([], found(seen(few, runs=runs(2, 1, peers=2))))
        nobody = seen(Inventory(), runs=fallen)
        self.assertEqual([], found(nobody))
