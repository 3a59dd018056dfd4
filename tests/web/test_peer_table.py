"""The look-up table, beside Python's own CSV reader and `ipaddress`."""

import csv
import io
import json

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.records import PERSONAL, Group, Member, Peer, User
from api_exporter.web import peer_table
from api_exporter.web.peer_table import (
    LOOKUP_COLUMNS,
    MAX_FOUND,
    TABLE_READS,
    Table,
    address_key,
    make_table,
    name_key,
)
from tests.inventories import inventory_of

LAPTOP = Peer(
    id="p1",
    name="Laptop",
    ip="100.64.0.7",
    ipv6="fd00::7",
    dns_label="laptop.netbird.example",
    extra_dns_labels=("db.netbird.example",),
    os="Debian 12",
    user_id="u1",
    hostname="alices-laptop",
    connected=True,
)
SERVER = Peer(id="p2", name="server", ip="100.64.0.8", dns_label="Server")
SERVER = replace(SERVER, extra_dns_labels=LAPTOP.extra_dns_labels)
NETWORK = inventory_of(
    peers=(LAPTOP, SERVER),
    groups=(
        Group(id="g1", name="servers", peers=(Member(id="p2"),)),
        Group(id="g2", name="All", peers=(Member(id="p1"), Member(id="p2"))),
    ),
    users=(User(id="u1", name="Alice", email="alice@example.org"),),
)


def json_rows(table: Table) -> list[dict[str, object]]:
    assert table.json is not None
    text = b"".join(table.json.slices)
    assert len(text) == table.json.length
    rows: list[dict[str, object]] = json.loads(text)
    return rows


def csv_rows(table: Table) -> list[dict[str, str]]:
    assert table.csv is not None
    text = b"".join(table.csv.slices)
    assert len(text) == table.csv.length
    return list(csv.DictReader(io.StringIO(text.decode(), newline=""), strict=True))


class TableTests(SynchronousTestCase):
    def ids(self, table: Table, key: bytes | str) -> list[str]:
        return [row.peer_id for row in table.find(key)]

    def test_keys(self) -> None:
        """Addresses in any spelling and names with or without domain find a peer."""
        table = make_table(NETWORK)
        for ids, texts in (
            (["p1"], ("100.64.0.7", "::ffff:100.64.0.7", "::ffff:6440:7", "fd00::7")),
            (["p1"], ("FD00:0000::0:0007",)),
            ([], ("fd00::8", "100.64.0.9")),
        ):
            for text in texts:
                self.assertEqual(ids, self.ids(table, address_key(text)), text)
        for ids, names in (
            (["p1"], ("laptop.netbird.example", "LAPTOP.")),
            (["p1", "p2"], ("db", "DB.netbird.example.")),
            (["p2"], ("server",)),
            ([], ("alices-laptop", "laptop.other.example", "")),
        ):
            for name in names:
                self.assertEqual(ids, self.ids(table, name_key(name)), name)

    def test_first_words(self) -> None:
        """A peer with several names that begin alike is found once."""
        names = ("api.prod.netbird.example", "api.test.netbird.example")
        both = tuple(replace(p, extra_dns_labels=names) for p in (LAPTOP, SERVER))
        table = make_table(inventory_of(peers=both, groups=()))
        self.assertEqual(["p1", "p2"], self.ids(table, name_key("api")))

    def test_rows(self) -> None:
        """JSON and CSV have the same rows, with groups and owner."""
        table = make_table(NETWORK)
        laptop, server = json_rows(table)
        self.assertEqual(["All", "servers"], server["groups"])
        self.assertEqual(("u1", "Debian 12"), (laptop["user_id"], laptop["os"]))
        self.assertEqual(list(LOOKUP_COLUMNS), list(laptop))
        for row, line in zip((laptop, server), csv_rows(table), strict=True):
            self.assertEqual(list(row), list(line))
            for key, value in row.items():
                text = str(value)
                if isinstance(value, list):
                    text = f",{','.join(value)}," if value else ""
                elif isinstance(value, bool):
                    text = text.lower()
                self.assertEqual(text, line[key], key)

    @given(st.lists(st.text(max_size=8), max_size=8), st.text(max_size=8))
    def test_hostile(self, texts: list[str], os: str) -> None:
        """Any text is one cell of one row, in CSV too."""
        peers = tuple(
            Peer(id=f"{n}", name=text, dns_label=text, ip=text, os=os)
            for n, text in enumerate(texts)
        )
        table = make_table(inventory_of(peers=peers, groups=()))
        for row, line in zip(json_rows(table), csv_rows(table), strict=True):
            for key in ("dns_name", "address", "peer", "os"):
                self.assertIn(line[key], (row[key], f"'{row[key]}"))

    def test_formulas(self) -> None:
        """A cell that a spreadsheet would take for a formula begins with a quote."""
        texts = (
            "=1+1",
            "+1",
            "-1",
            "@a",
            "\ta",
            "\ra",
            "\uff1da",
            'a"=',
            "a-1",
            "\u00e4",
        )
        peers = tuple(Peer(id=f"{n}", name=text) for n, text in enumerate(texts))
        table = make_table(inventory_of(peers=peers, groups=()))
        self.assertEqual([*texts], [row["peer"] for row in json_rows(table)])
        cells = [row["peer"] for row in csv_rows(table)]
        self.assertEqual([f"'{text}" for text in texts[:7]] + [*texts[7:]], cells)

    def test_reads(self) -> None:
        """The table names each list from which it is made."""
        before = replace(NETWORK, personal=frozenset(PERSONAL))
        for name, records in (
            ("peers", (replace(LAPTOP, os="other"), SERVER)),
            ("groups", ()),
            ("users", (User(id="u1", name="Bob", email="bob@example.org"),)),
        ):
            after = before.replacing(name, records)
            tables = [json_rows(make_table(one)) for one in (before, after)]
            self.assertNotEqual(tables[0], tables[1], name)
            inputs_keys = [one.inputs_key(TABLE_READS) for one in (before, after)]
            self.assertNotEqual(inputs_keys[0], inputs_keys[1], name)

    def test_privacy(self) -> None:
        """Personal data is there as far as the settings allow; so are peers."""
        secret = {"alice@example.org", "Alice", "alices-laptop"}
        for kinds, shown in (
            (frozenset[str](), set[str]()),
            (frozenset({"email"}), {"alice@example.org"}),
            (frozenset({"hostname", "name"}), {"Alice", "alices-laptop"}),
            (frozenset(PERSONAL), secret),
        ):
            table = make_table(replace(NETWORK, personal=kinds))
            for text in (str(json_rows(table)), str(csv_rows(table))):
                self.assertEqual(shown, {one for one in secret if one in text})
        for detail, ids in (({"servers"}, {"p2"}), (set[str](), set[str]())):
            table = make_table(replace(NETWORK, detail=frozenset(detail)))
            self.assertEqual(ids, {row["peer_id"] for row in json_rows(table)})
            self.assertEqual(len(ids), len(csv_rows(table)))
            self.assertEqual([], self.ids(table, address_key("100.64.0.7")))

    def test_without_user(self) -> None:
        """A peer without a user, or with one that is unknown, has no name of one."""
        lost = replace(SERVER, user_id="gone")
        network = replace(NETWORK, personal=frozenset(PERSONAL))
        for peer in (SERVER, lost):
            [row] = json_rows(make_table(network.replacing("peers", (peer,))))
            self.assertEqual(["", ""], [row["user_name"], row["user_email"]])

    def test_bounds(self) -> None:
        """Peers with the same name are limited; a table that is too long is None."""
        peers = tuple(Peer(id=f"{n}", dns_label="a.b") for n in range(5_000))
        network = inventory_of(peers=peers, groups=())
        whole = make_table(network)
        self.assertEqual(5_000, len(csv_rows(whole)))
        for form in (whole.json, whole.csv):
            assert form is not None
            for limit, is_known in ((form.length, True), (form.length - 1, False)):
                self.patch(peer_table, "MAX_TABLE_BYTES", limit)
                made = make_table(network)
                found = made.json if form is whole.json else made.csv
                self.assertEqual(is_known, found is not None)
        self.patch(peer_table, "MAX_TABLE_BYTES", 100_000)
        long = make_table(network)
        self.assertEqual((None, None), (long.json, long.csv))
        for table in (whole, long):
            for name in ("a", "a.b"):
                self.assertEqual(MAX_FOUND, len(table.find(name)))
