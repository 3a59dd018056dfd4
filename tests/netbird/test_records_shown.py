"""A value of another type, in each field of each record."""

import json

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.bodies import DecodeContext, DocumentDecoder, ListDecoder
from api_exporter.netbird.records import Field, LocalFlags, Peer
from api_exporter.netbird.unknown import Inspector
from api_exporter.ports import UpstreamError
from api_exporter.subjects.table import RESOURCE_BY_NAME
from tests.netbird import fields

NEITHER = [[7]]
"""A value that no field has: neither an object, nor a text, nor a list of those."""


def wrong_record(path: tuple[Field, ...]) -> object:
    """Return a record with a value of another type at the path."""
    value: object = NEITHER
    for field in reversed(path):
        is_list = value is not NEITHER and "tuple[" in str(field.content)
        value = {field.name: [value] if is_list else value}
    assert isinstance(value, dict)
    return {"id": "b", **value}


class ShownFieldsTests(SynchronousTestCase):
    maxDiff = None

    def test_table(self) -> None:
        """The table is that of the records: `python -m tests.netbird.fields`."""
        self.assertEqual(fields.table(), fields.FILE.read_text())

    def test_every_field(self) -> None:
        """Another type costs what the table says, and no other record."""
        for name, kind in fields.RECORDS.items():
            decoder = RESOURCE_BY_NAME[name].decoder
            is_object = isinstance(decoder, DocumentDecoder) or name == "agent_denials"
            for path, is_shown in fields.paths(kind):
                record = wrong_record(path)
                body = json.dumps(record if is_object else [{"id": "a"}, record])
                inspector = Inspector(name, 0)
                known = DecodeContext(inspector=inspector)
                try:
                    found = decoder.decode(body.encode(), known)
                except UpstreamError:
                    self.assertTrue(is_object, body)
                    rejected = 1
                else:
                    rejected = found.rejected
                self.assertEqual(0 if is_shown else 1, rejected, (name, body))
                types = [v for _, v in inspector.found.values if "type" in v]
                self.assertEqual(is_shown, types == ["(another type)"], (name, body))

    def test_value(self) -> None:
        """Only the shown field is unknown. The next body still shows it."""
        peers = ListDecoder(Peer)
        body = (
            b'[{"id":"a","connected":true,"city_name":{"en":"Kyoto"},"os":"Debian",'
            b'"last_login":null,"local_flags":{"remote_jobs_allowed":"yes"}}]'
        )
        expected = Peer(id="a", connected=True, os="Debian", local_flags=LocalFlags())
        before = DecodeContext()
        for _ in range(2):
            inspector = Inspector("peers", 0)
            known = DecodeContext(before.before, before.recognized, 0, inspector)
            found = peers.decode(body, known)
            self.assertEqual(((expected,), 0), (found.records, found.rejected))
            self.assertEqual(
                [
                    "city_name=(another type)",
                    "local_flags.remote_jobs_allowed=(another type)",
                ],
                inspector.found.names(),
            )
            before = DecodeContext(found.records, found.recognized)

    def test_member(self) -> None:
        """A member's name costs neither its group nor another name; its id does."""
        groups = RESOURCE_BY_NAME["groups"].decoder
        body = b'[{"id":"a"},{"id":"b","peers":[{"id":"p","name":%b},{"id":%b}]}]'
        found = groups.decode(body % (b"7", b'"q"'))
        self.assertEqual(0, found.rejected)
        members = getattr(found.records[1], "peers", ())
        self.assertEqual(
            [("p", ""), ("q", "")], [(member.id, member.name) for member in members]
        )
        self.assertEqual(1, groups.decode(body % (b'"x"', b"7")).rejected)
