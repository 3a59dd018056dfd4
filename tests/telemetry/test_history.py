"""The counts of the last hours: one per step, bounded, with gaps."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.records import Peer
from api_exporter.telemetry.history import HISTORY_SECONDS, History, PeerCount

PEERS = tuple(Peer(id=str(n), connected=n < 3) for n in range(5))


def observed(*times: float, period: float = 30) -> History:
    history = History(period=period)
    for at in times:
        history.observe(at, PEERS)
    return history


def times(history: History, now: float) -> list[list[float]]:
    return [[count.at for count in run] for run in history.runs(now)]


class HistoryTests(SynchronousTestCase):
    def test_runs(self) -> None:
        """The newest counts of each step and of the span are kept. A pause of three
        steps begins another run, a long interval does not. After the clock was set
        back, counts in the future are deleted.
        """
        for given_times, period, now, expected in (
            ((0, 30, 60, 90, 120), 30, 120, [[30, 90, 120]]),
            ((0, 600, 1200), 600, 1200, [[0, 600, 1200]]),
            ((0, 150, 330, 390), 30, 390, [[0, 150], [330, 390]]),
            ((0, 60), 30, HISTORY_SECONDS + 30, [[60]]),
            ((0, 60), 30, HISTORY_SECONDS + 61, []),
            ((0, 60, 7200, 90), 30, 90, [[0, 90]]),
            ((7200,), 30, 60, []),
            (range(0, int(2 * HISTORY_SECONDS) + 1, 60), 30, HISTORY_SECONDS - 60, []),
        ):
            history = observed(*given_times, period=period)
            self.assertEqual(expected, times(history, now), given_times)
        [[count]] = observed(60).runs(60)
        self.assertEqual(PeerCount(at=60, connected=3, disconnected=2), count)
        self.assertEqual(5, count.peers)

    @given(
        st.lists(st.floats(min_value=0, max_value=HISTORY_SECONDS), max_size=2000),
        st.floats(min_value=1, max_value=1e5),
    )
    def test_bounded(self, at: list[float], period: float) -> None:
        """Counts in any order are sorted, and their number is bounded."""
        history = observed(*at, period=period)
        kept = [count for run in times(history, HISTORY_SECONDS) for count in run]
        self.assertEqual(sorted(set(kept)), kept)
        self.assertLessEqual(len(kept), HISTORY_SECONDS / history.step + 1)
