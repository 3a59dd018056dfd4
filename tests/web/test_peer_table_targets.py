"""Targets and labels, in the form that Prometheus accepts."""

import json
import re
from collections.abc import Iterable
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition.pages import FIRST_BYTES, Payload
from api_exporter.netbird.bodies import ListDecoder
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import PERSONAL, Group, Member, NetBirdAccount, Peer
from api_exporter.web import peer_table
from api_exporter.web.peer_table import Query, line, target_list
from tests.inventories import inventory_of
from tests.netbird.test_bodies import decode
from tools.pure import ROOT

META = "__meta_netbird_"
EVERYTHING = Peer(
    id="p1",
    name='it\'s "mine" \\ \u2028 \N{GRINNING FACE}',
    dns_label="mine.netbird.cloud",
    hostname="host",
    extra_dns_labels=("www.netbird.cloud", "db.netbird.cloud"),
    ip="100.64.0.7",
    ipv6="fd00::7",
    connection_ip="203.0.113.7",
    country_code="DE",
    city_name="Berlin",
    serial_number="C02",
    os="Debian 12",
    kernel_version="6.1",
    version="0.78.0",
    ui_version="0.77.0",
    user_id="u",
    connected=True,
    ssh_enabled=True,
    ephemeral=True,
    login_expired=True,
    approval_required=True,
)
ALL_LABELS = {
    "account_id": "acc",
    "peer_id": "p1",
    "peer": EVERYTHING.name,
    "dns_name": "mine.netbird.cloud",
    "extra_dns_names": ",db.netbird.cloud,www.netbird.cloud,",
    "ip": "100.64.0.7",
    "ipv6": "fd00::7",
    "os": "Debian 12",
    "kernel_version": "6.1",
    "version": "0.78.0",
    "ui_version": "0.77.0",
    "connected": "true",
    "login_expired": "true",
    "approval_required": "true",
    "ssh_enabled": "true",
    "ephemeral": "true",
    "user_id": "u",
    "country": "DE",
    "groups": ",All,servers,",
    "group_ids": ",g0,g1,",
}
ALL = Query((9100,), frozenset(), "ip")

T = TypeVar("T")


def known(
    peers: Iterable[Peer],
    groups: Iterable[Group] = (),
    *,
    accounts: tuple[NetBirdAccount, ...] | None = (NetBirdAccount(id="acc"),),
    personal: frozenset[str] = frozenset(),
) -> Inventory:
    return inventory_of(
        peers=tuple(peers), groups=tuple(groups), accounts=accounts, personal=personal
    )


def group(id_: str, name: str, *members: str) -> Group:
    return Group(id=id_, name=name, peers=tuple(Member(id=m) for m in members))


def made(inventory: Inventory, query: Query = ALL, account: str = "") -> Payload:
    return target_list(inventory, query, account)


def listed(
    inventory: Inventory, query: Query = ALL, account: str = ""
) -> list[tuple[str, dict[str, str]]]:
    """Return targets and labels without their prefix, as strictly checked as in Go."""
    payload = made(inventory, query, account)
    text = b"".join(payload.slices)
    assert len(text) == payload.length
    found = []
    for entry in json.loads(text):
        assert entry.keys() == {"targets", "labels"}, entry
        [target] = entry["targets"]
        assert isinstance(target, str)
        for name, value in entry["labels"].items():
            assert re.fullmatch(r"__meta_netbird_[a-z0-9_]+", name), name
            assert value and isinstance(value, str), name
        labels = {k.removeprefix(META): v for k, v in entry["labels"].items()}
        found.append((target, labels))
    return found


def addresses(inventory: Inventory, query: Query) -> list[str]:
    return [target for target, _ in listed(inventory, query)]


class LabelTests(SynchronousTestCase):
    groups = (group("g1", "servers", "p1", "p1", "gone"), group("g0", "All", "p1"))

    def test_everything(self) -> None:
        """All allowed properties are labels, and the account's name if it has one."""
        inventory = known([EVERYTHING], self.groups)
        self.assertEqual([("100.64.0.7:9100", ALL_LABELS)], listed(inventory))
        [(_, labels)] = listed(inventory, account="acme")
        self.assertEqual({"account": "acme", **ALL_LABELS}, labels)

    def test_personal(self) -> None:
        """Each kind of personal data has its permission; `<nil>` is left out."""
        home = {"hostname": "host", "city": "Berlin"}
        every = {**home, "connection_ip": "203.0.113.7", "serial_number": "C02"}
        for kinds, allowed in (
            (frozenset(PERSONAL), every),
            (frozenset({"hostname", "city"}), home),
            (frozenset({"email"}), {}),
        ):
            [(_, labels)] = listed(known([EVERYTHING], self.groups, personal=kinds))
            self.assertEqual({**ALL_LABELS, **allowed}, labels)
        peer = Peer(id="p", ip="100.64.0.1", connection_ip="<nil>")
        [(_, labels)] = listed(known([peer], personal=frozenset(PERSONAL)))
        self.assertNotIn("connection_ip", labels)

    def test_empty(self) -> None:
        """Empty properties are left out, false ones are not."""
        [(_, labels)] = listed(known([Peer(id="p", ip="100.64.0.1")], accounts=None))
        no = ("connected", "login_expired", "approval_required", "ssh_enabled")
        expected = {"peer_id": "p", "ip": "100.64.0.1", **dict.fromkeys(no, "false")}
        self.assertEqual({**expected, "ephemeral": "false"}, labels)

    def test_lists(self) -> None:
        """Lists are sorted, wrapped in commas, and have no duplicates."""
        groups = (
            group("g2", "z", "p1"),
            group("g1", "same", "p1"),
            group("g0", "same", "p1"),
            group("g3", "", "p1"),
            group("g4", "with, comma", "p1"),
            group("g5", "other", "p2"),
        )
        [(_, labels)] = listed(known([EVERYTHING], groups))
        self.assertEqual(",same,with, comma,z,", labels["groups"])
        self.assertEqual(",g0,g1,g2,g3,g4,", labels["group_ids"])

    def test_control_characters(self) -> None:
        """Control characters, such as line breaks, become spaces: `.` matches them."""
        peer = Peer(
            id="p1", ip="1", name="a\nb\tc\x7fd\x85", os="x\r\ny", city_name="\v"
        )
        groups = (group("g1", "ser\nvers", "p1"), group("g0", "All", "p1"))
        [(_, labels)] = listed(known([peer], groups, personal=frozenset({"city"})))
        self.assertEqual("a b c d ", labels["peer"])
        self.assertEqual(("x  y", " "), (labels["os"], labels["city"]))
        self.assertEqual(",All,ser vers,", labels["groups"])
        self.assertRegex(labels["groups"], r"^.*,All,.*$")
        asked = Query((1,), frozenset({"ser\nvers"}), "ip")
        self.assertEqual(["1:1"], addresses(known([peer], groups), asked))

    def test_documented(self) -> None:
        """The documentation's table has every label, in this order."""
        text = (ROOT / "docs/service-discovery.md").read_text(encoding="utf-8")
        cells = re.findall(r"^\| (`__meta_netbird_.*?) \| ", text, re.MULTILINE)
        rows = re.findall(r"\w+", " ".join(cells))
        names = [field.encode_name for field in fields(peer_table.TargetLabels)]
        self.assertEqual(names, rows)


class TargetTests(SynchronousTestCase):
    peers = (
        Peer(id="a", name="1", ip="100.64.0.1", ipv6="fd00::1", dns_label="a.x"),
        Peer(id="b", name="g1", ip="100.64.0.2", dns_label="b.x", connected=True),
        Peer(id="c", ip="100.64.0.3", ipv6="fd00::3", login_expired=True),
        Peer(id="d", ip="", approval_required=True),
    )
    groups = (
        group("g1", "servers", "a"),
        group("g2", "servers", "b"),
        group("g3", "g1", "c", "e"),
        Group(id="g4", name="none"),
    )

    def of(
        self, *groups: str, address: str = "ip", ports: tuple[int, ...] = (1,)
    ) -> str:
        query = Query(ports, frozenset(groups), address)
        return " ".join(addresses(known(self.peers, self.groups), query))

    def test_all(self) -> None:
        """Each peer with such an address is a target, in order; IPv6 in brackets."""
        for expected, found in (
            ("100.64.0.1:1 100.64.0.2:1 100.64.0.3:1", self.of()),
            (
                "100.64.0.1:1 100.64.0.1:65535 100.64.0.2:1 100.64.0.2:65535",
                self.of("servers", ports=(1, 65535)),
            ),
            ("[fd00::1]:1 [fd00::3]:1", self.of(address="ipv6")),
            ("a.x:1 b.x:1", self.of(address="dns")),
        ):
            self.assertEqual(expected, found)

    def test_groups(self) -> None:
        """Groups are selected by id or name; several groups are combined."""
        for groups, expected in (
            (("servers",), "100.64.0.1:1 100.64.0.2:1"),
            (("g2",), "100.64.0.2:1"),
            (("g1",), "100.64.0.1:1 100.64.0.3:1"),
            (("g1", "servers"), "100.64.0.1:1 100.64.0.2:1 100.64.0.3:1"),
            (("g4",), ""),
            (("Servers",), ""),
            (("unknown",), ""),
            (("unknown", "g2"), "100.64.0.2:1"),
        ):
            self.assertEqual(expected, self.of(*groups), groups)

    def test_other_groups(self) -> None:
        """A peer selected by one group has its other groups as labels too."""
        groups = (group("g1", "servers", "a"), group("g2", "prod", "a", "b"))
        query = Query((1,), frozenset({"servers"}), "ip")
        [(_, labels)] = listed(known(self.peers, groups), query)
        self.assertEqual(",prod,servers,", labels["groups"])


class LongTests(SynchronousTestCase):
    def test_slices(self) -> None:
        """A long response has slices, of which only the first is short."""
        network = known(
            Peer(id=f"p{i}", name="n" * 100, ip=f"10.0.{i >> 8}.{i & 255}")
            for i in range(5000)
        )
        first, *others, last = map(len, made(network).slices)
        self.assertLess(first, 2 * FIRST_BYTES)
        self.assertGreater(min(others), 2**19 - 1)
        self.assertGreater(last, 0)
        self.assertEqual(5000, len(listed(network)))


class PropertyTests(SynchronousTestCase):
    @given(
        st.lists(
            st.fixed_dictionaries(
                {
                    "id": st.text(),
                    "name": st.text(),
                    "ip": st.text(),
                    "extra_dns_labels": st.lists(st.text()),
                    "os": st.text(),
                }
            ),
            max_size=3,
        )
    )
    def test_any_text(self, peers: list[dict[str, str]]) -> None:
        """Any NetBird data gives valid JSON, with each name in one line."""
        decoded = decode(ListDecoder(Peer), json.dumps(peers).encode())
        records = [record for record in decoded.records if isinstance(record, Peer)]
        found = listed(known(records))
        self.assertEqual(
            [(p.id, line(p.name), line(p.os)) for p in records if p.ip],
            [(x["peer_id"], x.get("peer", ""), x.get("os", "")) for _, x in found],
        )
