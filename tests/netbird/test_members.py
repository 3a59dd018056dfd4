"""Lists inside records. Their meaning is tested with the collectors."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.members import PeerSets, count_below, named
from api_exporter.netbird.records import Group


class MembersTests(SynchronousTestCase):
    def test_named(self) -> None:
        """Groups are found by name or id, without a search of all names."""

        class Names(tuple[str, ...]):
            def __contains__(self, name: object) -> bool:
                raise AssertionError("looked at each name")

        groups = [Group(id="1", name="a"), Group(id="2", name="b"), Group(id="3")]
        self.assertEqual(groups[:2], named(groups, Names(("b", "1", "no"))))


MANY = 1000
MEMBERS = st.one_of(
    st.lists(st.integers(0, MANY + 5), max_size=30),
    st.builds(range, st.integers(0, MANY), st.just(MANY)),
)


class PeerSetTests(SynchronousTestCase):
    @given(st.lists(MEMBERS, max_size=5), MEMBERS, st.integers(0, MANY))
    def test_union(self, groups: list[list[int]], peers: list[int], place: int) -> None:
        """A union has each member once, whether it is large or small."""
        sets = PeerSets({f"{n}": n for n in range(MANY)})
        for number, members in enumerate(groups):
            sets.add(f"{number}", [f"{n}" for n in members])
        names = [*(f"{number}" for number in range(len(groups))), "no"]
        found = sets.union(names, [f"{n}" for n in peers])
        wanted = {n for some in (*groups, peers) for n in some if n < MANY}
        self.assertEqual(len(wanted), found.bit_count())
        self.assertEqual(sum(n < place for n in wanted), count_below(found, place))
