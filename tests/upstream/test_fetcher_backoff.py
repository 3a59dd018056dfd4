"""Waits before retries: limits, growth, and the server's Retry-After."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.refresh.schedule import with_jitter
from api_exporter.upstream.fetcher import attempt_delay

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


class JitterTests(SynchronousTestCase):
    def test_jitter(self) -> None:
        """An interval and a wait change by up to a tenth."""
        for chance, seconds in ((0.0, 27.0), (0.5, 30.0), (1.0, 33.0)):
            self.assertEqual(seconds, with_jitter(30.0, lambda: chance))  # noqa: B023
