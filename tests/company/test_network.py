import json
import re
from collections import Counter
from datetime import datetime

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.demo.go_json import Record, encode
from simulation.company.network import GROUPS, PATHS, PEERS, SimulatedNetwork
from simulation.company.people import EXPORTER_ID
from simulation.company.resource import HOLE

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


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


class HoleTests(SynchronousTestCase):
    def test_hole(self) -> None:
        """A hole is one byte that no encoded string can contain."""
        self.assertEqual(1, encode({"a": HOLE, "b": "\0"}).count(b"\0"))


class PeersTests(SynchronousTestCase):
    network = SimulatedNetwork(120, seed=7)

    def test_deterministic(self) -> None:
        """Only the same size, seed and time give the same bytes, after any requests."""
        fresh = SimulatedNetwork(120, seed=7)
        for path in PATHS:
            first, _, second = (
                b"".join(network.body(path, at) or ())
                for network, at in (
                    (self.network, NOW),
                    (fresh, NOW + DAY),
                    (fresh, NOW),
                )
            )
            self.assertEqual(first, second)
        self.assertNotEqual(
            read(self.network, PEERS), read(SimulatedNetwork(120), PEERS)
        )

    def test_growth(self) -> None:
        """A larger network has the machines of a smaller one, and more."""
        small, large = (
            by_id(read(network, PEERS))
            for network in (self.network, SimulatedNetwork(200, 7))
        )
        self.assertLess(set(small), set(large))

    def test_size(self) -> None:
        """The number of peers is as configured, except for a few ephemeral ones. No
        two share an id, an address or a DNS name.
        """
        for machines in (0, 1, 15, 120, 3000):
            peers = read(SimulatedNetwork(machines), PEERS)
            self.assertTrue(machines * 0.95 - 1 <= len(peers) <= machines)
            for key in ("id", "ip", "ipv6", "dns_label"):
                self.assertEqual(len(peers), len({peer[key] for peer in peers}))

    def test_come_and_go(self) -> None:
        """Ephemeral peers appear under new ids and vanish; all others stay."""
        now, later = (
            {
                ephemeral: {p["id"] for p in peers if p["ephemeral"] is ephemeral}
                for ephemeral in (True, False)
            }
            for peers in (read(self.network, PEERS, at) for at in (NOW, NOW + DAY))
        )
        self.assertEqual(now[False], later[False])
        self.assertEqual(set(), now[True] & later[True])
        self.assertTrue(now[True] and later[True])

    def test_last_seen(self) -> None:
        """`last_seen` is the second in which `connected` last changed."""
        peers = by_id(read(self.network, PEERS))
        for id_, peer in peers.items():
            changed = seconds(peer["last_seen"])
            self.assertLessEqual(changed, NOW)
            after = by_id(read(self.network, PEERS, changed))[id_]
            before = by_id(read(self.network, PEERS, changed - 1)).get(id_)
            self.assertEqual(peer["connected"], after["connected"])
            if before is None:
                self.assertTrue(peer["ephemeral"])
            else:
                self.assertNotEqual(peer["connected"], before["connected"])

    def test_no_change_unseen(self) -> None:
        """Between two readings with the same `last_seen`, `connected` is the same."""
        seen: dict[tuple[object, object], object] = {}
        for minutes in range(0, 3 * 24 * 60, 30):
            for peer in read(self.network, PEERS, NOW + 60 * minutes):
                key, connected = (peer["id"], peer["last_seen"]), peer["connected"]
                self.assertEqual(connected, seen.setdefault(key, connected))
        self.assertGreater(len(seen), 200)

    def test_expired_logins(self) -> None:
        """Peers with an expired login are offline, and some always exist."""
        for at in INSTANTS:
            expired = [p for p in read(self.network, PEERS, at) if p["login_expired"]]
            self.assertTrue(expired)
            self.assertFalse(any(peer["connected"] for peer in expired))

    def test_personal_data(self) -> None:
        """A peer's host name is neither part of its name nor of its DNS name."""
        for peer in read(self.network, PEERS):
            self.assertTrue(peer["hostname"])
            self.assertNotIn(peer["hostname"], f"{peer['name']} {peer['dns_label']}")

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

    def test_size_of_records(self) -> None:
        """A peer's record is about as long as those of the real server."""
        body = b"".join(self.network.body(PEERS, NOW) or ())
        self.assertTrue(1100 < len(body) / len(json.loads(body)) < 1400)


class GroupsTests(SynchronousTestCase):
    def test_consistent(self) -> None:
        """Groups and peers have the same memberships at any time."""
        network = SimulatedNetwork(120)
        for at in INSTANTS:
            groups = by_id(read(network, GROUPS, at))
            told = {
                (group["id"], group["name"], peer["id"], peer["name"])
                for peer in read(network, PEERS, at)
                for group in peer["groups"] or []
            }
            held = {
                (group["id"], group["name"], peer["id"], peer["name"])
                for group in groups.values()
                for peer in group["peers"] or []
            }
            self.assertEqual(held, told)

    def test_counts(self) -> None:
        """Each group has the same counts in all records."""
        network = SimulatedNetwork(120)
        for at in INSTANTS:
            groups = by_id(read(network, GROUPS, at))
            for group in groups.values():
                self.assertEqual(group["peers_count"], len(group["peers"] or []))
                self.assertEqual(
                    group["resources_count"], len(group["resources"] or [])
                )
            for owner in (
                *read(network, PEERS, at),
                *read(network, "/api/networks/resources", at),
            ):
                for group in owner["groups"] or []:
                    whole = groups[group["id"]]
                    self.assertEqual(group, {key: whole[key] for key in group})

    def test_kinds(self) -> None:
        """There are groups of every origin, an empty one, and two of one name."""
        groups = read(SimulatedNetwork(120), GROUPS)
        self.assertEqual(
            {"api", "jwt", "integration", ""}, {group["issued"] for group in groups}
        )
        self.assertIn(None, [group["peers"] for group in groups])
        self.assertLess(len({group["name"] for group in groups}), len(groups))


class CatalogueTests(SynchronousTestCase):
    network = SimulatedNetwork(60)

    def connected_routers(self, at: float) -> dict[object, list[object]]:
        """Return for each network whether its routers of single peers are connected."""
        peers = by_id(read(self.network, PEERS, at))
        routers = by_id(read(self.network, "/api/networks/routers", at))
        return {
            network["name"]: [
                peers[str(peer)]["connected"]
                for id_ in network["routers"] or []
                if (peer := routers[id_]["peer"])
            ]
            for network in read(self.network, "/api/networks", at)
        }

    def test_routers(self) -> None:
        """At any time networks with two, one and no connected routers exist."""
        for at in INSTANTS:
            connected = self.connected_routers(at)
            self.assertEqual([True, True], connected["hq"])
            self.assertEqual([True, False], connected["lab"])
            self.assertEqual([False, False], connected["depot"])
            self.assertEqual([], connected["empty network"])

    def test_setup_keys(self) -> None:
        """At any time keys of all states exist; one expires within weeks."""
        for at in INSTANTS:
            keys = read(self.network, "/api/setup-keys", at)
            self.assertEqual(
                {"valid", "expired", "revoked", "overused"},
                {key["state"] for key in keys},
            )
            valid = [seconds(key["expires"]) for key in keys if key["valid"]]
            self.assertTrue(any(0 < expires - at < 13 * DAY + 1 for expires in valid))
            self.assertTrue(any(expires < 0 for expires in valid))

    def test_access_tokens(self) -> None:
        """The exporter's token expires in 45 to 75 days, at any time."""
        users = by_id(read(self.network, "/api/users"))
        self.assertEqual([EXPORTER_ID], [i for i in users if users[i]["is_current"]])
        path = f"/api/users/{EXPORTER_ID}/tokens"
        for at in INSTANTS:
            used, unused, *_ = read(self.network, path, at)
            left = seconds(used["expiration_date"]) - at
            self.assertTrue(45 * DAY <= left <= 75 * DAY + 1)
            self.assertLess(seconds(used["last_used"]) - at, 1)
            self.assertNotIn("last_used", unused)

    def test_owners(self) -> None:
        """Every peer's owner is a user."""
        network = SimulatedNetwork(500)
        users = {"", *by_id(read(network, "/api/users"))}
        self.assertLessEqual({p["user_id"] for p in read(network, PEERS)}, users)

    def test_audit_events(self) -> None:
        """The audit log grows; it is listed newest first, 10,000 events at most."""
        path = "/api/events/audit"
        now, later = (read(self.network, path, at) for at in (NOW, NOW + 3600))
        self.assertEqual(10_000, len(now))
        self.assertEqual(6, int(str(later[0]["id"])) - int(str(now[0]["id"])))
        times = [seconds(event["timestamp"]) for event in now]
        self.assertEqual(sorted(times, reverse=True), times)
        self.assertLessEqual(times[0], NOW + 1)

    def test_branches(self) -> None:
        """Large networks have branch offices, whose routers exist."""
        network = SimulatedNetwork(1000)
        routers = read(network, "/api/networks/routers")
        self.assertEqual(4, len(read(network, "/api/networks")) - 6)
        peers = set(by_id(read(network, PEERS)))
        self.assertLessEqual({r["peer"] for r in routers if r["peer"]}, peers)

    def test_references(self) -> None:
        bodies = {
            path: b"".join(self.network.body(path, NOW) or ()).decode()
            for path in PATHS
            if path != "/api/events/audit"  # about deleted objects
        }
        ids = {
            id_
            for path in bodies
            for id_ in by_id([r for r in read(self.network, path) if "id" in r])
        }
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
