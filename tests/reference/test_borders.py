"""Bodies at the borders of the rules, compared with the reference."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from tests.bodies import recorded
from tests.reference.comparison import CHOICES, PERSONAL, PUBLIC, ComparisonTestCase
from tests.reference.hostile import TIMES, encode
from tests.reference.page import Settings
from tests.reference.test_reference import MADE_UP, NOON, by_resource

Record = dict[str, object]

HALVES = (True, False)
ZERO, NEVER, INSTANT = (
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59.999999Z",
    "2026-05-22T12:00:00.25Z",
)
SOME_TIMES = (None, ZERO, NEVER, INSTANT)
SIDES = ((), ("all",), ("all", "all"), ("none", "all"), ("gone", "none"), ("some",))
"""Groups that a record may name: with peers, without, and deleted."""

PEERS = [
    {"id": "up", "connected": True, "version": "0.59.9"},
    {"id": "down", "last_seen": INSTANT, "version": "0.60.0"},
]
GROUPS = [
    {"id": "all", "peers": [*PEERS, {"id": "gone"}, {"name": "no id"}, PEERS[0]]},
    {"id": "some", "peers": PEERS[1:], "resources_count": 1},
    {"id": "none", "peers": None, "peers_count": 0},
]

LONG = "x" * 5000
"""Longer than a label may be."""


def numbered(records: list[Record]) -> list[Record]:
    """Return records with ids."""
    return [{"id": f"{n}", **record} for n, record in enumerate(records)]


def products(**fields: tuple[object, ...]) -> list[Record]:
    """Return a record for each combination of values."""
    return numbered(
        [dict(zip(fields, values, strict=True)) for values in product(*fields.values())]
    )


def listed(ids: tuple[str, ...]) -> list[Record]:
    return [{"id": id_} for id_ in ids]


class ValuesTests(ComparisonTestCase):
    """Lists of one collector."""

    def check(self, *of: Settings, **lists: object) -> None:
        """Compare the pages of these lists."""
        self.same({name: encode(found) for name, found in lists.items()}, *of)

    def test_personal(self) -> None:
        """Both pages agree on each kind of personal data alone."""
        for kind in PERSONAL.personal:
            self.same(MADE_UP, replace(PUBLIC, personal=frozenset({kind})))

    def test_records(self) -> None:
        """A record with a wrong field is left out; `null` and new fields are absent."""
        nulls = dict.fromkeys(("name", "os", "connected", "last_seen", "groups"))
        odd: list[object] = [{}, {"id": None}, {"id": 7}, {"id": ""}, None, "a", []]
        odd += [nulls, {"id": "b", **nulls}, {"id": "b", "groups": [None]}]
        odd += [
            {"id": "b", "new": {"a": [1, {"b": None}]}},
            {"id": "b", "connected": 1},
        ]
        odd += [{"id": "b", "name": ' \0\n"\\😀 '}, {"id": "a", "name": "the last"}]
        for one in odd:
            self.check(PUBLIC, peers=[{"id": "a", "name": "x"}, one, {"id": "c"}])
        for number in (2**53, 2**53 + 1, -1, 0.5, "1", 10**400, True):
            self.check(PUBLIC, groups=[{"id": "a", "peers_count": number}, {"id": "b"}])

    def test_peers(self) -> None:
        """Peers of all kinds, with logins of any lifetime in one of two accounts."""
        peers = products(
            connected=HALVES,
            ephemeral=HALVES,
            user_id=("", "u"),
            login_expiration_enabled=HALVES,
            last_login=SOME_TIMES,
        )
        systems = (
            *("Debian GNU/Linux 12 (bookworm)", "Alpine Linux 3.22.1", "Darwin"),
            *("Windows 7th edition", "Rocky v9", " ", "11", "unknown", ""),
            *("Ubuntu 24.04", "Ubuntu 22.04"),
        )
        for peer, system in zip(peers, systems, strict=False):
            peer.update(os=system, created_at=peer["last_login"], last_seen=INSTANT)
        for peer, allowed in zip(peers, (True, False, False, None), strict=False):
            peer["local_flags"] = {"remote_jobs_allowed": allowed}
        self.check(peers=peers)
        for enabled, seconds in product(HALVES, (0, 3600, -(2**40))):
            first, last = (
                {
                    "id": f"{lifetime}",
                    "settings": {
                        "peer_login_expiration_enabled": expires,
                        "peer_login_expiration": lifetime,
                    },
                }
                for lifetime, expires in ((seconds, enabled), (60, True))
            )
            self.check(PUBLIC, peers=peers, accounts=[first, last])
        self.check(PUBLIC, peers=peers, accounts=[])

    def test_groups(self) -> None:
        """Groups of any origin, with any members and resources."""
        issuers = ("api", "api", "jwt", "", "unknown", "carrier-pigeon", None)
        resources = [{"id": f"{n}", "type": t} for n, t in enumerate("aab")]
        groups: list[Record] = [{"issued": issued} for issued in issuers]
        groups.append({"peers_count": 7, "resources_count": 9, "resources": resources})
        self.check(groups=numbered(groups))
        self.check(groups=GROUPS, peers=PEERS)

    def test_users(self) -> None:
        """Users of any kind, and tokens of the current user with any times."""
        users = products(
            role=("owner", "wizard", ""),
            is_service_user=HALVES,
            is_blocked=HALVES,
            pending_approval=HALVES,
        )
        for user, time in zip(users, SOME_TIMES, strict=False):
            user.update(last_login=time, status="active", is_current=True)
        tokens = products(expiration_date=SOME_TIMES, last_used=SOME_TIMES)
        self.check(users=users, access_tokens=tokens)

    def test_states(self) -> None:
        """Objects with known, unknown and no states, and with any times."""
        states = ("valid", "expired", "revoked", "overused", "entangled", "", None)
        keys = products(
            state=states,
            type=("one-off", "quantum"),
            ephemeral=HALVES,
            expires=SOME_TIMES,
        )
        self.check(PUBLIC, setup_keys=keys)
        statuses = (
            *("pending", "active", "tunnel_not_created", "certificate_pending"),
            *("certificate_failed", "error", "levitating", "", None),
        )
        metas = products(status=statuses, certificate_issued_at=SOME_TIMES)
        services: list[Record] = [{"meta": meta, "name": "app"} for meta in metas]
        self.check(PUBLIC, proxy_services=numbered(services))
        self.check(
            PUBLIC,
            proxy_domains=products(type=("custom", "Custom", ""), validated=HALVES),
            proxy_tokens=products(
                revoked=HALVES, expires_at=SOME_TIMES, last_used=(None, INSTANT)
            ),
        )

    def test_clusters(self) -> None:
        """The address identifies a cluster, and its `id` has no effect."""
        for clusters in (
            [{"address": "x"}],
            [{"id": "", "address": "x", "online": True}],
            [{"id": "p", "address": "x"}, {"id": "p", "address": "y"}],
            [{"id": "p", "address": "x"}, {"id": "q", "address": "x", "online": True}],
            [{"id": "p", "address": ""}, {"id": "q", "address": "x"}],
            [{"id": "p"}],
        ):
            self.check(PUBLIC, proxy_clusters=clusters)

    def test_versions(self) -> None:
        """Any version of the server has a series, and a newer one if there is one."""
        for available, version in product(HALVES, ("0.77.1", "development", "")):
            server = {
                "management_update_available": available,
                "management_available_version": version,
                "management_current_version": version,
            }
            self.check(PUBLIC, instance_version=server)

    def test_nameservers(self) -> None:
        """Nameservers are counted over all groups, records by zone."""
        servers = [{"ns_type": t, "port": 53} for t in ("udp", "udp", "pigeon")]
        zone = [{"type": t} for t in ("A", "CNAME", "A")]
        self.check(
            nameservers=products(enabled=HALVES, nameservers=(servers, None)),
            dns_zones=products(enabled=HALVES, records=(zone, None)),
        )

    def test_ranges(self) -> None:
        """An account's range is an IPv4 range with its prefix, or it is ignored."""
        for written in (
            *("100.92.0.0/16", "100.92.3.4/31", "0.0.0.0/0", "10.0.0.0/08"),
            *("100.92.0.1", "100.92.0.0/255.255.0.0", "010.0.0.0/8", "10.0.0.0/33"),
            *("fd00::/64", "10.0.0.0/", "/16", "16", "10.0.0/8", ""),
        ):
            account = {"id": "a", "settings": {"network_range": written}}
            self.same({"accounts": encode([account])}, PUBLIC)

    def test_surrogates(self) -> None:
        """A lone surrogate, or a byte that is not UTF-8, becomes U+FFFD."""
        for name in (
            "\ud800",
            "\udc00x\ud800",
            "\\ud800\ud83d\ude00\\\udc00",
            "\ue000",
        ):
            peers = encode([{"id": "1", "name": name}, {"id": "2", "name": None}])
            version = encode({"management_current_version": name})
            self.same({"peers": peers, "instance_version": version}, PUBLIC)
            self.same({"peers": encode([{"id": name}, {"id": "2"}])}, PUBLIC)

    def test_twice(self) -> None:
        """The last record with an id counts, at its position; ids count once."""
        expiring = {"peer_login_expiration_enabled": True}
        twice = ["a", "b", "a", ""]
        things = [
            {"id": "1", "type": "A", "enabled": True},
            {"id": "1", "type": "B"},
            {"type": "A"},
            {"type": "A"},
        ]
        peer = {"user_id": "u", "last_login": "2026-01-01T00:00:00Z"}
        bodies = {
            "accounts": [
                {"id": id_, "settings": {**expiring, "peer_login_expiration": seconds}}
                for id_, seconds in (("x", 1), ("y", 2), ("x", 3))
            ],
            "dns_settings": {"disabled_management_groups": twice},
            "dns_zones": [{"id": "z", "records": things}],
            "groups": [{"id": "a", "resources": things, "peers": things}],
            "nameservers": [{"id": "n", "groups": twice, "domains": twice}],
            "networks": [
                {"id": id_, "resources": ["1"], "policies": twice, "routers": twice}
                for id_ in ("x", "y", "x")
            ],
            "network_resources": [{"id": "1", "groups": things}],
            "network_routers": [{"id": "a", "peer_groups": ["a", "a"]}],
            "peers": [{"id": "1", "login_expiration_enabled": True, **peer}],
            "policies": [{"id": "p", "enabled": True, "rules": things}],
            "setup_keys": [{"id": "k", "auto_groups": twice}],
            "users": [{"id": "u", "auto_groups": twice}],
        }
        self.same({name: encode(records) for name, records in bodies.items()})

    def test_times(self) -> None:
        """All spellings of "never" have no sample; an instant after 1970 has one."""
        odd = ("yesterday", 1787425800, "1970-01-01T00:00:00.000001Z")
        for written in (*TIMES, *odd, "2026-08-22T21:10:00.25+02:00"):
            keys = [{"id": "k", "expires": written, "last_used": written}, {"id": "l"}]
            times = {"last_seen": written, "last_login": written}
            peers = [{"id": "p", "user_id": "u", **times}, {"id": "q"}]
            self.same({"setup_keys": encode(keys), "peers": encode(peers)}, PUBLIC)

    def test_doors(self) -> None:
        """Both pages agree on all shapes of authentication and of allowed addresses."""
        on, off = {"enabled": True}, {"enabled": False}
        auths: list[object] = [{}, {"link": off}, {"link": off, "pin": on}, [on], on]
        auths += [
            {"headers": some} for some in ([off, on], [off], [[on]], [1, "x", on])
        ]
        auths += [{"enabled": True, "new": "on"}, {"pin": {"inner": on}}]
        anywhere = ["::/0", "10.0.0.0/8"]
        lists: list[object] = [
            {"allowed_cidrs": ["10.0.0.0/8"]},
            {"allowed_cidrs": anywhere},
            {"allowed_cidrs": ["0.0.0.0/0"], "allowed_countries": ["NO"]},
            {"blocked_cidrs": anywhere, "allowed_countries": []},
        ]
        services = [
            {"id": f"{mode}{n}", "mode": mode, "auth": auth, "private": n == 0}
            for mode in ("http", "tcp", "HTTP", None)
            for n, auth in enumerate(auths)
        ]
        services += [
            {"id": f"{n}", "access_restrictions": x} for n, x in enumerate(lists)
        ]
        self.same({"proxy_services": encode(services)}, PUBLIC)

    def test_long(self) -> None:
        """Labels that are equal after they were cut are counted together."""
        long = [{"id": LONG + end, "type": LONG + end} for end in "123"]
        bodies = {
            "events": [
                {"id": day, "activity_code": LONG + day, "timestamp": time}
                for day in "12"
                for time in (f"2026-01-0{day}T00:00:00Z",)
            ],
            "groups": [{"id": "g", "name": LONG, "peers": long, "resources": long}],
            "networks": [{"id": "n", "routers": [LONG]}, {"id": LONG}],
            "peers": [
                {"id": id_, "os": LONG + id_, "version": LONG + id_, "groups": long}
                for id_ in "12"
            ],
            "proxy_clusters": [{"address": LONG}, {"address": "a"}],
            "proxy_services": [{"id": n, "meta": {"status": LONG + n}} for n in "12"],
            "routes": [{"id": n, "network_id": LONG} for n in ("1", LONG)],
            "setup_keys": [{"id": "k", "state": LONG}],
            "users": [{"id": n, "role": LONG + n} for n in ("1", "2", LONG)],
        }
        self.same({name: encode(records) for name, records in bodies.items()})


class JoinedTests(ComparisonTestCase):
    """Lists that name ids of other lists."""

    def check(self, lists: Mapping[str, object]) -> None:
        """Compare the pages of these lists, and without one of them."""
        bodies = {name: encode(found) for name, found in lists.items()}
        self.same(bodies, PUBLIC)
        for missing in bodies:
            self.same({n: b for n, b in bodies.items() if n != missing}, PUBLIC)

    def test_routers(self) -> None:
        """Existing peers behind enabled routers count once, in each network."""
        routers = products(
            enabled=HALVES, peer=("up", "down", "gone", ""), peer_groups=(None, *SIDES)
        )
        ids = [router["id"] for router in routers]
        networks: list[Record] = [{"routers": [id_, id_, "gone"]} for id_ in ids]
        networks += [
            {"routers": ids, "resources": ["0", "1", "0", "gone"]},
            {"routers": ids[:9], "resources": ["1", "2"], "policies": ["p", "q"]},
            {"routers": ids[-9:], "resources": ["2"]},
        ]
        self.check(
            {
                "networks": numbered(networks),
                "network_routers": routers,
                "network_resources": products(
                    enabled=HALVES, groups=tuple(map(listed, SIDES))
                ),
                "groups": GROUPS,
                "peers": PEERS,
            }
        )

    def test_routes(self) -> None:
        """Existing peers behind enabled routes count once; the domains are sorted."""
        ways = products(
            enabled=HALVES, peer=("up", "down", "gone", ""), peer_groups=(None, *SIDES)
        )
        kinds = products(
            network_type=("IPv4", "domain", "Domain"),
            domains=(None, ["b.x", "a.x", "ü.x", "Z.x"]),
            network=("192.0.2.0/32",),
            masquerade=HALVES,
        )
        routes = numbered([{**route, "id": ""} for route in (*ways, *kinds)])
        for number, route in enumerate(routes):
            route["id"] = f"{number}"
        self.check({"routes": routes, "groups": GROUPS, "peers": PEERS})

    def test_sides(self) -> None:
        """A side of an enabled rule is empty without resource, peers or such groups."""
        groups = [
            {"id": "all", "peers_count": 1},
            {"id": "some", "resources_count": 1},
            {"id": "none"},
        ]
        sides = products(
            sources=tuple(map(listed, SIDES)),
            sourceResource=(None, {"type": "host"}, {"id": "host"}),
            destinations=(None, listed(("all",))),
            destinationResource=(None, {"id": "host"}),
            enabled=HALVES,
        )
        mirrored = {
            "sources": "destinations",
            "destinations": "sources",
            "sourceResource": "destinationResource",
            "destinationResource": "sourceResource",
        }
        rules = [
            *sides,
            *({mirrored.get(n, n): v for n, v in side.items()} for side in sides),
        ]
        policies: list[Record] = [
            {"enabled": enabled, "rules": [rule]}
            for enabled in HALVES
            for rule in rules
        ]
        policies += [{"enabled": True, "rules": some} for some in (None, [], rules)]
        self.check({"policies": numbered(policies), "groups": groups})

    def test_checks(self) -> None:
        """Peers in enabled rules' sources with a release below the minimum count."""
        versions = (
            *("0.9.0", "0.59.13", "v0.59.9", "0.60.0", "0.60.1", "1.0.0", ""),
            *("development", "ci-0.1.0", "0.1", "0.1.0.0", "0.1.0-rc1", "0.1.0+local"),
            *("0.1.0\n", " 0.1.0", "V0.1.0", "٠.١.٠", "0.99999999999.0", "0.77.1"),
        )
        peers = numbered([{"version": version} for version in versions])
        groups = [
            {"id": "all", "peers": peers},
            {"id": "some", "peers": [*peers[:1], {"id": "gone"}]},
            {"id": "none", "peers": peers[1:]},
        ]
        checks = [{"id": version, "checks": _minimum(version)} for version in versions]
        checks += [
            {"id": id_, "checks": _minimum("9.0.0")} for id_ in ("shared", "unused")
        ]
        checks.append({"id": "no minimum", "checks": {}})
        host = {"id": "0", "type": "peer"}
        rules: list[list[Record]] = [
            [],
            [{"enabled": True, "destinations": listed(("all",))}],
            [{"enabled": True, "sourceResource": host}],
            *(
                [{"enabled": enabled, "sources": listed(side)}]
                for enabled in HALVES
                for side in SIDES
            ),
            [{"enabled": True, "sources": listed((one,))} for one in ("some", "none")],
        ]
        policies = products(enabled=HALVES, rules=tuple(rules))
        for policy in policies:
            own = f"own {policy['id']}"
            checks.append({"id": own, "checks": _minimum("v0.60.0")})
            policy["source_posture_checks"] = [own, "gone", own, "shared"]
        every = [{"enabled": True, "sources": listed(("all",))}]
        policies.append({"enabled": True, "rules": every, "id": "every version"})
        policies[-1]["source_posture_checks"] = list(versions)
        self.check(
            {
                "policies": policies,
                "posture_checks": checks,
                "groups": groups,
                "peers": peers,
            }
        )


def _minimum(version: str) -> Record:
    return {"nb_version_check": {"min_version": version}}


class AgentTests(ComparisonTestCase):
    """The recorded Agent Network with changes."""

    def setUp(self) -> None:
        self.bodies = by_resource(recorded("recorded_agents"))

    def changed(self, name: str, **fields: object) -> list[Record]:
        """Return the records of a body with some fields replaced."""
        return [{**record, **fields} for record in json.loads(self.bodies[name])]

    def check(self, **changed: object) -> None:
        bodies = self.bodies | {name: encode(of) for name, of in changed.items()}
        for chosen in CHOICES[:2]:
            self.same(bodies, replace(chosen, asked=NOON, now=NOON))

    def test_consumption(self) -> None:
        """Refunds use nothing of a limit, and rows without a consumer count nowhere."""
        refunds = self.changed("agent_consumption", cost_usd=-5, tokens_input=-(10**9))
        self.check(agent_consumption=refunds)
        nobody = self.changed("agent_consumption", dimension_id="", tokens_input=10**9)
        rows = self.changed("agent_consumption")
        self.check(
            agent_consumption=rows + nobody, peers=self.changed("peers", user_id="")
        )
        self.check(users=[])
        rows = [
            {**rows[0], "window_seconds": 60, "window_start_utc": start}
            for start in (
                *("2026-11-22T11:59:00Z", "2026-11-22T12:00:00Z", ZERO),
                *("2026-11-22T13:00:00+01:00", "2026-11-22T12:00:10Z"),
            )
        ]
        rows += [{"window_seconds": 0}, {"window_seconds": -60}, {"cost_usd": "x"}]
        rows += [{**rows[1], "dimension_id": id_} for id_ in (LONG[:4096], LONG)]
        self.check(agent_consumption=rows, users=[{"id": LONG[:4096]}])
        self.check(agent_consumption=None)

    def test_limits(self) -> None:
        """A limit binds known groups, users and peers in one window."""
        policies = self.changed("agent_policies")
        for policy in policies:
            limits = policy["limits"]
            assert isinstance(limits, dict)
            for half in limits.values():
                half["window_seconds"] = 86400
        self.check(agent_policies=policies)
        self.check(
            agent_policies=self.changed("agent_policies", source_groups=["gone"]),
            agent_budget_rules=self.changed(
                "agent_budget_rules", target_users=["gone"], target_groups=["gone"]
            ),
        )

    def test_settings(self) -> None:
        """Without a log there are no denials, without a provider only providers."""
        for settings in (
            *(None, {}, {"enable_log_collection": False}),
            *({"access_log_retention_days": days} for days in (-1, 0, 1)),
        ):
            self.check(agent_settings=settings)
        self.check(agent_usage=[])
        self.check(agent_providers=[])
