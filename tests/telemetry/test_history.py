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
    def test_counts(self) -> None:
        """Peers are counted by whether they are connected."""
        [[count]] = observed(60).runs(60)
        self.assertEqual(PeerCount(at=60, connected=3, disconnected=2), count)
        self.assertEqual(5, count.peers)

    def test_step(self) -> None:
        """The newest count of each minute is kept."""
        history = observed(0, 30, 60, 90, 120)
        self.assertEqual([[30, 90, 120]], times(history, 120))

    def test_long_period(self) -> None:
        """A long interval between refreshes is not a gap."""
        history = observed(0, 600, 1200, period=600)
        self.assertEqual([[0, 600, 1200]], times(history, 1200))

    def test_gap(self) -> None:
        """Counts before and after a pause of three steps are separate runs."""
        history = observed(0, 150, 330, 390)
        self.assertEqual([[0, 150], [330, 390]], times(history, 390))

    def test_forgotten(self) -> None:
        """Counts older than the span are not returned."""
        history = observed(0, 60)
        self.assertEqual([[60]], times(history, HISTORY_SECONDS + 30))
        self.assertEqual([], times(history, HISTORY_SECONDS + 61))

    def test_clock_set_back(self) -> None:
        """Counts in the future are deleted after the clock was set back."""
        history = observed(0, 60, 7200, 90)
        self.assertEqual([[0, 90]], times(history, 90))

    def test_future(self) -> None:
        self.assertEqual([], times(observed(7200), 60))

    def test_not_kept(self) -> None:
        """Counts older than the span are deleted."""
        history = observed(*range(0, int(2 * HISTORY_SECONDS) + 1, 60))
        self.assertEqual([], times(history, HISTORY_SECONDS - 60))

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
