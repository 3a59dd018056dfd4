"""Unknown fields and values, from the body to metrics, page and log."""

import json

from prometheus_client import CollectorRegistry

from tests.logbook import logbook
from tests.web.served import ServedTestCase
from tests.web.watched import Watched

PEERS, VERSION = "api/peers", "api/instance/version"


class UnknownLogTests(ServedTestCase):
    def setUp(self) -> None:
        self.watched = Watched(collectors=("peers", "users", "account"))
        self.tree = self.watched.tree
        self.registry: CollectorRegistry = self.watched.telemetry.registry
        self.book = logbook(self)

    def read(self, count: int, **fields: object) -> None:
        """Let the next refresh of the peers find records with these fields."""
        peers = [{"id": str(n), **fields} for n in range(count)]
        self.watched.bodies[PEERS] = json.dumps(peers).encode()
        self.watched.advance(35)

    def values(self, name: str) -> dict[tuple[str, ...], float]:
        return {
            tuple(sample.labels.values()): sample.value
            for family in self.registry.collect()
            if family.name == f"api_exporter_unknown_{name}"
            for sample in family.samples
        }

    def unknown_lines(self) -> list[str]:
        lines = [line for line in self.book.lines() if " does not know: " in line]
        self.book.events.clear()
        return lines

    def run_server(self, version: str) -> None:
        self.watched.bodies[VERSION] = json.dumps(
            {"management_current_version": version}
        ).encode()
        self.watched.advance(4000)

    def test_everywhere(self) -> None:
        """Metrics, page and log have them, the log once for each version."""
        self.assertEqual({}, self.values("fields"))
        self.watched.start()
        self.assertEqual({0.0}, {*self.values("fields").values()})
        self.assertEqual({}, self.values("values"))
        self.assertNotIn(b"network_addresses", self.request("/")[2])
        self.run_server("0.78.0")
        self.assertEqual([], self.unknown_lines())
        self.watched.bodies["api/users"] = b'[{"id":"u","role":"dns_viewer"}]'
        self.read(3, network_addresses=[], kind="x")
        self.watched.advance(700)
        self.assertEqual(2, self.values("fields")["peers",])
        self.assertEqual({("users", "role"): 1}, self.values("values"))
        page = self.request("/")[2].decode()
        self.assertIn("peers: kind, network_addresses; users: role=dns_viewer.", page)
        peers, users = self.unknown_lines()
        self.assertEqual(
            "info peers of NetBird 0.78.0 has fields or values that this version of"
            " api-exporter does not know: kind, network_addresses",
            peers,
        )
        self.assertIn("role=dns_viewer", users)
        self.read(4, network_addresses=[], kind="x")
        self.assertEqual([], self.unknown_lines())
        self.run_server("0.79.0")
        self.watched.advance(700)
        self.assertEqual(2, len(self.unknown_lines()))

    def test_no_version(self) -> None:
        """A server that does not say its version delays no line for long."""
        self.watched.bodies["api/peers"] = b'[{"id":"p","kind":"x"}]'
        self.watched.bodies[VERSION] = b"{}"
        self.watched.start()
        self.watched.advance(60)
        [line] = self.unknown_lines()
        self.assertIn("info peers of NetBird (unknown version) has", line)

    def test_samples(self) -> None:
        """Names of a short list are of its newest body; of a long one they stay."""
        self.watched.start()
        for count, later in ((20, 0), (200, 1)):
            self.read(count, kind="x")
            self.assertEqual(1, self.values("fields")["peers",])
            self.read(count, name="x")
            self.assertEqual(later, self.values("fields")["peers",])
