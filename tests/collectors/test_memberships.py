"""The memberships collector."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.table import COLLECTORS
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group, Member
from tests.collectors.samples import scrape


class MembershipsTests(SynchronousTestCase):
    def test_off(self) -> None:
        """Only memberships and events are off by default."""
        self.assertEqual(
            ["memberships", "events"],
            [c.name for c in COLLECTORS if not c.default],
        )

    def test_unknown(self) -> None:
        """Unknown groups and groups without members have no series."""
        self.assertEqual({}, scrape("memberships", Inventory()))
        self.assertEqual({}, scrape("memberships", Inventory(groups=(Group(id="g"),))))

    def test_members(self) -> None:
        """Each member of each group has one series, even if it is listed twice."""
        groups = (
            Group(
                id="g1",
                name="dev",
                peers=(
                    Member(id="p1", name="old name"),
                    Member(id="p2", name="db"),
                    Member(id="p1", name="db"),
                ),
            ),
            Group(id="g2", name="dev", peers=(Member(id="p1", name="db"),)),
        )
        self.assertEqual(
            {
                "group_member": [
                    '{group_id="g1",group="dev",peer_id="p1",peer="db"} 1',
                    '{group_id="g1",group="dev",peer_id="p2",peer="db"} 1',
                    '{group_id="g2",group="dev",peer_id="p1",peer="db"} 1',
                ]
            },
            scrape("memberships", Inventory(groups=groups)),
        )

    def test_without_id(self) -> None:
        """A member without an id is left out."""
        group = Group(id="g1", peers=(Member(name="nobody"),))
        self.assertEqual({}, scrape("memberships", Inventory(groups=(group,))))
