"""The joins by themselves; what they mean is tested with the collectors."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors import joins
from api_exporter.exposition.tally import AT_ONCE
from api_exporter.netbird.records import Group, Member, Peer

IDS = st.sampled_from("abcd")


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

    def test_members(self) -> None:
        """Only wanted groups are looked into; a null list has nobody in it."""
        groups = (
            Group(id="g1", peers=(Member(id="a"), Member(id="b"))),
            Group(id="g2", peers=None),
            Group(id="g3", peers=(Member(id="c"),)),
        )
        self.assertEqual(
            {"g1": ["a", "b"], "g2": []},
            joins.members(groups, frozenset({"g1", "g2", "deleted"})),
        )

    def test_routing_peers(self) -> None:
        """Behind a router stand its peer and its groups' members, each once."""
        members = {"g1": ["a", "b"], "g2": ["b", "c"]}
        for peer, groups, behind in (
            ("", None, ""),
            ("a", None, "a"),
            ("a", ("g1",), "ab"),
            ("", ("g1", "g2", "g1", "deleted"), "abc"),
        ):
            self.assertEqual(set(behind), joins.routing_peers(peer, groups, members))

    @given(IDS, st.lists(IDS), st.dictionaries(IDS, st.lists(IDS)))
    def test_more_members(
        self, peer: str, groups: list[str], members: dict[str, list[str]]
    ) -> None:
        """A member more never takes anybody away."""
        before = joins.routing_peers(peer, groups, members)
        more = {group: [*ids, "new"] for group, ids in members.items()}
        self.assertLessEqual(before, joins.routing_peers(peer, groups, more))
