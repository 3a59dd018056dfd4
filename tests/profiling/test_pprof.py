"""The profile format: a reader of the format returns what was encoded."""

import gzip
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.profiling.pprof import Frame, Stack, encode, varint
from tests.profiling import reader

NUMBERS = st.integers(min_value=0, max_value=2**63 - 1)
FRAMES = st.builds(Frame, st.text(), st.text(), NUMBERS)
SAMPLES = st.dictionaries(st.lists(FRAMES).map(tuple), st.tuples(NUMBERS, NUMBERS))

TYPES = (("samples", "count"), ("cpu", "nanoseconds"))


def encoded(samples: Mapping[Stack, Sequence[int]]) -> bytes:
    return encode(TYPES, samples, period=10, started=1_700_000_000, duration=5)


class VarintTests(SynchronousTestCase):
    def test_known(self) -> None:
        """Numbers are encoded as the documentation of protocol buffers shows."""
        for number, expected in (
            *((0, b"\x00"), (127, b"\x7f"), (150, b"\x96\x01")),
            (2**64 - 1, b"\xff" * 9 + b"\x01"),
        ):
            self.assertEqual(expected, varint(number))

    @given(NUMBERS)
    def test_round_trip(self, number: int) -> None:
        """Each number is read back, to the last byte."""
        encoded = varint(number)
        self.assertEqual((number, len(encoded)), reader.varint(encoded))


class EncodeTests(SynchronousTestCase):
    @given(SAMPLES)
    def test_samples(self, samples: dict[Stack, tuple[int, int]]) -> None:
        """Stacks and values are read back, odd file names too."""
        odd = (Frame("f", "caf\udce9.py", 2**63),)
        *read, last = reader.read(encoded({**samples, odd: (1, 1)})).samples
        self.assertEqual([*samples.items()], read)
        self.assertEqual("caf?.py", last[0][0].file)

    def test_head(self) -> None:
        """The profile's header is read back; the last type is the default."""
        read = reader.read(encoded({}))
        self.assertEqual(([*TYPES], TYPES[1]), (read.types, read.period_type))
        self.assertEqual(("cpu", 10), (read.default_type, read.period))
        self.assertEqual((1_700_000_000_000_000_000, 5), (read.started, read.duration))

    def test_told_once(self) -> None:
        """A function's name is stored once for a thousand samples."""
        stack = tuple(Frame(f"function{n}", "file.py", n) for n in range(50))
        many = encoded({(Frame("f", "f", n), *stack): (1, n) for n in range(1000)})
        self.assertEqual(1, gzip.decompress(many).count(b"function49"))
