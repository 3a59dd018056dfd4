"""The peer exporter: the collector that turns peers into metrics."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.subjects.table import COLLECTORS
from tests.bodies import decoded
from tests.collectors.samples import Key, page, parsed
from tests.inventories import inventory_of

PEERS = b"""[
    {"id": "p1", "name": "laptop", "ip": "100.64.0.1", "os": "Debian 13",
     "version": "0.77.1", "country_code": "DE", "user_id": "u1", "connected": true,
     "last_login": "2026-11-22T12:00:00Z"},
    {"id": "p2", "name": "server", "os": "Debian 12", "connected": false,
     "last_seen": "1970-01-01T00:01:40Z", "login_expired": true}
]"""


class TestPeerExporter(SynchronousTestCase):
    """The peer exporter of the specification, which names this class.

    Do not rename or remove this class. `tests/test_promises.py` checks its name.
    """

    def samples(self, body: bytes) -> dict[Key, float]:
        """Return the samples of the collector of peers, given a response's body."""
        [peers] = [collector for collector in COLLECTORS if collector.name == "peers"]
        inventory = inventory_of().replacing("peers", decoded("peers", body).records)
        found = parsed(page(inventory, [peers]))
        self.assertEqual(len(found), len(dict(found)), "a sample twice")
        return dict(found)

    def value(self, samples: dict[Key, float], name: str, **labels: str) -> float:
        return samples[f"netbird_api_{name}", frozenset(labels.items())]

    def test_counts(self) -> None:
        """Peers are counted by state, system, version and country."""
        samples = self.samples(PEERS)
        for expected, name, labels in (
            (1, "peers", {"connected": "true"}),
            (1, "peers", {"connected": "false"}),
            (2, "peers_by_os", {"os": "Debian"}),
            (1, "peers_by_version", {"version": "0.77.1"}),
            (1, "peers_by_version", {"version": "unknown"}),
            (1, "peers_by_country", {"country": "DE"}),
            (1, "peers_login_expired", {}),
            (0, "peers_never_logged_in", {}),
        ):
            self.assertEqual(expected, self.value(samples, name, **labels), name)

    def test_peer(self) -> None:
        """Each peer has its state, and the time when it disconnected."""
        samples = self.samples(PEERS)
        laptop = {"peer_id": "p1", "peer": "laptop"}
        server = {"peer_id": "p2", "peer": "server"}
        self.assertEqual(1, self.value(samples, "peer_connected", **laptop))
        self.assertEqual(0, self.value(samples, "peer_connected", **server))
        last_seen = "peer_last_seen_timestamp_seconds"
        self.assertEqual(100, self.value(samples, last_seen, **server))
        self.assertNotIn(
            (f"netbird_api_{last_seen}", frozenset(laptop.items())), samples
        )
        [info] = [
            dict(labels)
            for name, labels in samples
            if name == "netbird_api_peer_info" and ("peer_id", "p1") in labels
        ]
        self.assertEqual(
            ("100.64.0.1", "Debian 13", "u1"), (info["ip"], info["os"], info["user_id"])
        )

    def test_none(self) -> None:
        """A network without peers has counts of 0; without a response it has none."""
        samples = self.samples(b"[]")
        self.assertEqual(0, self.value(samples, "peers", connected="true"))
        self.assertNotIn("netbird_api_peer_info", {name for name, _ in samples})
        [peers] = [collector for collector in COLLECTORS if collector.name == "peers"]
        self.assertEqual("", page(inventory_of(), [peers]))
