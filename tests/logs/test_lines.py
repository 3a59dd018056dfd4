"""The lines of rows: their fields, and personal data that they must not contain."""

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.logs.lines import LINE_START, event_line, row_line
from api_exporter.logs.listing import LogRow, event_key
from api_exporter.netbird.records import PERSONAL
from tests.bodies import bodies, body
from tests.logs import finish
from tests.logs.paging import START, row

RECORDED = Path(__file__).parent / "recorded.txt"

ALL = frozenset(PERSONAL)
NONE = frozenset[str]()

PEER = {
    "created_at": "2026-08-23T19:10:31.007225Z",
    "fqdn": "peer-00253.netbird.selfhosted",
    "ip": "100.124.1.7",
    "ipv6": "fd37:ef80:55d7:570f:a681:e5c7:6f61:f5d4",
    "location_country_code": "US",
    "name": "peer-00253",
}
PLACE = {
    "location_city_name": "New York",
    "location_connection_ip": "203.0.113.3",
    "location_geo_name_id": "5.128581e+06",
}
PERSON = {"email": "human2@example.test", "username": "Human 2", "user_name": "Human"}


def event(code: str, meta: Mapping[str, object], **fields: object) -> dict[str, object]:
    """Return an event as NetBird lists it."""
    return {
        "activity": "Something",
        "activity_code": code,
        "id": "915",
        "initiator_email": "admin@netbird.test",
        "initiator_id": "CiQyMzAy",
        "initiator_name": "E2E Admin",
        "meta": meta,
        "target_id": "seed0000000000000253",
        "timestamp": "2026-11-21T19:25:36.006079808Z",
        **fields,
    }


def parsed(
    fields: object, personal: frozenset[str] = NONE, account: str = ""
) -> dict[str, object]:
    """Return the fields of an event's line."""
    raw = msgspec.Raw(json.dumps(fields).encode())
    text = event_line(LogRow("915", "", raw), account, personal)
    found: dict[str, object] = json.loads(text)
    return found


def request(fields: object, *kinds: str) -> dict[str, object]:
    """Return the fields of the line of an access log row."""
    raw = msgspec.Raw(json.dumps(fields).encode())
    text = row_line(LogRow("x", "", raw), "acme", frozenset(kinds))
    found: dict[str, object] = json.loads(text)
    return found


class RequestTests(SynchronousTestCase):
    sent: Mapping[str, object] = {
        **row(7, START, status_code=403, reason="Authentication failed"),
        "user_id": "auth0|ann",
        "auth_method_used": "crowdsec_ban",
        "metadata": {"crowdsec_verdict": "ban", "email": "ann@example.test"},
    }
    personal = (
        *("source_ip", "user_id", "path", "host", "city_name", "subdivision_code"),
    )

    def test_whole(self) -> None:
        """With `access_log` the line is the whole row after the account's name."""
        sent = {**self.sent, "of tomorrow": [{"a": 1}]}
        self.assertEqual({"account": "acme", **sent}, request(sent, "access_log"))
        self.assertEqual({"account": "acme", **sent}, request(sent, *PERSONAL))

    def test_public(self) -> None:
        """Without `access_log` the line has no user, address, path or host."""
        for kinds in ((), tuple(ALL - {"access_log"})):
            found = request(self.sent, *kinds)
            self.assertEqual(
                (self.sent.keys() | {"account"}) - set(self.personal), found.keys()
            )
            self.assertEqual({"crowdsec_verdict": "ban"}, found["metadata"])

    def test_unknown(self) -> None:
        """Unknown values count as personal data, at any depth."""
        for hidden in (
            "Ann",
            ["Ann"],
            {"a": "Ann"},
            {"crowdsec_verdict": {"a": "Ann"}},
        ):
            sent = {**self.sent, "of tomorrow": hidden, "metadata": hidden}
            sent["method"] = sent["reason"] = hidden if hidden != "Ann" else "GET"
            self.assertNotIn("Ann", json.dumps(request(sent)))

    def test_recorded(self) -> None:
        """Lines of recorded rows contain no personal data."""
        for page in bodies(RECORDED.read_bytes()).values():
            for sent in json.loads(page)["data"]:
                found = json.dumps(request(sent))
                for name in self.personal:
                    value = sent.get(name, "")
                    self.assertNotIn(f'"{name}"', found)
                    if len(value) > 2 and value != "Berlin/":
                        self.assertNotIn(f'"{value}"', found)


class LineTests(SynchronousTestCase):
    def test_whole(self) -> None:
        """With all kinds the line is the whole event after the account's name."""
        sent = event(
            "user.block", {**PERSON, "of tomorrow": "x"}, more=[1, {"a": None}]
        )
        self.assertEqual({"account": "acme", **sent}, parsed(sent, ALL, "acme"))
        for one in finish(body("events")):
            text = event_line(one, "", ALL)
            self.assertEqual(1, text.count(b"\n"))
            self.assertTrue(text.startswith(LINE_START))
            sent = json.loads(bytes(one.raw))
            self.assertEqual({"account": "", **sent}, json.loads(text))

    def test_people(self) -> None:
        """Names and addresses of persons are left out."""
        found = parsed(event("user.block", {**PERSON, "name": "Ann", "role": "admin"}))
        self.assertEqual({"role": "admin"}, found["meta"])
        expected = event("user.block", {}).keys() - {
            "initiator_name",
            "initiator_email",
        }
        self.assertEqual(expected | {"account"}, found.keys())

    def test_places(self) -> None:
        """A peer's location is left out."""
        self.assertEqual(PEER, parsed(event("user.peer.delete", PEER | PLACE))["meta"])

    def test_addresses(self) -> None:
        """Addresses of NetBird networks are kept, others only with `connection_ip`."""
        for address, own in (
            ("100.64.0.1", True),
            ("100.127.255.254", True),
            ("fd37:ef80:55d7:570f:a681:e5c7:6f61:f5d4", True),
            ("100.128.0.1", False),
            ("203.0.113.3", False),
            ("2001:db8::1", False),
            ("::ffff:203.0.113.3", False),
            ("of tomorrow", False),
        ):
            for name in ("ip", "ipv6", "peer_ip"):
                sent = event("user.peer.login", {name: address})
                meta = {name: address} if own else {}
                self.assertEqual(meta, parsed(sent)["meta"], address)
                allowed = parsed(sent, frozenset({"connection_ip"}))
                self.assertEqual({name: address}, allowed["meta"])

    def test_kinds(self) -> None:
        """Each kind of personal data is kept if it is allowed."""
        sent = event("user.role.update", {**PERSON, **PLACE, "name": "Ann"})
        kinds = {
            "email": {"email"},
            "name": {"name", "username", "user_name"},
            "connection_ip": {"location_connection_ip"},
            "city": {"location_city_name", "location_geo_name_id"},
        }
        for kind, fields in kinds.items():
            found = parsed(sent, frozenset({kind}))["meta"]
            assert isinstance(found, dict)
            self.assertEqual(fields, found.keys(), kind)

    def test_names_of_things(self) -> None:
        """Names of groups are kept; names of service users and persons are left out."""
        for code, names in (
            ("group.update", ["name", "new_name", "old_name"]),
            ("service.create", ["name", "new_name", "old_name"]),
            ("service.user.create", []),
            ("user.invite", []),
            ("brand.new.code", []),
        ):
            sent = event(code, {"name": "a", "old_name": "b", "new_name": "c"})
            found = parsed(sent)["meta"]
            assert isinstance(found, dict)
            self.assertEqual(names, sorted(found), code)

    def test_setup_key(self) -> None:
        """A setup key is a secret: it is left out, although NetBird masks it."""
        sent = event("setupkey.add", {"key": "7B68E****", "name": "guests"})
        for personal in (NONE, ALL):
            self.assertEqual({"name": "guests"}, parsed(sent, personal)["meta"])

    def test_unknown(self) -> None:
        """Unknown fields are left out unless all kinds are allowed."""
        sent = event("group.add", {"nickname": "Ann"}, phone="555")
        found = parsed(sent, ALL - {"city"})
        self.assertEqual({}, found["meta"])
        self.assertNotIn("phone", found)

    def test_nested(self) -> None:
        """Lists and objects in known fields are left out unless all are allowed."""
        ann: tuple[object, ...] = (
            "Ann",
            ["Ann"],
            {"name": "Ann"},
            [[{"group": "Ann"}]],
        )
        for hidden in ann[1:]:
            sent = event("group.add", {"name": "a", "group": hidden, "email": hidden})
            sent["activity"] = sent["target_id"] = hidden
            for personal in (NONE, ALL - {"city"}):
                self.assertNotIn("Ann", json.dumps(parsed(sent, personal)))
            self.assertEqual({"name": "a"}, parsed(sent)["meta"])
            self.assertEqual({"account": "", **sent}, parsed(sent, ALL))
        for hidden in ann:
            sent = {**event("group.add", {}), "meta": hidden}
            if not isinstance(hidden, dict):
                self.assertIsNone(parsed(sent, ALL - {"city"})["meta"])
        sent = {**event("user.join", {}), "meta": {"name": "Ann"}, "activity_code": []}
        self.assertEqual({}, parsed(sent)["meta"])

    def test_deep(self) -> None:
        """A deeply nested event has no line, and raises no error."""
        for depth in range(900, 1100):
            raw = b'{"id":"1","meta":{"a":' + b"[" * depth + b"]" * depth + b"}}"
            self.assertIn(
                event_line(LogRow("1", "", msgspec.Raw(raw)), "", ALL)[:3],
                (b'{"a', b""),
            )

    def test_strange(self) -> None:
        """Line separators in fields are escaped, and the account cannot be forged."""
        sent = {**event("a\u2028b\x85\n", {}), "meta": None, "account": "forged"}
        found = parsed(sent, ALL, "acme")
        self.assertEqual("acme", found["account"])
        self.assertEqual("a\u2028b\x85\n", found["activity_code"])
        self.assertIsNone(parsed(sent)["meta"])
        raw = msgspec.Raw(json.dumps(sent, ensure_ascii=False).encode())
        text = event_line(LogRow("1", "", raw), "", ALL).decode()
        self.assertEqual(1, len(text.splitlines()))

    def test_bytes(self) -> None:
        """Invalid UTF-8 is replaced; a value that is not an object has no line."""
        bad = event_line(
            LogRow("1", "", msgspec.Raw(b'{"id":"1","activity":"a\xff"}')), "", ALL
        )
        self.assertEqual("a\N{REPLACEMENT CHARACTER}", json.loads(bad)["activity"])
        self.assertEqual(b"", event_line(LogRow("1", "", msgspec.Raw(b"3")), "", ALL))

    def test_numbers(self) -> None:
        """Numbers stay as written; a number out of range is left out."""
        for number in ("1.10", "-0.0", "1" * 30, "18446744073709551616", "1E+400"):
            raw = f'{{"id":"1","meta":{{"a":{number}}}}}'.encode()
            text = event_line(LogRow("1", "", msgspec.Raw(raw)), "", ALL)
            self.assertEqual(b'{"account":"",' + raw[1:] + b"\n", text)
        for number in ("9" * 5000, "1e99999999999999999999"):
            raw = f'{{"meta":{{"a":{number}}},"id":"1"}}'.encode()
            text = event_line(LogRow("1", "", msgspec.Raw(raw)), "", ALL)
            self.assertEqual(b'{"account":"","id":"1"}\n', text)

    def test_key(self) -> None:
        """The key of an event is read from its line; other lines have no key."""
        text = event_line(
            LogRow("1", "", msgspec.Raw(b'{"id":"7","timestamp":"x"}')), "", NONE
        )
        self.assertEqual(("7", "x"), event_key(text))
        self.assertEqual(("9" * 19, ""), event_key(b'{"id":"%b"}' % (b"9" * 19)))
        for other in (
            b'{"id":"%b"}' % (b"9" * 20),
            b"",
            b"{",
            b"[]",
            b'{"id":"x"}',
            b"{}",
            b"\0\0\0",
            b'{"id":"7"',
        ):
            self.assertIsNone(event_key(other))
