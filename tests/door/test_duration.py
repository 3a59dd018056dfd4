"""Durations as Go writes them."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.door.duration import seconds


class DurationTests(SynchronousTestCase):
    def test_good(self) -> None:
        """What Go reads we read."""
        for text, expected in (
            ("0", 0.0),
            ("0s", 0.0),
            ("1s", 1.0),
            ("1m30s", 90.0),
            ("1.5h", 5400.0),
            (".5s", 0.5),
            ("1.s", 1.0),
            ("100ms", 0.1),
            ("5us", 5e-6),
            ("5µs", 5e-6),
            ("5μs", 5e-6),
            ("7ns", 7e-9),
        ):
            self.assertAlmostEqual(expected, seconds(text), places=12)

    def test_bad(self) -> None:
        """A number without a unit, or with another, is no duration."""
        for text in ("", "1", "s", "1d", "-1s", "1 s", "1s ", ".s", "١s"):
            with self.assertRaises(ValueError, msg=text):
                seconds(text)
