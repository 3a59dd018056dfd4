import json
import re
from collections import Counter

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.demo.go_json import Record
from simulation.company.network import GROUPS, PATHS, PEERS, SimulatedNetwork

NOW = 1_787_425_800.0
DAY = 86_400
INSTANTS = [NOW + number * 37.77 * DAY / 7 for number in range(70)]
"""Times over a year, at changing hours and weekdays."""


def read(network: SimulatedNetwork, path: str, at: float = NOW) -> list[Record]:
    pieces = network.body(path, at)
    assert pieces is not None, path
    body = json.loads(b"".join(pieces))
    return body if isinstance(body, list) else [body]


def by_id(records: list[Record]) -> dict[str, Record]:
    return {record["id"]: record for record in records}


class PeersTests(SynchronousTestCase):
    network = SimulatedNetwork(120, seed=7)

    def test_oddities(self) -> None:
        """Unusual values of the real API occur."""
        peers = read(self.network, PEERS)
        names = Counter(peer["name"] for peer in peers)
        text = "".join(map(str, names))
        self.assertGreater(names["db-primary"], 1)
        self.assertTrue(all(odd in text for odd in '"\\&<’日ë'))
        self.assertIn(None, [peer["groups"] for peer in peers])
        self.assertIn("<nil>", [peer["connection_ip"] for peer in peers])
        self.assertIn("development", [peer["version"] for peer in peers])
        self.assertIn("0001-01-01T00:00:00Z", [peer["last_login"] for peer in peers])


class GroupsTests(SynchronousTestCase):
    def test_consistent(self) -> None:
        """Groups and peers have the same memberships and counts at any time."""
        network = SimulatedNetwork(120)
        for at in INSTANTS:
            groups = by_id(read(network, GROUPS, at))
            peers = read(network, PEERS, at)
            members, held = set(), set()
            for peer in peers:
                for one in peer["groups"] or []:
                    members.add((one["id"], one["name"], peer["id"], peer["name"]))
            for group in groups.values():
                for one in group["peers"] or []:
                    held.add((group["id"], group["name"], one["id"], one["name"]))
                for name in ("peers", "resources"):
                    self.assertEqual(group[f"{name}_count"], len(group[name] or []))
            self.assertEqual(held, members)
            for owner in (*peers, *read(network, "/api/networks/resources", at)):
                for group in owner["groups"] or []:
                    whole = groups[group["id"]]
                    self.assertEqual(group, {key: whole[key] for key in group})


class CatalogueTests(SynchronousTestCase):
    network = SimulatedNetwork(60)

    def test_references(self) -> None:
        bodies = {
            path: b"".join(self.network.body(path, NOW) or ()).decode()
            for path in PATHS
            if path != "/api/events/audit"  # about deleted objects
        }
        records = [r for path in bodies for r in read(self.network, path)]
        ids = {record["id"] for record in records if "id" in record}
        named = set(re.findall(r'"(d2[a-z][0-9a-f]{17})"', "".join(bodies.values())))
        records_of_zones = {id_ for id_ in named if id_.startswith("d2h")}
        self.assertEqual(set(), named - ids - records_of_zones)

    def test_paths(self) -> None:
        """A network without machines, or at time 0, has all paths, and no others."""
        for path in ("/api/health", "/api/peers/", "api/peers", ""):
            self.assertIsNone(self.network.body(path, NOW))
        for path in PATHS:
            read(SimulatedNetwork(0), path)
            read(self.network, path, 0)
