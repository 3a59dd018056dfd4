"""Bodies of the Agent Network, with hundreds of thousands of rows and with prompts."""

import json
import tracemalloc

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.bodies import DecodeContext
from api_exporter.subjects.agent_network.resources import (
    Consumption,
    ConsumptionDecoder,
    Denials,
    DenialsDecoder,
    Usage,
    UsageDecoder,
    UsagePeriod,
    denials_query,
    next_midnight,
    usage_query,
)
from api_exporter.subjects.table import MAX_BODY_BYTES, RESOURCE_BY_NAME

NOON = 1_795_348_830.0
"""2026-11-22, 12:00:30 UTC."""

AT_NOON = DecodeContext(now=NOON)

CANARY = "a prompt that nobody may see"

ROW = (
    b'{"cost_usd":0.4,"dimension_id":"%d","dimension_kind":"user","tokens_input":49000,'
    b'"tokens_output":1000,"updated_at":"2026-11-22T11:58:33.749795Z",'
    b'"window_seconds":3600,"window_start_utc":"%s"}'
)


class MidnightTests(SynchronousTestCase):
    def test_next(self) -> None:
        """A day ends at the next UTC midnight, even a day that begins now."""
        end = next_midnight(NOON)
        self.assertEqual(NOON - 30 + 12 * 3600, end)
        self.assertEqual(end + 24 * 3600, next_midnight(end))


class QueryTests(SynchronousTestCase):
    def test_usage(self) -> None:
        """The earlier days are requested once a day, then today; the first has none."""
        earlier = UsagePeriod(first="2026-11-01", last="2026-11-21", buckets=())
        known = [Usage(earlier=earlier)]
        first = NOON + 9 * 86400
        for usages, now, period in (
            ([], NOON, "2026-11-01T00:00:00Z&end_date=2026-11-21T23:59:59.999999999Z"),
            (known, NOON, "2026-11-22T00:00:00Z"),
            (
                *(known, NOON + 86400),
                "2026-11-01T00:00:00Z&end_date=2026-11-22T23:59:59.999999999Z",
            ),
            (known, first, "2026-12-01T00:00:00Z"),
        ):
            expected = f"?granularity=day&start_date={period}"
            self.assertEqual(expected, usage_query(usages, now))

    def test_denials(self) -> None:
        """Denials of today are requested with one row."""
        expected = "?decision=deny&page_size=1&start_date=2026-11-22T00:00:00Z"
        self.assertEqual(expected, denials_query(NOON))


class ConsumptionTests(SynchronousTestCase):
    def test_memory(self) -> None:
        """50,000 rows of past windows take hardly any memory beside their body."""
        # All have one length, for which the record cache looks up every record.
        pad = -len(ROW % (100_000, b"2026-11-22T11:00:00Z")) % 16
        row = ROW.replace(b"%d", b"%d" + b"x" * pad)
        past = [row % (n, b"2026-11-22T11:00:00Z") for n in range(100_000, 150_000)]
        body = b"[" + b",".join([*past, ROW % (1, b"2026-11-22T12:00:00Z")]) + b"]"
        del past
        tracemalloc.start()
        try:
            decoded = ConsumptionDecoder().decode(body, AT_NOON)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        [found] = decoded.records
        assert isinstance(found, Consumption)
        self.assertEqual((50_001, 1), (found.rows, len(found.current)))
        self.assertEqual(50_001, 1 + decoded.unread_count)
        self.assertLess(peak, 4 * 1024 * 1024)

    def test_longest(self) -> None:
        """A body of more than 32 MiB is refused before it is decoded."""
        path = RESOURCE_BY_NAME["agent_consumption"].path
        self.assertEqual({path: 32 * 1024 * 1024}, MAX_BODY_BYTES)


class UsageTests(SynchronousTestCase):
    def test_number(self) -> None:
        """The number of records is that of the days with requests, which may be 0."""
        for days in (0, 1, 12):
            buckets = [{"period_start": f"2026-11-{n:02}"} for n in range(1, 1 + days)]
            decoded = UsageDecoder().decode(json.dumps(buckets).encode(), AT_NOON)
            self.assertEqual(days, len(decoded.records) + decoded.unread_count)


class DenialsTests(SynchronousTestCase):
    def test_number(self) -> None:
        """Only the number is read, with any prompt."""
        for prompt in (CANARY, '"total_records":9', "\ud83d", "x" * 3_000_000, None):
            row = {"request_prompt": prompt, "total_records": 7}
            text = json.dumps({"data": [row], "total_records": 3}).encode()
            decoded = DenialsDecoder().decode(text, AT_NOON)
            day = Denials(day="2026-11-22", requests=3)
            self.assertEqual((day,), decoded.records)
            self.assertNotIn(CANARY, repr(decoded))

    def test_not_utf8(self) -> None:
        """Invalid UTF-8 does not matter."""
        text = b'{"data":[{"request_prompt":"\xff\xfe"}],"total_records":3}'
        [found] = DenialsDecoder().decode(text, AT_NOON).records
        self.assertEqual(Denials(day="2026-11-22", requests=3), found)
