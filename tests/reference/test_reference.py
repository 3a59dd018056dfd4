"""The program's joined families compared with the reference's."""

import re
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from hypothesis import assume, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.subjects.table import RESOURCES
from simulation.company.network import SimulatedNetwork
from simulation.company.people import EXPORTER_ID
from tests.bodies import EVERYTHING, RECORDED_TIME, body, by_resource, recorded
from tests.reference import bodies as reference_bodies
from tests.reference import reference
from tests.reference.comparison import (
    CHOICES,
    JOINED,
    PERSONAL,
    PUBLIC,
    SOME,
    ComparisonTestCase,
    parsed,
)
from tests.reference.fields import flag
from tests.reference.hostile import changed
from tests.reference.page import Settings

MADE_UP = MappingProxyType(
    {
        name: body(name)
        for name in (*(r.name for r in EVERYTHING), "agent_usage_earlier")
    }
)

MONDAY = 1_799_625_600
"""2027-01-11, 00:00 UTC."""

RECORDED = replace(PERSONAL, asked=RECORDED_TIME, now=RECORDED_TIME)


def simulated(network: SimulatedNetwork, at: float) -> dict[str, bytes]:
    """Return the simulated company's bodies at a time."""
    paths = {
        resource.name: f"/{resource.path}".replace("{current_user}", EXPORTER_ID)
        for resource in RESOURCES
        if resource.name != "events"
    }
    return {
        name: b"".join(network.body(path, at) or ()) for name, path in paths.items()
    }


class SameTests(ComparisonTestCase):
    def test_made_up(self) -> None:
        """Both agree on the made-up bodies."""
        self.same(MADE_UP)

    def test_empty(self) -> None:
        """Both agree if a list is empty or `null`."""
        for resource in MADE_UP:
            for text in (b"[]", b"null"):
                self.same({**MADE_UP, resource: text}, PERSONAL)

    def test_unknown(self) -> None:
        """Without one resource, both omit all that depends on it."""
        for resource in MADE_UP:
            known = {name: text for name, text in MADE_UP.items() if name != resource}
            self.same(known, SOME)

    def test_recorded(self) -> None:
        """Both agree on recorded networks: a full one, a small one and a new one."""
        self.same(by_resource(recorded("recorded")), SOME)
        bodies = by_resource(recorded("recorded_agents"))
        self.same(bodies, *CHOICES, RECORDED, replace(RECORDED, consumption_interval=1))
        self.same(by_resource(recorded("stock")), PUBLIC)

    def test_passing_time(self) -> None:
        """Both agree after windows, days and months have ended."""
        bodies = by_resource(recorded("recorded_agents"))
        for minutes in (0.5, 1, 59, 60, 12 * 60, 9 * 1440, 40 * 1440):
            now = RECORDED_TIME + 60 * minutes
            self.same(bodies, replace(RECORDED, now=now))

    def test_simulation(self) -> None:
        """Both agree on the simulated company, also during failures."""
        network = SimulatedNetwork(40)
        for hour in (10.5, 87):
            at = MONDAY + 3600 * hour
            self.same(simulated(network, at), replace(PERSONAL, asked=at, now=at))

    @given(changed(parsed(MADE_UP)), st.sampled_from(CHOICES))
    def test_hostile(self, bodies: dict[str, bytes], chosen: Settings) -> None:
        """Both agree on bodies with random changes.

        The reference does not know that a user with the role `user` gets few peers.
        """
        users = reference_bodies.known(parsed(bodies)).get("users", [])
        current = [user for user in users if flag(user, "is_current")]
        assume("user" not in [user.get("role") for user in current])
        self.same(bodies, chosen)


class ReferenceTests(SynchronousTestCase):
    def test_each_family(self) -> None:
        """The reference has all families of several lists."""
        found = {name for name, _ in reference(parsed(MADE_UP), PERSONAL)}
        self.assertEqual(JOINED, found)

    def test_independent(self) -> None:
        """The reference itself does not import the package."""
        users = {
            path.name
            for path in Path(__file__).parent.glob("*.py")
            if re.search("^(from|import) api_exporter", path.read_text(), re.MULTILINE)
        }
        others = {"comparison.py", "program.py", "recorded.py", Path(__file__).name}
        self.assertEqual(others, users)
