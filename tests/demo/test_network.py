"""The recorded company, as `--demo` plays it."""

import gzip
import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv6Address

import msgspec
from msgspec.structs import astuple
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import default_thresholds
from api_exporter.demo.go_json import Record
from api_exporter.demo.network import (
    GROUPS_PATH,
    PEERS_PATH,
    RECORDED_AT,
    RecordedNetwork,
    bodies,
    consumption,
    denials,
    usage,
)
from api_exporter.netbird.inventory import Inventory
from simulation.company.__main__ import PLACE, recording
from simulation.company.network import PATHS, SimulatedNetwork
from tests.attention.looking import findings, seen
from tests.collectors.samples import page, parsed
from tests.subjects.test_demo import known

DAY = 86_400
INSTANTS = [RECORDED_AT + number * 37.77 * DAY / 7 for number in range(-20, 50)]
"""Times over a year, at changing hours and weekdays."""

EXPIRING = {f"ApiExporterToken{when}Soon" for when in ("Expires", "ExpiresVery")}
EXPIRING |= {"ApiExporterOtherTokenExpiresSoon", "NetBirdProxyTokenExpiresSoon"}


network = lru_cache(maxsize=4)(RecordedNetwork)


def read(path: str, at: float, peers: int = 200, seed: int = 0) -> list[Record]:
    pieces = network(peers, seed).body(path, at)
    assert pieces is not None, path
    found: list[Record] = msgspec.json.decode(b"".join(pieces))
    return found


class Identity(msgspec.Struct):
    """The fields of a peer that no other peer shares."""

    id: str
    ip: str
    ipv6: str
    dns_label: str


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def updated(row: Record) -> float:
    return seconds(row["updated_at"])


def families(known: Inventory) -> set[str]:
    return {key[0] for key, _ in parsed(page(known))}


class RecordingTests(SynchronousTestCase):
    def test_current(self) -> None:
        """The file is what `simulation.company` makes, with the paths of the API."""
        found = gzip.decompress(PLACE.read_bytes())
        self.assertEqual(json.loads(recording()), json.loads(found))
        self.assertEqual({*PATHS}, {*bodies(0)})
        self.assertIsNone(network(10, 0).body("/api/health", RECORDED_AT))

    def test_families(self) -> None:
        """The metric families equal those of the simulated company at any time."""
        for at in (RECORDED_AT, INSTANTS[-1]):
            simulated = families(known(SimulatedNetwork(200), at))
            self.assertEqual(simulated, families(known(network(200, 0), at)))

    def test_findings(self) -> None:
        """There are findings of each severity at any time; some are about expiry."""
        severities: Mapping[str, str] = default_thresholds().severities
        for at in INSTANTS[::7]:
            inventory = known(network(200, 0), at)
            alerts = {one.alert for one in findings(seen(inventory, now=at))}
            found = {severities[alert] for alert in alerts}
            self.assertEqual({"critical", "warning", "info"}, found)
            self.assertGreaterEqual(len(alerts & EXPIRING), 2)


class PeersTests(SynchronousTestCase):
    def test_size(self) -> None:
        """The number of peers is as configured; a seed gives the same bodies."""

        def made(peers: int, seed: int = 0) -> bytes:
            return b"".join(network(peers, seed).body(PEERS_PATH, RECORDED_AT) or ())

        self.assertEqual(made(200), made(200))
        self.assertNotEqual(made(200), made(200, seed=1))
        for peers in (0, 1, 15, 1000, 62_000):
            found = map(astuple, msgspec.json.decode(made(peers), type=list[Identity]))
            unique = [set(values) for values in zip(*found, strict=True)]
            self.assertEqual([peers] * 4 if peers else [], [*map(len, unique)])
            for ipv6 in unique[2] if peers > 1000 else ():
                IPv6Address(ipv6)  # it is valid

    def test_groups(self) -> None:
        """Groups and peers have the same memberships."""
        for peers in (0, 30, 500):
            members = {
                (group["id"], one["id"], one["name"])
                for one in read(PEERS_PATH, RECORDED_AT, peers)
                for group in one["groups"] or ()
            }
            held = set()
            for group in read(GROUPS_PATH, RECORDED_AT, peers):
                peers_of = group["peers"] or []
                self.assertEqual(group["peers_count"], len(peers_of))
                held |= {(group["id"], one["id"], one["name"]) for one in peers_of}
            self.assertEqual(members, held)

    def test_logins(self) -> None:
        """At any hour the login of a connected peer is of the last day, where one
        expires; others stay.
        """
        recorded = read(PEERS_PATH, RECORDED_AT)
        for hour in range(0, 24, 3):
            at = RECORDED_AT + hour * 3600
            for peer, old in zip(read(PEERS_PATH, at), recorded, strict=True):
                if not peer["login_expiration_enabled"]:
                    self.assertEqual(old["last_login"], peer["last_login"])
                elif peer["connected"]:
                    age = at - seconds(peer["last_login"])
                    self.assertTrue(0 <= age < DAY, peer)


CONSUMPTION = "/api/agent-network/consumption"


class AgentsTests(SynchronousTestCase):
    def test_consumption(self) -> None:
        """Usage grows within a window, and starts at 0 in the next."""
        hour = int(RECORDED_AT) // 3600 * 3600
        recorded = bodies(0)[CONSUMPTION][0]["tokens_input"]
        for at, begin, used in (
            (hour, hour, 0),
            (hour + 600, hour, recorded * 600 // 3599),
            (hour + 3599, hour, recorded),
            (hour + 3600, hour + 3600, 0),
        ):
            [row] = (
                one
                for one in read(CONSUMPTION, at)
                if one["window_seconds"] == 3600
                and seconds(one["window_start_utc"]) == begin
            )
            self.assertEqual((used, at + 0.5), (row["tokens_input"], updated(row)))
        before = "2025-11-07T22:00:00Z"  # one window before the last of the recording
        ended = {"window_seconds": 3600, "window_start_utc": before, "tokens_input": 7}
        [row] = consumption([ended], "", hour + 600)
        self.assertEqual((7, hour - 0.5), (row["tokens_input"], updated(row)))

    def test_usage(self) -> None:
        """A month begins at its first day, and does not yet have today."""
        found = usage([{}], "start_date=2026-05-01&end_date=", 1_779_451_650)
        days = [bucket["period_start"] for bucket in found]
        self.assertEqual(["2026-05-01", "2026-05-02", "2026-05-03"], days[:3])
        self.assertEqual(("2026-05-21", 21), (days[-1], len(days)))

    def test_usage_today(self) -> None:
        """The usage of today grows from 0, and that of a past day is whole."""
        noon = 20_595 * 86400 + 43200
        for query, tokens in (("", 50), ("end_date=", 100)):
            [*_, last] = usage([{"input_tokens": 100}], query, noon)
            self.assertEqual(tokens, last["input_tokens"])

    def test_denials(self) -> None:
        """A request is denied every four minutes from minute 42 of an hour on."""
        for minute, number in ((0, 0), (41.9, 0), (42, 1), (46, 2), (60, 5)):
            found = denials({"data": [{}]}, "", int(60 * minute))
            self.assertEqual(number, found["total_records"], minute)
