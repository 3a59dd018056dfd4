"""The way of a body to the page, and what is withdrawn when a step fails."""

import gzip
from functools import partial
from typing import cast

from msgspec import Struct
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.python.monkey import MonkeyPatcher
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.collector import Collector
from api_exporter.collectors.rows import FamilyContext, Row
from api_exporter.exposition.pages import Pages
from api_exporter.exposition.text import Family, Metric, labels
from api_exporter.netbird import resources
from api_exporter.netbird.bodies import NO_CONTEXT, DecodeContext
from api_exporter.netbird.resource_state import LastBody
from api_exporter.netbird.resources import CURRENT_USER
from api_exporter.ports import Compute, ResponseBody, UpstreamError
from api_exporter.refresh import pipeline
from api_exporter.refresh.compute import compute_at_once
from api_exporter.refresh.pipeline import Log, Pipeline
from api_exporter.refresh.states import States
from api_exporter.subjects.table import RESOURCE_BY_NAME
from tests.inventories import inventory_of
from tests.parts import DelayedCompute, clocks_of
from tests.refresh.recorded_log import RecordedLog

METRIC = Metric(name="netbird_api_things", help="Things.", source="groups[]")
OTHER = Metric(name="netbird_api_others", help="Others.", source="groups[]")


def family(metric: Metric, known: FamilyContext) -> Family:
    groups = known.inventory.groups or ()
    return Family(metric, [(labels(id=group.id), 1) for group in groups])


class Bench:
    """Bodies of groups, published by two collectors; the first may have a defect."""

    def __init__(
        self,
        page_max_bytes: int = 10_000,
        log: Log | None = None,
        compute: Compute = compute_at_once,
    ) -> None:
        self.body = b"[]"
        self.packed = False
        self.held = 0
        self.defect = False
        self.failures: list[str] = []
        self.clock = Clock()
        self.pages = Pages(["things", "others"])
        intervals = dict.fromkeys(RESOURCE_BY_NAME.keys() - {CURRENT_USER}, 300.0)
        self.states = States(intervals, log=lambda *_: None)
        self.pipeline = Pipeline(
            states=self.states,
            collectors=[
                Collector(
                    "things", (Row(METRIC, ("groups",), self.make),), default=True
                ),
                Collector("others", (Row(OTHER, ("groups",), family),), default=True),
            ],
            inventory=inventory_of(),
            fetch=self.fetch,
            pages=self.pages,
            compute=compute,
            clocks=clocks_of(self.clock),
            page_max_bytes=page_max_bytes,
            on_collector_failed=self.failures.append,
            logs={} if log is None else {"groups": log},
        )

    def fetch(self, _path: str, _patience: float) -> Deferred[ResponseBody]:
        self.held += 1

        def close() -> None:
            self.held -= 1

        data = gzip.compress(self.body) if self.packed else self.body
        return succeed(ResponseBody(data, self.packed, 1000, close))

    def make(self, metric: Metric, known: FamilyContext) -> Family:
        if self.defect:
            raise ZeroDivisionError("oops")
        return family(metric, known)

    def read(self, *ids: str) -> Deferred[LastBody]:
        listed = ",".join(f'{{"id":"{id_}"}}' for id_ in ids)
        return self.read_body("groups", f"[{listed}]".encode())

    def read_body(self, name: str, body: bytes) -> Deferred[LastBody]:
        self.body, resource = body, RESOURCE_BY_NAME[name]
        read = Deferred.fromCoroutine(self.pipeline.read(resource, resource.path, 1))
        self.turn()
        return read

    def withdraw(self) -> Deferred[None]:
        self.states.change("groups", body=None)
        withdrawing = Deferred.fromCoroutine(self.pipeline.withdraw("groups"))
        self.turn()
        return withdrawing

    def turn(self) -> None:
        for _ in range(50):
            self.clock.advance(0)

    def compute_all(self, compute: DelayedCompute) -> None:
        self.turn()
        while compute.waiting:
            compute.go()
            self.turn()

    def published(self) -> list[str]:
        page = b"".join(p.text for p in self.pages.whole().pieces).decode()
        return [line for line in page.splitlines() if not line.startswith("#")]


def samples(*ids: str) -> list[str]:
    return [f'{m.name}{{id="{id_}"}} 1' for m in (METRIC, OTHER) for id_ in ids]


class PackedTests(SynchronousTestCase):
    def test_unpacked(self) -> None:
        """Packed bodies are decoded, and unpacked for a log."""
        recorded = RecordedLog()
        for log in (None, recorded):
            bench = Bench(10_000, log)
            for bench.packed in (False, True):
                self.successResultOf(bench.read("a"))
                self.assertEqual(samples("a"), bench.published())
                self.assertEqual(0, bench.held)
        self.assertEqual([b'[{"id":"a"}]'] * 2, recorded.bodies)

    def test_times(self) -> None:
        """Peers are not decoded again if only times of connected ones have moved."""
        text = '[{"connected":true,"id":"p","ip":"%s","last_seen":"%s"}]'
        last: LastBody | None = None
        known = NO_CONTEXT
        for minute, ip, is_new, is_decoded in (
            (0, 1, True, True),
            (5, 1, False, True),
            (10, 1, False, False),
            (15, 1, False, False),
            (20, 2, True, True),
            (25, 2, False, True),
        ):
            time = f"2026-01-01T00:{minute:02}:00Z"
            body = ResponseBody((text % (f"100.64.0.{ip}", time)).encode())
            take_body = partial(next, iter([body]))
            resource, before = RESOURCE_BY_NAME["peers"], last
            last, records = pipeline.decode(resource, "", take_body, known, last)
            self.assertEqual(is_new, records is not None, minute)
            kept = before is not None and last.recognized is before.recognized
            self.assertEqual(is_decoded, not kept, minute)
            if records is not None:
                known = DecodeContext(
                    cast(tuple[Struct, ...], records), last.recognized
                )

    def test_refused(self) -> None:
        """The memory of a body is freed if it cannot be unpacked or decoded."""
        recorded = RecordedLog()
        for log in (None, recorded):
            bench = Bench(10_000, log)
            bench.packed = True
            for ids, reason in ((["a" * 2000], "too_large"), (["\\"], "decode")):
                failed = self.failureResultOf(bench.read(*ids), UpstreamError)
                self.assertEqual((reason, 0), (failed.value.reason, bench.held))
        self.assertEqual([b'[{"id":"\\"}]'], recorded.bodies)


def _no_memory(*_: object, **__: object) -> None:
    raise MemoryError


class DefectTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.bench = Bench()

    def test_apart(self) -> None:
        """A collector with a defect loses its own families, until it succeeds."""
        failures = 0
        for defect, id_, logged in (
            *((False, "a", 0), (True, "b", 1), (True, "b", 0), (True, "c", 0)),
            *((False, "c", 0), (False, "c", 0), (True, "d", 1)),
        ):
            self.bench.defect = defect
            failures += defect
            self.successResultOf(self.bench.read(id_))
            self.assertEqual(samples(id_)[defect:], self.bench.published())
            self.assertEqual(["things"] * failures, self.bench.failures)
            self.assertEqual(logged, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_no_memory(self) -> None:
        """Without memory for a page, the refresh fails, and the old pages stay."""
        self.successResultOf(self.bench.read("a"))
        with MonkeyPatcher((pipeline, "render_page", _no_memory)):
            self.failureResultOf(self.bench.read("b"), MemoryError)
        self.assertEqual(
            (samples("a"), []), (self.bench.published(), self.bench.failures)
        )
        self.successResultOf(self.bench.read("b"))
        self.assertEqual(samples("b"), self.bench.published())


class TurnTests(SynchronousTestCase):
    def test_one_by_one(self) -> None:
        """A list that is published again does not replace another one's new records."""
        compute = DelayedCompute()
        bench = Bench(compute=compute)
        bench.read("a")
        bench.compute_all(compute)
        read = bench.read_body("routes", b'[{"id":"r"}]')
        bench.turn()  # the body waits for its computation
        again = Deferred.fromCoroutine(bench.pipeline.republish("groups"))
        bench.compute_all(compute)
        self.successResultOf(read)
        self.successResultOf(again)
        inventory = bench.pipeline.inventory
        self.assertEqual(["r"], [route.id for route in inventory.records["routes"]])
        self.assertEqual(samples("a"), bench.published())


class TooManyNamesTests(SynchronousTestCase):
    def test_not_published(self) -> None:
        """A list whose records name too many objects is not published."""
        self.patch(resources, "MAX_NAMED_IDS", 5)
        bench = Bench()
        for name, body, problem in (
            ("routes", b'{"id":"r","peer_groups":["a","b","c","d","e"]}', ""),
            (
                *("routes", b'{"id":"s","peer_groups":["a","b","c","d","e","f"]}'),
                "name 6 objects; the maximum is 5",
            ),
        ):
            read = bench.read_body(name, b"[%b]" % body)
            if not problem:
                self.successResultOf(read)
                continue
            failure = self.failureResultOf(read, UpstreamError).value
            self.assertEqual("too_large", failure.reason)
            self.assertIn(problem, str(failure))
        inventory = bench.pipeline.inventory
        self.assertEqual(["r"], [route.id for route in inventory.records["routes"]])


class TooLongTests(SynchronousTestCase):
    def setUp(self) -> None:
        one = Bench()
        self.successResultOf(one.read("a"))
        self.bench = Bench(page_max_bytes=sum(one.pages.lengths().values()))
        self.successResultOf(self.bench.read("a"))

    def fails(self, *ids: str) -> None:
        failure = self.failureResultOf(self.bench.read(*ids), UpstreamError)
        self.assertEqual("too_large", failure.value.reason)
        self.assertIn("PAGE_MAX_BYTES=", str(failure.value))
        self.assertFalse(failure.value.retryable)

    def test_old(self) -> None:
        """A page that would be too long is not published at all."""
        for ids in (("a", "b"), ("bb",), ("a", "b")):
            self.fails(*ids)
            self.assertEqual(samples("a"), self.bench.published())
            known = self.bench.pipeline.inventory.groups
            self.assertEqual(["a"], [group.id for group in known or ()])

    def test_shorter(self) -> None:
        """A shorter page is published, and so is the previous one when it returns."""
        for id_ in "ba":
            self.fails("b", "c")
            self.successResultOf(self.bench.read(id_))
            self.assertEqual(samples(id_), self.bench.published())

    def test_withdrawal(self) -> None:
        """Metrics whose next page would be too long can be withdrawn."""
        self.fails("a", "b")
        self.successResultOf(self.bench.withdraw())
        self.assertEqual([], self.bench.published())
