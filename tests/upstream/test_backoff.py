"""Waits before retries: limits, growth, and the server's Retry-After."""

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.upstream.backoff import (
    MAX_ATTEMPT_DELAY,
    attempt_delay,
    retry_delay,
    with_jitter,
)

CHANCE = st.floats(0, 1, exclude_max=True)
FAILURES = st.integers(1, 10_000)
PERIOD = st.floats(1, 86400)


def longest(failures: int) -> float:
    """Return the longest pause that chance allows."""
    return attempt_delay(failures, lambda: 1.0)


class PauseTests(SynchronousTestCase):
    def test_ceilings(self) -> None:
        """The longest pause doubles from half a second up to five seconds."""
        self.assertEqual(
            [0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0],
            [longest(failures) for failures in (1, 2, 3, 4, 5, 6, 10_000)],
        )

    @settings(deadline=None)
    @given(failures=FAILURES, chance=CHANCE, asked=st.none() | st.floats(0, 1e6))
    def test_full_jitter(
        self, failures: int, chance: float, asked: float | None
    ) -> None:
        """A pause is a random share of the longest one, but not below Retry-After."""
        own = chance * longest(failures)
        self.assertEqual(
            max(own, asked or 0.0), attempt_delay(failures, lambda: chance, asked)
        )


class AgainTests(SynchronousTestCase):
    def test_doubled(self) -> None:
        """The wait doubles from half a minute on, and never exceeds the period."""
        for period, expected in (
            (600.0, [30, 60, 120, 240, 480, 600, 600]),
            (30.0, [30, 30]),
            (5.0, [5, 5]),
        ):
            for failures, seconds in enumerate(expected, 1):
                self.assertEqual(seconds, retry_delay(failures, period, lambda: 0.5))

    def test_asked(self) -> None:
        """Retry-After replaces the first wait, within the period."""
        for asked, expected in (
            (None, [30, 60, 120]),
            (MAX_ATTEMPT_DELAY, [30, 60, 120]),
            (MAX_ATTEMPT_DELAY + 1, [6, 30, 60]),
            (70.0, [70, 70, 70, 120]),
            (3600.0, [600, 600]),
        ):
            for failures, seconds in enumerate(expected, 1):
                found = retry_delay(failures, 600.0, lambda: 0.5, asked)
                self.assertEqual(seconds, found, (asked, failures))

    @settings(deadline=None)
    @given(failures=FAILURES, period=PERIOD, chance=CHANCE)
    def test_bounds(self, failures: int, period: float, chance: float) -> None:
        """The wait never exceeds the period, and is never 0."""
        seconds = retry_delay(failures, period, lambda: chance)
        self.assertLessEqual(seconds, period)
        self.assertGreaterEqual(seconds, min(period, 27.0))


class SpreadTests(SynchronousTestCase):
    @settings(deadline=None)
    @given(period=PERIOD, chance=CHANCE)
    def test_a_tenth(self, period: float, chance: float) -> None:
        """A period changes by a tenth at most."""
        spreaded = with_jitter(period, lambda: chance)
        self.assertLessEqual(0.9 * period, spreaded)
        self.assertLessEqual(spreaded, 1.1 * period * (1 + 1e-15))

    def test_middle(self) -> None:
        """A chance of one half does not change a period."""
        self.assertEqual(30.0, with_jitter(30.0, lambda: 0.5))
