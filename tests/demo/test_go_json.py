import json
from datetime import timedelta, timezone

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.demo.go_json import array, encode, rfc3339, xid


class WireTests(SynchronousTestCase):
    def test_go_style(self) -> None:
        """Keys are sorted, without spaces, and HTML characters are escaped."""
        self.assertEqual(
            b'{"a":"R\\u0026D \\u003ccore\\u003e","b":[null,true,"\xc3\xa9"]}',
            encode({"b": [None, True, "é"], "a": "R&D <core>"}),
        )

    def test_array(self) -> None:
        """Arrays of any length are complete, in pieces of 100 records."""
        for length in (0, 1, 99, 100, 101, 250):
            pieces = list(array(b"%d" % number for number in range(length)))
            self.assertEqual(list(range(length)), json.loads(b"".join(pieces)))
            self.assertEqual(-(-length // 100) + 1, len(pieces))

    def test_instants(self) -> None:
        """Times have a fraction and an offset, or a Z."""
        self.assertEqual("2026-08-22T19:10:00Z", rfc3339(1_787_425_800))
        self.assertEqual(
            "2026-08-22T21:10:00.123456789+02:00",
            rfc3339(1_787_425_800, ".123456789", timezone(timedelta(hours=2))),
        )

    def test_ids(self) -> None:
        self.assertEqual("d2p0000000000000002a", xid("d2p", 42))
