"""Compressed bodies: cut, doubled, damaged, and far too long."""

import gzip
import tracemalloc
import zlib

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.bodies import unpack
from api_exporter.ports import ResponseBody, UpstreamError

MIB = 1024 * 1024

ZEROS = gzip.compress(bytes(64 * MIB))


class UnpackingTests(SynchronousTestCase):
    def failing(self, data: bytes, limit: int = MIB) -> UpstreamError:
        """Return why packed data is refused."""
        try:
            unpack(ResponseBody(data, True, limit))
        except UpstreamError as error:
            return error
        raise self.failureException("it was unpacked")

    def test_unpacked(self) -> None:
        """A body is unchanged, compressed or not, up to its limit."""
        for body in (b"", b'[{"id":"a"}]', b"[1,2]" * 10**6, bytes(16 * MIB)):
            for level in (0, 1, 9):
                packed = gzip.compress(body, level)
                self.assertEqual(body, unpack(ResponseBody(packed, True, len(body))))
            self.assertEqual(body, unpack(ResponseBody(body)))

    def test_too_long(self) -> None:
        """A decompression bomb ends at the limit, with the memory of the limit."""
        for data in (ZEROS, gzip.compress(bytes(MIB)) * 64):
            tracemalloc.start()
            self.addCleanup(tracemalloc.stop)
            error = self.failing(data, 16 * MIB)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            self.assertEqual("too_large", error.reason)
            self.assertEqual(f"the body is longer than {16 * MIB} bytes", str(error))
            # A piece is decompressed beside the collected data.
            self.assertLess(peak, 16 * MIB * 9 / 8 + 4 * MIB)

    def test_one_copy(self) -> None:
        """A body is in memory only once after decompression."""
        for level in (0, 1):
            packed = gzip.compress(bytes(64 * MIB), level)
            tracemalloc.start()
            self.addCleanup(tracemalloc.stop)
            body = unpack(ResponseBody(packed, True, 64 * MIB))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            self.assertEqual(64 * MIB, len(body))
            self.assertLess(peak, 64 * MIB * 9 / 8 + 4 * MIB)

    def test_nothing_in_it(self) -> None:
        """Megabytes that decompress to nothing are refused."""
        empty = gzip.compress(b"")
        for data in (empty[:10] + b"\x00\x00\x00\xff\xff" * MIB, empty * MIB):
            error = self.failing(data, 64 * MIB)
            self.assertEqual("too_large", error.reason)
            self.assertIn("extra data at its end", str(error))

    def test_members(self) -> None:
        """Several members are one body; an empty member adds nothing."""
        for parts in (
            (b"[1,", b"", b"2,3" * 1000, b"]"),
            (b"x" * MIB, b"y" * MIB, b""),  # each ends with a step
            tuple(b"%d," % number for number in range(10_000)),
        ):
            data = b"".join(map(gzip.compress, parts))
            self.assertEqual(b"".join(parts), unpack(ResponseBody(data, True, 8 * MIB)))

    def test_damaged(self) -> None:
        """Cut, empty and damaged bodies have different errors."""
        self.assertEqual(b"", unpack(ResponseBody(b"", True, MIB)))
        whole = gzip.compress(b"[]" * 1000)
        wrong_sum = bytearray(whole)
        wrong_sum[-6] ^= 1
        cuts = [whole[:length] for length in (1, 5, 20, len(whole) - 9, -1)]
        no_gzip = (b"[]" * 100, zlib.compress(b"[]"), bytes(wrong_sum))
        for why, bodies in (
            ("incomplete", (*cuts, whole + whole[:-1])),
            ("damaged", (*no_gzip, whole + b"xyz", whole + b"\0" * 10)),
        ):
            for data in bodies:
                error = self.failing(data)
                self.assertEqual("decode", error.reason)
                self.assertIn(f"the gzip body is {why}", str(error))
