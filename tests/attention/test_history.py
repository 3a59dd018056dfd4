"""The samples of the last hours: one per step, bounded, with unread steps."""

from math import ceil
from sys import getsizeof

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.history import HISTORY_SECONDS, History, Sample


def observed(*times: float, interval: float = 30) -> History:
    history = History(interval=interval)
    for at in times:
        history.observe(at, Sample(5, 3, None))
    return history


def known(history: History, now: float) -> list[int]:
    """Return the steps before `now` that have a sample."""
    samples = reversed(history.samples(now))
    return [ago for ago, sample in enumerate(samples) if sample is not None]


class HistoryTests(SynchronousTestCase):
    def test_steps(self) -> None:
        """A sample holds for two steps; older and future ones are removed."""
        for given_times, interval, now, expected in (
            ((0, 30, 60, 90, 120), 30, 120, [0, 1, 2]),
            ((0, 600, 1200), 600, 1200, [0, 1, 2]),
            ((0, 120), 30, 120, [0, 1, 2]),
            ((0, 180), 30, 180, [0, 3]),
            ((600,), 30, 720, [0, 1, 2]),
            ((600,), 30, 780, [3]),
            ((60,), 30, HISTORY_SECONDS, [359]),
            ((60,), 30, HISTORY_SECONDS + 60, []),
            ((600, 7200, 90), 30, 90, [0]),
            ((7200,), 30, 60, []),
        ):
            history = observed(*given_times, interval=interval)
            self.assertEqual(expected, known(history, now), given_times)

    def test_sample(self) -> None:
        """The newest numbers of a step count, and its worst severity."""
        history = observed(60)
        history.observe(65, Sample(4, 3, "warning"))
        history.observe(70, Sample(2, 2, "info"))
        self.assertEqual(Sample(2, 2, "warning"), history.samples(70)[-1])
        history.observe(120, Sample(5, 3, None))
        expected = [Sample(2, 2, "warning"), Sample(5, 3, None)]
        self.assertEqual(expected, history.samples(120)[-2:])
        history.observe(180, Sample(5, 3, "unknown"))
        severities = [("unread", 357), ("warning", 1), ("none", 1), ("unknown", 1)]
        self.assertEqual(severities, [*history.severities(180)])

    @given(
        st.lists(st.floats(min_value=0, max_value=2 * HISTORY_SECONDS), max_size=99),
        st.floats(min_value=1, max_value=1e5),
    )
    def test_bounded(self, at: list[float], interval: float) -> None:
        """There is one sample for each step of the span, in bounded memory."""
        history = observed(*at, interval=interval)
        samples = history.samples(at[-1] if at else 0)
        self.assertEqual(ceil(HISTORY_SECONDS / history.step), len(samples))
        self.assertEqual(bool(at), samples[-1] is not None)
        self.assertLess(getsizeof(history._numbers), 4500)
