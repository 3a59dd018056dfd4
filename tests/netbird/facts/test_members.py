"""Lists inside of records; what they mean is tested with the collectors."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition.tally import AT_ONCE
from api_exporter.netbird.facts.members import by_id, distinct
from api_exporter.netbird.records import Peer, TypedId
from tests.bodies import finish


class MembersTests(SynchronousTestCase):
    def test_distinct(self) -> None:
        """Of two with one id the last counts; without an id each does."""
        first, last, nameless = (
            TypedId(id=i, type=t) for i, t in ("aA", "aB", ("", ""))
        )
        found = distinct((first, nameless, last, nameless))
        self.assertEqual([last, nameless, nameless], list(found))
        self.assertEqual([], list(distinct(None)))

    def test_steps(self) -> None:
        """Many peers are looked at in steps."""
        peers = tuple(Peer(id=f"{n}") for n in range(3 * AT_ONCE))
        self.assertEqual(3, len(list(by_id(peers))))
        self.assertEqual({peer.id: peer for peer in peers}, finish(by_id(peers)))
