"""The program's page compared with the reference's."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.resources import RESOURCES
from simulation.company.network import SimulatedNetwork
from simulation.company.people import EXPORTER_ID
from tests.bodies import EVERYTHING, body, recorded
from tests.documents import ROOT
from tests.reference import reference
from tests.reference.comparison import differences, parsed
from tests.reference.hostile import changed, encode
from tests.reference.page import Settings

NO_PEER = Settings(detail=frozenset())
PUBLIC = Settings()
PERSONAL = Settings(
    personal=frozenset(
        ["email", "name", "hostname", "connection_ip", "city", "serial_number", "usage"]
    )
)
SOME = Settings(
    personal=frozenset(("city",)), detail=frozenset(("servers", "group-lab", "All"))
)
CHOICES = (PUBLIC, PERSONAL, SOME, NO_PEER)

MADE_UP = MappingProxyType(
    {
        name: body(name)
        for name in (*(r.name for r in EVERYTHING), "agent_usage_earlier")
    }
)

NOON = 1_795_348_830.0
"""2026-11-22, 12:00:30 UTC: in all windows of the newest recorded rows."""

MONDAY = 1_799_625_600
"""2027-01-11, 00:00 UTC."""

LONG = "x" * 5000
"""Longer than a label may be."""


def by_resource(sent: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return bodies by resource, given those by path with any user's tokens."""
    there = {re.sub("users/.+/tokens", "tokens", path): sent[path] for path in sent}
    named = {
        re.sub("users/.+/tokens", "tokens", resource.path): resource.name
        for resource in RESOURCES
    }
    found = {named[path]: text for path, text in there.items() if path in named}
    days = json.loads(
        there.get("api/agent-network/usage/overview/granularity-day", "[]")
    )
    found["agent_usage_earlier"] = encode(
        [d for d in days if "2026-11-01" <= d["period_start"] < "2026-11-22"]
    )
    return found


def simulated(peers: int, hour: float) -> dict[str, bytes]:
    """Return the simulated company's bodies in an hour of its week, with 200 events."""
    network, at = SimulatedNetwork(peers), MONDAY + 3600 * hour
    bodies = {}
    for resource in RESOURCES:
        path = f"/{resource.path}".replace("{current_user}", EXPORTER_ID)
        pieces = network.body(path, at)
        assert pieces is not None
        bodies[resource.name] = b"".join(pieces)
    earlier = network.body("/api/agent-network/usage/overview?end_date=", at)
    bodies["agent_usage_earlier"] = b"".join(earlier or ())
    bodies["events"] = encode(json.loads(bodies["events"])[:200])
    return bodies


class SameTests(SynchronousTestCase):
    def same(self, bodies: Mapping[str, bytes], *of: Settings) -> None:
        for chosen in of or CHOICES:
            self.assertEqual([], differences(bodies, chosen))

    def test_made_up(self) -> None:
        """Both pages agree on the made-up bodies."""
        self.same(MADE_UP)

    def test_sparse(self) -> None:
        """Both pages agree on sparse bodies of other servers, `null` among them."""
        for resource, name in (
            ("accounts", "accounts_sparse"),
            ("dns_settings", "dns_settings_none"),
            ("instance_version", "instance_version_offline"),
            *((resource.name, "null") for resource in EVERYTHING),
        ):
            self.same({**MADE_UP, resource: body(name)}, PERSONAL)

    def test_unknown(self) -> None:
        """Without one resource, both pages omit all that depends on it."""
        for resource in MADE_UP:
            if resource == "agent_usage_earlier":  # requested before today's
                continue
            known = {name: text for name, text in MADE_UP.items() if name != resource}
            self.same(known, SOME)

    def test_stock(self) -> None:
        """Both pages agree on a fresh NetBird 0.77.1 with a dozen peers."""
        self.same(by_resource(recorded("stock")))

    def test_recorded(self) -> None:
        """Both pages agree on recorded networks, a full one and a small one."""
        self.same(by_resource(recorded("recorded")), PERSONAL, SOME)
        bodies = by_resource(recorded("recorded_agents"))
        self.same(bodies)
        self.same(bodies, replace(PERSONAL, asked=NOON, now=NOON))
        self.same(
            bodies, replace(PERSONAL, asked=NOON, now=NOON, consumption_interval=1)
        )

    def test_passing_time(self) -> None:
        """Both pages agree after windows, days and months have ended."""
        recorded_ = by_resource(recorded("recorded_agents"))
        for bodies, asked in ((MADE_UP, PUBLIC.asked), (recorded_, NOON)):
            for minutes in (0.5, 1, 59, 60, 12 * 60, 9 * 1440, 40 * 1440):
                now = asked + 60 * minutes
                self.same(bodies, replace(PERSONAL, asked=asked, now=now))

    def test_months(self) -> None:
        """On the first of a month, there are no earlier days to request."""
        for day in (19, 20, 21, 41):
            time = PUBLIC.asked - day * 86400
            self.same(MADE_UP, replace(PUBLIC, asked=time, now=time))

    def test_simulation(self) -> None:
        """Both pages agree on the simulated company, also during failures."""
        for hour in (3, 10.5, 40, 87, 110, 150):
            at = MONDAY + 3600 * hour
            self.same(simulated(40, hour), replace(PERSONAL, asked=at, now=at))

    def test_large(self) -> None:
        """Both pages agree on a thousand peers."""
        self.same(simulated(1000, 34), PUBLIC)

    @given(changed(parsed(MADE_UP)), st.sampled_from(CHOICES))
    def test_hostile(self, bodies: dict[str, bytes], chosen: Settings) -> None:
        """Both pages agree on bodies with random changes."""
        self.same(bodies, chosen)

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

    def test_never(self) -> None:
        """All spellings of "never" have no sample; an instant after 1970 has one."""
        for written in (
            "0001-01-01T00:00:00+02:00",
            "0000-12-31T19:00:00-05:00",
            "1969-12-31T23:59:59.999999Z",
            "1970-01-01T00:00:00Z",
            "1970-01-01T01:00:00+01:00",
            "1970-01-01T00:00:00.000001Z",
            "1970-01-01T00:00:01Z",
        ):
            keys = [{"id": "k", "expires": written, "last_used": written}]
            peers = [{"id": "p", "last_seen": written, "user_id": "u"}]
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

    def test_shut_out(self) -> None:
        """Both pages agree on versions below a posture check's minimum."""
        versions = ("v0.30.9", "0.31.0", "0.9.99", "1.0.0", "0.31.0-dev", "dev", "")
        peers = [{"id": f"{n}", "version": v} for n, v in enumerate(versions)]
        halves = (True, False)
        cases = [(policy, rule) for policy in halves for rule in halves]
        bodies = {
            "peers": peers,
            "groups": [
                {"id": f"{case}", "peers": [*peers, {"id": "gone"}], of: 1}
                for case, of in zip(
                    cases,
                    ("resources_count", "peers_count", "resources_count", "new"),
                    strict=True,
                )
            ],
            "policies": [
                {
                    "id": f"{case}",
                    "enabled": case[0],
                    "rules": [
                        {"id": "r", "enabled": case[1], "sources": [{"id": f"{case}"}]}
                    ],
                    "source_posture_checks": [f"{case}", "0.31", "unused in part"],
                }
                for case in cases
            ],
            "posture_checks": [
                {"id": id_, "checks": {"nb_version_check": {"min_version": minimum}}}
                for id_, minimum in (
                    *((f"{case}", "v0.31.0") for case in cases),
                    ("0.31", "0.31"),
                    ("unused", "9.0.0"),
                    ("unused in part", "0.31.0"),
                )
            ],
        }
        self.same({name: encode(records) for name, records in bodies.items()}, PUBLIC)

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


class ReferenceTests(SynchronousTestCase):
    def test_each_family(self) -> None:
        """No family of the network in `docs/metrics.md` is missing in the reference."""
        documented, _ = (
            (ROOT / "docs/metrics.md").read_text().split("## The exporter itself")
        )
        families = re.findall(r"^\| `(\w+)` \| gauge \|", documented, re.MULTILINE)
        compared = {name for name, _ in reference(parsed(MADE_UP), PERSONAL)}
        self.assertEqual(sorted(families), sorted(compared))

    def test_independent(self) -> None:
        """The reference itself does not import the package."""
        folder = Path(__file__).parent
        users = {
            path.name
            for path in folder.glob("*.py")
            if "api_exporter" in path.read_text()
        }
        self.assertEqual({"program.py", Path(__file__).name}, users)
