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
        self.assertEqual(b"\x00", varint(0))
        self.assertEqual(b"\x7f", varint(127))
        self.assertEqual(b"\x96\x01", varint(150))
        self.assertEqual(b"\xff" * 9 + b"\x01", varint(2**64 - 1))

    @given(NUMBERS)
    def test_round_trip(self, number: int) -> None:
        """Each number is read back, to the last byte."""
        encoded = varint(number)
        self.assertEqual((number, len(encoded)), reader.varint(encoded))


class EncodeTests(SynchronousTestCase):
    @given(st.lists(SAMPLES))
    def test_samples(self, samples: list[ProfileSample]) -> None:
        """Stacks, values and threads are read back unchanged, in their order."""
        read = reader.read(encoded(*samples))
        expected = [
            (s.stack, s.values, {"thread": s.thread} if s.thread else {})
            for s in samples
        ]
        self.assertEqual(expected, read.samples)

    def test_head(self) -> None:
        """The profile's header is read back; the last type is the default."""
        read = reader.read(encoded(comment="one"))
        self.assertEqual([("samples", "count"), ("cpu", "nanoseconds")], read.types)
        self.assertEqual(("cpu", "nanoseconds"), read.period_type)
        self.assertEqual("cpu", read.default_type)
        self.assertEqual(10, read.period)
        self.assertEqual(1_700_000_000_000_000_000, read.started)
        self.assertEqual(5, read.duration)
        self.assertEqual(["one"], read.comments)

    def test_told_once(self) -> None:
        """A function's name is stored once for a thousand samples."""
        stack = tuple(Frame(f"function{n}", "file.py", n) for n in range(50))
        many = encoded(*[ProfileSample(stack, (1, n)) for n in range(1000)])
        self.assertEqual(1, gzip.decompress(many).count(b"function49"))

    def test_odd_file_names(self) -> None:
        """A file name that is not UTF-8 does not damage the profile."""
        stack = (Frame("f", "caf\udce9.py", 1),)
        read = reader.read(encoded(ProfileSample(stack, (1, 1))))
        self.assertEqual("caf?.py", read.samples[0][0][0].file)

    def test_addresses(self) -> None:
        """A line has an address of its own, and the same one in each profile."""
        one, two = Frame("f", "a.py", 1), Frame("f", "a.py", 2)
        first = reader.read(encoded(ProfileSample((one, two), (1, 1))))
        second = reader.read(encoded(ProfileSample((two, one), (1, 1))))
        self.assertEqual(first.addresses, second.addresses)
        self.assertEqual({one: address(one), two: address(two)}, first.addresses)
        self.assertNotEqual(address(one), address(two))
