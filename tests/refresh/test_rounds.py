"""Rounds of which one ends before all that it brings is published."""

from collections.abc import Iterator

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.table import Collector
from api_exporter.exposition.pages import Pages
from api_exporter.exposition.text import Family, Metric, labels, single
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import BY_NAME
from api_exporter.refresh.rounds import Known, Rounds
from api_exporter.refresh.slices import Slicer

METRIC = Metric(name="netbird_api_things", help="Things.", source="peers[]")
GROUPS = BY_NAME["groups"]


class Bench:
    """Rounds of groups, published by a collector that may have a defect."""

    def __init__(self) -> None:
        self.body = b"[]"
        self.defect = False
        self.clock = Clock()
        self.pages = Pages(["things"])
        self.rounds = Rounds(
            collectors=[Collector("things", ("groups",), self.measure, (METRIC,))],
            inventory=Inventory(),
            fetch=lambda _path, _patience: succeed(self.body),
            pages=self.pages,
            slicer=Slicer(self.clock),
        )

    def measure(self, inventory: Inventory) -> Iterator[Family | None]:
        yield None
        if self.defect:
            raise ZeroDivisionError("oops")
        for group in inventory.groups or ():
            yield single(METRIC, 1, labels(id=group.id))

    def read(self, body: bytes) -> Deferred[Known]:
        """A round that brings this body."""
        self.body = body
        reading = Deferred.fromCoroutine(self.rounds.read(GROUPS, GROUPS.path, 1))
        for _ in range(20):
            self.clock.advance(0)
        return reading

    def page(self) -> bytes:
        """What is published."""
        return b"".join(p.text for p in self.pages.whole().pieces)


class UnpublishedTests(SynchronousTestCase):
    def test_the_same_records(self) -> None:
        """What could not be published is published when it comes again."""
        bench = Bench()
        self.successResultOf(bench.read(b'[{"id":"a"}]'))
        bench.defect = True
        self.failureResultOf(bench.read(b'[{"id":"b"}]'), ZeroDivisionError)
        self.assertIn(b'id="a"', bench.page())
        bench.defect = False
        self.successResultOf(bench.read(b'[{"id":"b"}]'))
        self.assertIn(b'id="b"', bench.page())

    def test_the_last_body(self) -> None:
        """So is what was published before that."""
        bench = Bench()
        self.successResultOf(bench.read(b'[{"id":"a"}]'))
        bench.defect = True
        self.failureResultOf(bench.read(b'[{"id":"b"}]'), ZeroDivisionError)
        bench.defect = False
        self.successResultOf(bench.read(b'[{"id":"a"}]'))
        self.assertEqual(["a"], [g.id for g in bench.rounds.inventory.groups or ()])
