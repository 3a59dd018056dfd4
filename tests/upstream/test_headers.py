"""Headers as a hostile server sends them."""

import os
import time

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from api_exporter.upstream.headers import (
    RECEIVED_ENCODING,
    codings,
    date,
    media_type,
    request_id,
    retry_after,
)

NOW = 1_800_000_000.0


class HeadersTests(SynchronousTestCase):
    def test_codings(self) -> None:
        """Codings are listed in order, from all header lines."""
        for lines, expected in (
            ([], []),
            ([b""], []),
            ([b"identity"], []),
            ([b"GZip "], ["gzip"]),
            ([b"gzip, gzip"], ["gzip", "gzip"]),
            ([b"gzip", b"br"], ["gzip", "br"]),
            ([b"\xff"], ["\xff"]),
        ):
            self.assertEqual(expected, codings(Headers({RECEIVED_ENCODING: lines})))

    @given(value=st.binary(max_size=60) | st.from_regex(r"[A-Z][a-z]{2}, \d.*"))
    def test_any_bytes(self, value: bytes | str) -> None:
        """Invalid bytes in headers raise no error."""
        raw = value.encode("utf-8") if isinstance(value, str) else value
        names = (
            b"Content-Type",
            b"Retry-After",
            RECEIVED_ENCODING,
            b"Date",
            b"X-Request-Id",
        )
        headers = Headers({name: [raw] for name in names})
        self.assertIsInstance(media_type(headers), str)
        self.assertIsInstance(codings(headers), list)
        self.assertIsInstance(date(headers), float | None)
        self.assertTrue(request_id(headers).isascii())
        seconds = retry_after(headers, now=NOW)
        self.assertTrue(seconds is None or seconds >= 0)

    def test_request_id(self) -> None:
        """A NetBird request id is returned; a text that could be anything is not."""
        for value, expected in (
            (b"dc1djo5qmd2oq13d8pj0", "dc1djo5qmd2oq13d8pj0"),
            (b"", ""),
            (b"a b", ""),
            (b"x" * 65, ""),
            (b"<b>", ""),
        ):
            self.assertEqual(expected, request_id(Headers({b"X-Request-Id": [value]})))
        self.assertEqual("", request_id(Headers()))

    def test_date(self) -> None:
        """A missing or invalid Date is None; one without a zone is in UTC."""
        zone = os.environ.get("TZ", "UTC")
        self.addCleanup(time.tzset)
        self.addCleanup(os.environ.__setitem__, "TZ", zone)
        os.environ["TZ"] = "EST5"
        time.tzset()
        for value, expected in (
            (b"Sun, 22 Nov 2026 12:00:30 -0000", 1_795_348_830.0),
            (b"Sun, 22 Nov 2026 12:00:30", 1_795_348_830.0),
            (b"Sun, 22 Nov 2026 12:00:30 GMT", 1_795_348_830.0),
            (b"yesterday", None),
            (b"Sun, 99 Nov 2026 12:00:30 GMT", None),
        ):
            self.assertEqual(expected, date(Headers({b"Date": [value]})))
        self.assertIsNone(date(Headers()))
