"""Names and groups of a snapshot."""

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.finding import Finding, FindingKind, join_lines
from api_exporter.attention.thresholds import Groups, default_thresholds
from api_exporter.netbird.records import Group, Member
from tests.attention.looking import findings, peer, seen
from tests.inventories import inventory_of
from tools.prometheus import KINDS


class KindTests(SynchronousTestCase):
    def test_texts(self) -> None:
        """A finding has the texts of an alert exactly if it has an alert."""
        for kind in KINDS:
            for text in (kind.summary, kind.description):
                self.assertEqual(bool(kind.lasts), bool(text), kind.name)

    def test_joined(self) -> None:
        """A line of several findings is about none of their objects."""
        peers = tuple(replace(peer(id_), approval_required=True) for id_ in "ab")
        [line] = join_lines(findings(seen(inventory_of(peers=peers))))
        self.assertEqual(("", ""), (line.object_id, line.object))

    def test_joined_apart(self) -> None:
        """Findings of a kind are one line, also with others between them."""
        many = FindingKind("X", "Thing", many=("{} things", "are gone"))
        other = FindingKind("Y", "Box")
        kinds = (many, other, many, other, many)
        every = [made(kind, f"{number}") for number, kind in enumerate(kinds)]
        lines = [*join_lines(every)]
        self.assertEqual(["3 things", "Box 1", "Box 3"], [one.subject for one in lines])

    def test_joined_age(self) -> None:
        """A line of several findings is as old as the first of them was found."""
        kind = FindingKind("X", "Thing", many=("{} things", "are gone"))
        found = [replace(made(kind, f"{at}"), found_at=at) for at in (9.0, 4.0, 7.0)]
        [line] = join_lines(found)
        self.assertEqual(4.0, line.found_at)


def made(kind: FindingKind, name: str) -> Finding:
    return Finding(
        kind=kind,
        severity="warning",
        object_id=name,
        object=name,
        subject=f"{kind.noun} {name}",
        message="is gone.",
        since=None,
        until=None,
    )


class SnapshotTests(SynchronousTestCase):
    def test_important(self) -> None:
        """IMPORTANT_GROUPS replaces the groups of the thresholds."""
        groups = Groups(important=["theirs"], routers=[])
        thresholds = replace(default_thresholds(), groups=groups)
        for chosen, expected in (((), ["theirs"]), (("own",), ["own"])):
            looked = seen(inventory_of(), thresholds=thresholds, chosen=chosen)
            self.assertEqual(expected, [*looked.important])

    def test_peer_name(self) -> None:
        """A peer that PEER_DETAIL hides has no name."""
        shown, hidden = replace(peer("a"), name="server"), replace(peer("b"), name="a")
        group = Group(id="g", name="servers", peers=(Member(id="a"),))
        known = inventory_of(peers=(shown, hidden), groups=(group,))
        looked = seen(replace(known, detail=frozenset({"servers"})))
        self.assertEqual(["server", ""], [*map(looked.peer_name, (shown, hidden))])
