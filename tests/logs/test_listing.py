"""The decoding of audit events and of pages of the access log."""

import json

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.logs.lines import event_line
from api_exporter.logs.listing import decode_page, event_key
from api_exporter.ports import UpstreamError
from api_exporter.subjects.reverse_proxy import PROXY_LOG
from tests.logs import body, finish, listing


class ListingTests(SynchronousTestCase):
    def test_left_out(self) -> None:
        """Events without a number as id, and duplicates, are left out."""
        ids = ["7", "x", "", "٣", "-1", "1" * 30, 5.5, -5, True, [6], None, "7"]
        found = finish(json.dumps([{"id": one} for one in ids] + [3]).encode())
        self.assertEqual([("7", "")], [(event.id, event.timestamp) for event in found])

    def test_unreadable(self) -> None:
        """An event without an id is counted as unreadable."""
        text = b",".join((body([9])[1:-1], b'{"id":"x"}', body(range(1, 9))[1:]))
        found = listing(b"[" + text)
        self.assertEqual(list(range(1, 10)), [event.number for event in found.rows])
        self.assertEqual(1, len(found.unreadable))

    def test_half_characters(self) -> None:
        """A lone surrogate is replaced; the event is kept."""
        sent = (
            rb'[{"id":"1"},{"id":"2","activity_code":"a\ud800","timestamp":"\udc00"}]'
        )
        one, two = finish(sent)
        self.assertEqual(
            [("1", ""), ("2", "\ufffd")], [(e.id, e.timestamp) for e in (one, two)]
        )
        self.assertIn("a\ufffd", event_line(two, "", frozenset()).decode())

    def test_strange(self) -> None:
        """An event with a number as id, or with any timestamp, is kept."""
        stamps = [None, 3, {"a": "b"}, "x" * 99, "y"]
        records = [{"id": n, "timestamp": s} for n, s in enumerate(stamps)]
        found = finish(json.dumps(records).encode())
        self.assertEqual(["", "", "", "x" * 64, "y"], [e.timestamp for e in found])
        for event in found:
            text = event_line(event, "", frozenset({"email"}))
            self.assertEqual((event.id, event.timestamp), event_key(text))

    def test_no_list(self) -> None:
        """A body that is not a list is an UpstreamError."""
        self.assertRaises(UpstreamError, finish, b'{"message": "no"}')


class MoreTests(SynchronousTestCase):
    def test_more(self) -> None:
        """The rows on following pages are counted; without a total, the maximum."""
        page, whole = b'{"data":[%s],%s}', b'"page_size":100,"total_pages":3'
        row = b'{"id":"a","timestamp":"2026-11-21T19:00:00Z"}'
        for more, expected in (
            (whole, 200),
            (whole + b',"page":2', 100),
            (whole + b',"page":4', 0),
            (whole + b',"page_size":-1', 0),
            (whole + b',"total_records":250', 150),
            (whole + b',"total_records":50', 1),
            (whole + b',"page":3,"total_records":250', 0),
            (b'"total_pages":3', 0),
            (b'"page_size":100,"page":0', 0),
        ):
            found = decode_page(page % (row, more))
            self.assertEqual(expected, found.following_count)
            self.assertEqual(["a"], [row.id for row in found.rows])

    def test_no_page(self) -> None:
        """The refresh reports each body that the journal cannot read."""
        for page in (
            b"{}",
            b"[]",
            b'{"data":{}}',
            b'{"data":[],"page":"1"}',
            b'{"data":[],"total_pages":null}',
            b'{"data":[],"total_records":1.5}',
        ):
            for decode in (decode_page, PROXY_LOG.decoder.decode):
                self.assertRaises(UpstreamError, decode, page)
