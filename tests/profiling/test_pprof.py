"""The profile format: a reader of the format returns what was encoded."""

import gzip

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.profiling.pprof import (
    Frame,
    Profile,
    ProfileSample,
    ValueType,
    address,
    encode,
    varint,
)
from tests.profiling import reader

NUMBERS = st.integers(min_value=0, max_value=2**63 - 1)
FRAMES = st.builds(Frame, st.text(), st.text(), NUMBERS)
SAMPLES = st.builds(
    ProfileSample, st.lists(FRAMES).map(tuple), st.tuples(NUMBERS, NUMBERS), st.text()
)


def encoded(*samples: ProfileSample, comment: str = "") -> bytes:
    profile = Profile(
        types=(ValueType("samples", "count"), ValueType("cpu", "nanoseconds")),
        samples=samples,
        period=10,
        duration=5,
        comment=comment,
    )
    return encode(profile, 1_700_000_000)


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
    @given(st.lists(SAMPLES))
    def test_samples(self, samples: list[ProfileSample]) -> None:
        """Stacks, values and threads are read back, odd file names too."""
        odd = ProfileSample((Frame("f", "caf\udce9.py", 1),), (1, 1))
        *read, last = reader.read(encoded(*samples, odd)).samples
        labels = [{"thread": s.thread} if s.thread else {} for s in samples]
        expected = [(s.stack, s.values) for s in samples]
        self.assertEqual([(*x, y) for x, y in zip(expected, labels, strict=True)], read)
        self.assertEqual("caf?.py", last[0][0].file)

    def test_head(self) -> None:
        """The profile's header is read back; the last type is the default."""
        read = reader.read(encoded(comment="one"))
        samples, cpu = ("samples", "count"), ("cpu", "nanoseconds")
        self.assertEqual(([samples, cpu], cpu), (read.types, read.period_type))
        self.assertEqual(("cpu", 10), (read.default_type, read.period))
        times = read.started, read.duration
        self.assertEqual((1_700_000_000_000_000_000, 5), times)
        self.assertEqual(["one"], read.comments)

    def test_told_once(self) -> None:
        """A function's name is stored once for a thousand samples."""
        stack = tuple(Frame(f"function{n}", "file.py", n) for n in range(50))
        many = encoded(*[ProfileSample(stack, (1, n)) for n in range(1000)])
        self.assertEqual(1, gzip.decompress(many).count(b"function49"))

    def test_addresses(self) -> None:
        """A line has an address of its own, and the same one in each profile."""
        one, two = Frame("f", "a.py", 1), Frame("f", "a.py", 2)
        first = reader.read(encoded(ProfileSample((one, two), (1, 1))))
        second = reader.read(encoded(ProfileSample((two, one), (1, 1))))
        self.assertEqual(first.addresses, second.addresses)
        self.assertEqual({one: address(one), two: address(two)}, first.addresses)
        self.assertNotEqual(address(one), address(two))
