"""The program's page compared with the reference's."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from hypothesis import assume, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.subjects.table import RESOURCES
from simulation.company.network import SimulatedNetwork
from simulation.company.people import EXPORTER_ID
from tests.bodies import EVERYTHING, body, recorded
from tests.reference import bodies as reference_bodies
from tests.reference import reference
from tests.reference.comparison import (
    CHOICES,
    PERSONAL,
    PUBLIC,
    SOME,
    ComparisonTestCase,
    parsed,
)
from tests.reference.fields import flag
from tests.reference.hostile import changed, encode
from tests.reference.page import Settings
from tools.documents import ROOT

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


class SameTests(ComparisonTestCase):
    def test_made_up(self) -> None:
        """Both pages agree on the made-up bodies."""
        self.same(MADE_UP)

    def test_sparse(self) -> None:
        """Both pages agree on sparse bodies, `null` and empty lists among them."""
        for resource, name in (
            ("accounts", "accounts_sparse"),
            ("dns_settings", "dns_settings_none"),
            ("instance_version", "instance_version_offline"),
            *((resource.name, "null") for resource in EVERYTHING),
        ):
            self.same({**MADE_UP, resource: body(name)}, PERSONAL)
        for resource in MADE_UP:
            self.same({**MADE_UP, resource: b"[]"}, PERSONAL)

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
        """Both pages agree on bodies with random changes.

        The reference does not know that a user with the role `user` gets few peers.
        """
        users = reference_bodies.known(parsed(bodies)).get("users", [])
        current = [user for user in users if flag(user, "is_current")]
        assume("user" not in [user.get("role") for user in current])
        self.same(bodies, chosen)


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
        self.assertEqual({"program.py", "recorded.py", Path(__file__).name}, users)
