"""Lists that are joined, at the borders of the rules, compared with the reference."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from tests.bodies import RECORDED_TIME, by_resource, recorded
from tests.reference.comparison import CHOICES, PUBLIC, ComparisonTestCase
from tests.reference.hostile import encode
from tests.reference.program import program

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


class JoinedTests(ComparisonTestCase):
    """Lists that name ids of other lists."""

    def check(self, lists: Mapping[str, object]) -> None:
        """Compare the pages of these lists, and without one of them."""
        bodies = {name: encode(found) for name, found in lists.items()}
        self.same(bodies, PUBLIC)
        for missing in bodies:
            self.same({n: b for n, b in bodies.items() if n != missing}, PUBLIC)

    def test_logins(self) -> None:
        """Logins expire by the first account's settings, at any lifetime."""
        peers = products(
            user_id=("", "u"), login_expiration_enabled=HALVES, last_login=SOME_TIMES
        )
        for enabled, seconds in product(HALVES, (0, 3600, -(2**40))):
            accounts = [
                {
                    "id": f"{lifetime}",
                    "settings": {
                        "peer_login_expiration_enabled": expires,
                        "peer_login_expiration": lifetime,
                    },
                }
                for lifetime, expires in ((seconds, enabled), (60, True))
            ]
            self.check({"peers": peers, "accounts": accounts})
        self.check({"peers": peers, "accounts": []})

    def test_tokens(self) -> None:
        """Tokens belong to the current user; the last used one is the exporter's, of
        several the one with the greatest id.
        """
        tokens = products(expiration_date=SOME_TIMES, last_used=SOME_TIMES)
        users = [{"id": id_, "is_current": id_ > "a"} for id_ in "cab"]
        for listed in (tokens, tokens[::-1]):
            self.check({"users": users, "access_tokens": listed})
        self.check({"users": users, "access_tokens": tokens[:1]})

    def test_members(self) -> None:
        """Existing members of a group count once, connected or not."""
        self.check({"groups": GROUPS, "peers": PEERS})

    def test_twice(self) -> None:
        """The last record with an id counts, at its position; ids count once."""
        twice = ["a", "b", "a", ""]
        things = [{"id": "1", "enabled": True}, {"id": "1"}, {}, {}]
        self.check(
            {
                "groups": [{"id": "a", "peers": things}],
                "networks": [
                    {"id": id_, "resources": ["1"], "policies": twice, "routers": twice}
                    for id_ in ("x", "y", "x")
                ],
                "network_resources": [{"id": "1"}],
                "network_routers": [{"id": "a", "peer_groups": ["a", "a"]}],
                "peers": [{"id": "1"}],
                "policies": [{"id": "p", "enabled": True, "rules": things}],
            }
        )

    def test_long(self) -> None:
        """Labels that are too long are cut."""
        long = [{"id": LONG + end} for end in "123"]
        self.check(
            {
                "groups": [{"id": "g", "name": LONG, "peers": long}],
                "networks": [{"id": "n", "routers": [LONG]}, {"id": LONG}],
                "peers": [{"id": "1"}],
                "routes": [{"id": n, "network_id": LONG} for n in ("1", LONG)],
            }
        )

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
            self.same(bodies, replace(chosen, asked=RECORDED_TIME, now=RECORDED_TIME))

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
        for settings in (None, {}, {"enable_log_collection": False}):
            self.check(agent_settings=settings)
        self.check(agent_usage=[])
        self.check(agent_providers=[])

    def test_retention(self) -> None:
        """Only a positive number of days limits how long the log is kept."""
        name = "netbird_api_agent_access_log_retention_seconds"
        for days, expected in ((-1, []), (0, []), (1, [86400.0])):
            settings = encode({"access_log_retention_days": days})
            found = program({**self.bodies, "agent_settings": settings}, PUBLIC)
            self.assertEqual(expected, [found[key] for key in found if key[0] == name])
