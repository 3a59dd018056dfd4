"""Personal data is published only if a setting enables it, and secrets never."""

import json
from collections.abc import Iterator

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition.text import escape
from api_exporter.logs.lines import event_line
from api_exporter.logs.listing import decode_events
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import PERSONAL as PERSONS
from api_exporter.web.peer_table import Query, make_table, target_list
from tests.bodies import body, inventory

PERSONAL = {
    "peers": ("hostname", "connection_ip", "city_name", "serial_number"),
    "users": ("name", "email"),
}
"""Fields that may be published if a setting enables them."""

NEVER = {
    "setup_keys": ("key",),
    "proxy_services": ("auth",),
    "events": ("initiator_name", "initiator_email", "meta"),
}
"""Secrets, and fields that no family uses."""


def strings(value: object) -> Iterator[str]:
    """Yield all strings of a JSON value that have content."""
    if isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, str) and value not in {"", "<nil>"}:
        yield value


def texts(fields: dict[str, tuple[str, ...]]) -> set[str]:
    """Return the strings of these fields in the bodies, as on a page."""
    return {
        escape(string)
        for resource, keys in fields.items()
        for record in json.loads(body(resource))
        for key in keys
        for string in strings(record.get(key))
    }


def targets(known: Inventory) -> str:
    """Return the output of service discovery; only plain characters are escaped."""
    made = target_list(known, Query((9100,), frozenset(), "ip"), "")
    return b"".join(made.slices).decode()


class PrivacyTests(SynchronousTestCase):
    def lines(self, string: str, text: str) -> list[str]:
        return [line for line in text.split("\n") if string in line]

    def test_bodies(self) -> None:
        """Each such field occurs."""
        for fields in (PERSONAL, NEVER):
            for resource, keys in fields.items():
                for key in keys:
                    self.assertLess(1, len(texts({resource: (key,)})), key)

    def test_discovery(self) -> None:
        """Service discovery has the peers' data of the page, and no user's data."""
        public, personal = targets(inventory()), targets(inventory(personal=True))
        for string in texts(PERSONAL):
            self.assertNotIn(string, public)
        secrets = texts(NEVER) - texts(PERSONAL)
        for string in texts({"users": PERSONAL["users"]}) | secrets:
            self.assertNotIn(string, personal)
        for key in PERSONAL["peers"]:
            kind = key.removesuffix("_name")
            self.assertIn(f'"__meta_netbird_{kind}":', personal)
            self.assertNotIn(f'"__meta_netbird_{kind}":', public)

    def test_lookup(self) -> None:
        """The look-up table has no personal data by default, and no secret ever."""
        for made, strings in (
            (make_table(inventory()), texts(PERSONAL) | texts(NEVER)),
            (make_table(inventory(personal=True)), texts(NEVER) - texts(PERSONAL)),
        ):
            for form in (made.json, made.csv):
                assert form is not None
                text = b"".join(form.slices).decode()
                self.assertEqual([], [string for string in strings if string in text])
        hostnames = texts({"peers": ("hostname",)})
        self.assertEqual(set(), hostnames - {r.hostname for r in made.rows.values()})

    def test_audit_log(self) -> None:
        """The log of events has no personal data by default, and all if enabled."""
        events = decode_events(body("events")).rows
        public = b"".join(event_line(e, "", frozenset()) for e in events).decode()
        every = frozenset(PERSONS)
        everything = b"".join(event_line(e, "", every) for e in events).decode()
        for string in texts({"events": NEVER["events"]}):
            self.assertEqual([], self.lines(string, public))
            self.assertNotEqual([], self.lines(string, everything), string)
        for event in events:
            self.assertIn(f'"id":"{event.id}"', public)
