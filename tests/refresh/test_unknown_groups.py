"""Groups that PEER_DETAIL names, in a network that changes."""

from twisted.logger import Logger
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.records import Group
from api_exporter.refresh.network import UnknownGroups
from tests.inventories import inventory_of
from tests.logbook import logbook


class UnknownGroupsTests(SynchronousTestCase):
    def test_once(self) -> None:
        """A missing group is logged once, and again if it goes missing later."""
        book = logbook(self)
        unknown = UnknownGroups(Logger("api_exporter"))
        known = inventory_of(detail=frozenset({"servers", "g2", "x\ny"}))
        servers, other = Group(id="g1", name="servers"), Group(id="g2", name="other")

        def told(*groups: Group) -> list[str]:
            before = len(book.lines())
            for _ in range(3):
                unknown.warn(known.replacing("groups", groups))
            return book.lines()[before:]

        def line(name: str) -> str:
            words = "which is neither name nor id of a group"
            return f"warning PEER_DETAIL names {name!r}, {words}"

        unknown.warn(known)
        self.assertEqual([], book.lines())
        self.assertEqual([line("g2"), line("x\ny")], told(servers))
        self.assertEqual([], told(servers, other))
        unknown.warn(known)
        self.assertEqual([line("servers")], told(other))
        self.assertEqual([line("g2")], told(servers))
