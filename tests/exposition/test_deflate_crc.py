"""Checksums of concatenations, compared with zlib's."""

import zlib
from functools import reduce

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition import deflate


def combined(texts: list[bytes]) -> int:
    return reduce(
        lambda checksum, text: deflate.combine(
            checksum, zlib.crc32(text), deflate.shift(len(text))
        ),
        texts,
        0,
    )


class CombineTests(SynchronousTestCase):
    @settings(deadline=None)
    @given(texts=st.lists(st.binary(max_size=300)))
    def test_concatenation(self, texts: list[bytes]) -> None:
        """The combination of checksums is the checksum of the concatenation."""
        self.assertEqual(zlib.crc32(b"".join(texts)), combined(texts))

    def test_long(self) -> None:
        """Lengths of every order of magnitude that memory allows are right."""
        for exponent in range(25):
            texts = [b"head", bytes(2**exponent + 1)]
            self.assertEqual(zlib.crc32(b"".join(texts)), combined(texts))

    def test_beyond_memory(self) -> None:
        """A length beyond memory is right: shifting twice by half is the same."""
        once, half = deflate.shift(2**44), deflate.shift(2**43)
        checksum = zlib.crc32(b"text")
        twice = deflate.combine(deflate.combine(checksum, 0, half), 0, half)
        self.assertEqual(deflate.combine(checksum, 0, once), twice)
