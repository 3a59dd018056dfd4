"""The table of finders: each one names all resources that it reads."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.finders import FINDERS
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import CURRENT_USER, RESOURCE_BY_NAME
from tests.attention.looking import seen
from tests.bodies import EVERYTHING, NOON, body, decoded


class RecordingInventory(Inventory, frozen=True, kw_only=True, dict=True):
    """An inventory that notes the resources whose records are read."""

    def __getattribute__(self, name: str) -> object:
        if name in RESOURCE_BY_NAME:
            read.add(name)
        return super().__getattribute__(name)


read: set[str] = set()


class FindersTests(SynchronousTestCase):
    def test_reads(self) -> None:
        """A finder runs again after a change of any list that it reads.

        A finder that names none runs after each refresh.
        """
        inventory: Inventory = RecordingInventory(now=NOON)
        for resource in EVERYTHING:
            records = decoded(resource.name, body(resource.name)).records
            inventory = inventory.with_(resource.name, records)
        found = set[str]()
        for finder in FINDERS:
            if finder.reads:
                snapshot = seen(inventory, now=NOON, chosen=("All", "servers"))
                read.clear()
                list(finder.find(snapshot))
                hidden = read - {*finder.reads, CURRENT_USER}
                self.assertEqual(set(), hidden, finder)
                found |= read
        self.assertLess({"peers", "groups", "users", "accounts", "policies"}, found)
