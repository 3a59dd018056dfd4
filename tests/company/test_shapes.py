"""The simulated API's records have exactly the keys of the real API."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.subjects.table import RESOURCES
from simulation.company.network import PATHS, SimulatedNetwork
from simulation.company.people import EXPORTER_ID
from tests.bodies import body, recorded
from tests.company.test_network import NOW

Keys = dict[str, list[set[str]]]
"""The keys of each record, by the place of the record in a resource."""

DOCUMENTED = {
    "policies.rules": {"port_ranges"},
    "policies.rules.port_ranges": {"end", "start"},
    "proxy_services.auth": {"bearer_auth"},
    "proxy_services.auth.bearer_auth": {"distribution_groups", "enabled"},
}
"""Keys of NetBird's specification that no recorded response has."""

OPTIONAL = {
    "access_tokens": {"last_used"},
    "proxy_domains": {"supports_crowdsec", "supports_custom_ports", "supports_private"},
    "posture_checks.checks.os_version_check": {"windows"},
}
"""Keys that may be absent, although all recorded records have them."""


def keys(place: str, *bodies: bytes) -> Keys:
    found: Keys = defaultdict(list)
    for one in bodies:
        for inner, record in records(place, json.loads(one)):
            found[inner].append(set(record))
    return found


def records(place: str, value: object) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield all records in a value, each with its place."""
    if isinstance(value, list):
        for element in value:
            yield from records(place, element)
    elif isinstance(value, dict):
        yield place, value
        for key, inner in value.items():
            yield from records(f"{place}.{key}", inner)


class ShapeTests(SynchronousTestCase):
    paths: ClassVar = {
        resource.name: f"/{resource.path}".replace("{current_user}", EXPORTER_ID)
        for resource in RESOURCES
    }

    def setUp(self) -> None:
        network = SimulatedNetwork(60)
        found = {name: network.body(path, NOW) for name, path in self.paths.items()}
        self.bodies = {name: b"".join(body or ()) for name, body in found.items()}
        servers = [recorded(name) for name in ("recorded", "recorded_agents", "stock")]
        self.real = {
            name: keys(name, *(server[path] for server in servers if path in server))
            for name, path in (
                (r.name, r.path.replace("{current_user}", "seed-exporter-user"))
                for r in RESOURCES
            )
        }

    def test_known(self) -> None:
        """No record has a key that NetBird's records do not have, in their order."""
        self.assertEqual(set(PATHS), set(self.paths.values()))
        for name, text in self.bodies.items():
            real, made_up = self.real[name], keys(name, body(name))
            for place, seen in keys(name, text).items():
                known = set().union(*real[place], *made_up[place])
                known |= DOCUMENTED.get(place, set())
                self.assertEqual(set(), set().union(*seen) - known, place)
            for place, record in records(name, json.loads(text)):
                self.assertEqual(sorted(record), list(record), place)

    def test_required(self) -> None:
        """Each record has all required keys, and the optional keys occur."""
        for name, text in self.bodies.items():
            seen, real = keys(name, text), self.real[name]
            if not real:  # no server was recorded that has the resource
                continue
            self.assertLessEqual(set().union(*real[name]), set().union(*seen[name]))
            for place in set(real) - {"events.meta"}:
                required = set.intersection(*real[place]) - OPTIONAL.get(place, set())
                for one in seen[place]:
                    self.assertLessEqual(required, one, place)
