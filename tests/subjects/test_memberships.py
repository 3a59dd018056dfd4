"""Memberships of peers in groups."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.records import Group, Member
from api_exporter.subjects.memberships import MEMBER
from tests.inventories import inventory_of


class MembershipsTests(SynchronousTestCase):
    def test_namesakes(self) -> None:
        """Members with one name are two, and one that is listed twice is one."""
        members = (Member(id=id_, name="printer") for id_ in ("a", "b", "a", ""))
        inventory = inventory_of(groups=(Group(id="g", peers=(*members,)),))
        found = [member.id for _, member in MEMBER.find(inventory)]
        self.assertEqual(["a", "b"], found)
