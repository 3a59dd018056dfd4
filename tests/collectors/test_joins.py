"""The joins by themselves; what they mean is tested with the collectors."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors import joins
from api_exporter.exposition.tally import AT_ONCE, finish
from api_exporter.netbird.records import Peer, TypedId


class JoinsTests(SynchronousTestCase):
    def test_peers(self) -> None:
        """Each peer is connected or not."""
        present = joins.Present((Peer(id="up", connected=True), Peer(id="down")))
        finish(present.steps)
        self.assertEqual({"up"}, present.connected)
        self.assertEqual({"down"}, present.offline)

    def test_distinct(self) -> None:
        """Of two with one id the last counts; without an id each does."""
        first, last, nameless = (
            TypedId(id=i, type=t) for i, t in ("aA", "aB", ("", ""))
        )
        found = joins.distinct((first, nameless, last, nameless))
        self.assertEqual([last, nameless, nameless], list(found))
        self.assertEqual([], list(joins.distinct(None)))

    def test_steps(self) -> None:
        """Many peers are looked at in steps, which are taken once, by whomever."""
        present = joins.Present(tuple(Peer(id=f"{n}") for n in range(3 * AT_ONCE)))
        next(present.steps)
        self.assertEqual(AT_ONCE, len(present.offline))
        self.assertEqual(2, len(list(present.steps)))
        self.assertEqual(3 * AT_ONCE, len(present.offline))
