"""Headers as a hostile server sends them."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from api_exporter.upstream.headers import codings, media_type, retry_after

NOW = 1_800_000_000.0


class HeadersTests(SynchronousTestCase):
    def test_codings(self) -> None:
        """Ways of packing are named in their order, those of all lines together."""
        for lines, expected in (
            ([], []),
            ([b""], []),
            ([b"identity"], []),
            ([b"GZip "], ["gzip"]),
            ([b"gzip, gzip"], ["gzip", "gzip"]),
            ([b"gzip", b"br"], ["gzip", "br"]),
            ([b"\xff"], ["\xff"]),
        ):
            self.assertEqual(expected, codings(Headers({b"Content-Encoding": lines})))

    @given(value=st.binary(max_size=60) | st.from_regex(r"[A-Z][a-z]{2}, \d.*"))
    def test_any_bytes(self, value: bytes | str) -> None:
        """No bytes in a header do harm."""
        raw = value.encode("utf-8") if isinstance(value, str) else value
        names = (b"Content-Type", b"Retry-After", b"Content-Encoding")
        headers = Headers({name: [raw] for name in names})
        self.assertIsInstance(media_type(headers), str)
        self.assertIsInstance(codings(headers), list)
        seconds = retry_after(headers, now=NOW)
        self.assertTrue(seconds is None or seconds >= 0)
