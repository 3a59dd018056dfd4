"""The joins by themselves; what they mean is tested with the collectors."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors import joins
from api_exporter.exposition.tally import AT_ONCE
from api_exporter.netbird.records import Peer


class JoinsTests(SynchronousTestCase):
    def test_peers(self) -> None:
        """Connected peers are some of the existing ones."""
        peers = (Peer(id="up", connected=True), Peer(id="down"))
        present = joins.Present(peers).whole()
        self.assertEqual({"up"}, present.connected)
        self.assertEqual({"up", "down"}, present.existing)

    def test_steps(self) -> None:
        """Many peers are looked at in steps, which are taken once, by whomever."""
        present = joins.Present(tuple(Peer(id=f"{n}") for n in range(3 * AT_ONCE)))
        next(present.steps)
        self.assertEqual(AT_ONCE, len(present.existing))
        self.assertEqual(2, len(list(present.steps)))
        self.assertEqual(3 * AT_ONCE, len(present.whole().existing))
