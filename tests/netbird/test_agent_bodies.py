"""Bodies of the Agent Network, with hundreds of thousands of rows and with prompts."""

import json
import tracemalloc

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.agent_bodies import (
    Consumption,
    ConsumptionDecoder,
    Denials,
    DenialsDecoder,
    next_midnight,
)
from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.resources import MAX_BODY_BYTES, RESOURCE_BY_NAME
from api_exporter.ports import UpstreamError

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


class ConsumptionTests(SynchronousTestCase):
    def test_memory(self) -> None:
        """120,000 rows of past windows take hardly any memory beside their body."""
        # All have one length, for which the record cache looks up every record.
        pad = -len(ROW % (100_000, b"2026-11-22T11:00:00Z")) % 16
        row = ROW.replace(b"%d", b"%d" + b"x" * pad)
        past = [row % (n, b"2026-11-22T11:00:00Z") for n in range(100_000, 220_000)]
        body = b"[" + b",".join([*past, ROW % (1, b"2026-11-22T12:00:00Z")]) + b"]"
        del past
        self.assertLess(
            len(body), MAX_BODY_BYTES[RESOURCE_BY_NAME["agent_consumption"].path]
        )
        tracemalloc.start()
        try:
            decoded = ConsumptionDecoder().decode(body, AT_NOON)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        [found] = decoded.records
        assert isinstance(found, Consumption)
        self.assertEqual((120_001, 1), (found.rows, len(found.current)))
        self.assertEqual(120_001, 1 + decoded.unread_count)
        self.assertLess(peak, 4 * 1024 * 1024)

    def test_windows(self) -> None:
        """Rows of the current window are kept, of two rows with one key the last."""
        rows = [
            {
                "dimension_id": "a",
                "window_seconds": 60,
                "window_start_utc": start,
                **more,
            }
            for start, more in (
                ("2026-11-22T11:59:00Z", {}),
                ("2026-11-22T12:00:00Z", {"tokens_input": 1}),
                ("2026-11-22T13:00:00+01:00", {"tokens_input": 2}),
                ("2026-11-22T12:01:00Z", {}),
                ("2026-11-22T12:00:10Z", {}),
                ("0001-01-01T00:00:00Z", {}),
            )
        ]
        rows += [{"window_seconds": 0}, {"window_seconds": -60}, {"cost_usd": "x"}]
        decoded = ConsumptionDecoder().decode(json.dumps(rows).encode(), AT_NOON)
        [found] = decoded.records
        assert isinstance(found, Consumption)
        self.assertEqual([2], [row.tokens_input for row in found.current])
        self.assertEqual((8, 1), (found.rows, decoded.rejected))

    def test_null(self) -> None:
        [found] = ConsumptionDecoder().decode(b"null", AT_NOON).records
        self.assertEqual(Consumption(rows=0), found)


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

    def test_error(self) -> None:
        """No error repeats the body."""
        for text in (
            f'{{"data":[{{"request_prompt":"{CANARY}"}}],"total_records":"{CANARY}"}}',
            f'{{"data":[{{"request_prompt":"{CANARY}',
            f'["{CANARY}"]',
            f'{{"total_records":1.5,"x":"{CANARY}"}}',
        ):
            with self.assertRaises(UpstreamError) as caught:
                DenialsDecoder().decode(text.encode(), AT_NOON)
            self.assertEqual("decode", caught.exception.reason)
            self.assertNotIn("prompt", str(caught.exception))
