"""Waits before retries: limits, growth, and the server's Retry-After."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.upstream.backoff import (
    MAX_ATTEMPT_DELAY,
    attempt_delay,
    retry_delay,
    with_jitter,
)

MANY = 10_000


class AttemptDelayTests(SynchronousTestCase):
    def test_growth(self) -> None:
        """The longest wait doubles from half a second up to five seconds."""
        for failures, longest in enumerate([0.5, 1, 2, 4, 5, 5], 1):
            self.assertEqual(longest, attempt_delay(failures, lambda: 1.0))
        self.assertEqual(5, attempt_delay(MANY, lambda: 1.0))

    def test_full_jitter(self) -> None:
        """A wait is a random share of the longest one, but not below Retry-After."""
        for chance, asked, seconds in (
            (0.0, None, 0.0),
            (0.25, None, 0.5),
            (0.25, 0.4, 0.5),
            (0.25, 0.6, 0.6),
            (0.25, 1e6, 1e6),
        ):
            self.assertEqual(seconds, attempt_delay(3, lambda: chance, asked))  # noqa: B023


class RetryDelayTests(SynchronousTestCase):
    def test_waits(self) -> None:
        """The wait doubles from half a minute on; Retry-After replaces the first one.

        The wait never exceeds the period.
        """
        for period, asked, expected in (
            (600.0, None, [30, 60, 120, 240, 480, 600, 600]),
            (30.0, None, [30, 30]),
            (5.0, None, [5, 5]),
            (600.0, MAX_ATTEMPT_DELAY, [30, 60, 120]),
            (600.0, MAX_ATTEMPT_DELAY + 1, [6, 30, 60]),
            (600.0, 70.0, [70, 70, 70, 120]),
            (600.0, 3600.0, [600, 600]),
        ):
            found = [
                retry_delay(failures, period, lambda: 0.5, asked)
                for failures, _ in enumerate(expected, 1)
            ]
            self.assertEqual(expected, found)
            self.assertEqual(period, retry_delay(MANY, period, lambda: 0.5, asked))

    def test_jitter(self) -> None:
        """A period and a wait change by up to a tenth. A wait is at most the period."""
        for chance, seconds in ((0.0, 27.0), (0.5, 30.0), (1.0, 33.0)):
            self.assertEqual(seconds, with_jitter(30.0, lambda: chance))  # noqa: B023
            self.assertEqual(seconds, retry_delay(1, 60.0, lambda: chance))  # noqa: B023
            wait = retry_delay(1, 30.0, lambda: chance)  # noqa: B023
            self.assertEqual(min(30.0, seconds), wait)
