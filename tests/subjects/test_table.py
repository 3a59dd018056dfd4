"""The table of subjects: rows and finders name the resources that they read."""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.finding import Finder, Snapshot
from api_exporter.collectors.collector import MetricFilter
from api_exporter.collectors.rows import FamilyContext, Row
from api_exporter.exposition.text import render
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import CURRENT_USER
from api_exporter.subjects.table import COLLECTORS, FINDERS, RULES
from simulation.company.network import SimulatedNetwork
from tests.attention.looking import NOW
from tests.bodies import inventory
from tests.subjects.test_demo import NAMED, known

DETAIL = frozenset({"servers", "no such group"})
"""PEER_DETAIL. The groups then decide which peers have series and names."""

NOT_NAMED = {
    # The groups of PEER_DETAIL decide only whether the finding names the peer. Each
    # refresh of the peers runs all finders.
    ("logins", "groups"),
    ("peer_approvals", "groups"),
    # It reads only whether a user is known.
    ("unwatched_token", "users"),
}
"""Finders, and a resource that each reads but does not name."""

THRESHOLDS = replace(
    NAMED,
    days={**NAMED.days, "login_routine": 0, "login_soon": 9},
    shares={**NAMED.shares, "login_soon": 1.0},
)
"""Thresholds with which logins of a day are reported."""


class Records(dict[str, tuple[Any, ...]]):
    """Records that note the resources that are read."""

    def __init__(self, records: Any) -> None:
        super().__init__(records)
        self.read = set[str]()

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None, /) -> Any:
        self.read.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return super().__contains__(name)


def rendered(row: Row, known: Inventory, context: FamilyContext | None = None) -> str:
    context = context or FamilyContext(known)
    return "".join(render(row.make(row.metric, context)))


def found(finder: Finder, known: Inventory) -> object:
    """Return the findings soon after many peers went offline at once."""
    snapshot = Snapshot(
        inventory=known,
        thresholds=THRESHOLDS,
        now=known.now,
        seconds=0.0,
        drop_at=known.now,
        important_groups=("All", "servers"),
    )
    return [*finder.find(snapshot)]


class NamedResourcesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.inventories = [
            inventory(),
            inventory(personal=True),
            known(SimulatedNetwork(60), NOW),
        ]

    def resources(self, use: Callable[[Inventory], object]) -> set[str]:
        """Return the resources that are read of any inventory."""
        read = set[str]()
        for each in self.inventories:
            records = Records(each.records)
            use(replace(each, records=records))
            read |= records.read
        # Another current user replaces the tokens, too: see `Inventory.replacing`.
        return read - {CURRENT_USER}

    def test_rows(self) -> None:
        """A row names the resources that its samples are made of, and no others."""
        for detail in (None, DETAIL):
            self.inventories = [replace(i, detail=detail) for i in self.inventories]
            for collector in COLLECTORS:
                chosen = MetricFilter(detail=detail).apply(collector)
                for row in chosen.rows if chosen else ():
                    read = self.resources(partial(rendered, row))
                    self.assertEqual({*row.reads}, read, row.metric.name)

    def test_shared(self) -> None:
        """Rows share the objects of a kind: each has all samples that it has alone."""
        for each in self.inventories:
            for collector in COLLECTORS:
                context = FamilyContext(each)
                for row in collector.rows:
                    together = rendered(row, each, context)
                    self.assertEqual(rendered(row, each), together, row.metric.name)

    def test_time(self) -> None:
        """A row whose samples change by time alone names a resource that ends."""
        changed = set[str]()
        for now in self.inventories:
            later = replace(now, now=now.now + 400 * 86400)
            for row in (row for collector in COLLECTORS for row in collector.rows):
                if rendered(row, now) != rendered(row, later):
                    self.assertFalse(RULES.timed.isdisjoint(row.reads), row.metric.name)
                    changed.update(row.reads)
        self.assertEqual(RULES.timed, RULES.timed & changed)

    def test_finders(self) -> None:
        """A finder names the resources that it reads, except for those above."""
        self.inventories += [replace(i, detail=DETAIL) for i in self.inventories]
        more = set()
        for finder in FINDERS:
            read = self.resources(partial(found, finder))
            name = finder.find.__name__
            self.assertLessEqual({*finder.reads}, read, name)
            more |= {(name, resource) for resource in read - {*finder.reads}}
        self.assertEqual(NOT_NAMED, more)
