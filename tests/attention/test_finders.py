"""The table of finders: each one names all resources that it reads."""

from typing import Any

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.resources import CURRENT_USER
from api_exporter.subjects.table import FINDERS
from tests.attention.looking import seen
from tests.bodies import NOON, inventory


class Records(dict[str, tuple[Any, ...]]):
    """Records that note the resources whose records are read."""

    def get(self, name: str, default: Any = None, /) -> Any:
        read.add(name)
        return super().get(name, default)


read: set[str] = set()


class FindersTests(SynchronousTestCase):
    def test_reads(self) -> None:
        """A finder runs again after a change of any list that it reads.

        A finder that names none runs after each refresh.
        """
        known = inventory()
        known = replace(known, records=Records(known.records))
        found = set[str]()
        for finder in FINDERS:
            if finder.reads:
                snapshot = seen(known, now=NOON, chosen=("All", "servers"))
                read.clear()
                list(finder.find(snapshot))
                hidden = read - {*finder.reads, CURRENT_USER}
                self.assertEqual(set(), hidden, finder)
                found |= read
        self.assertLess({"peers", "groups", "users", "accounts", "policies"}, found)
