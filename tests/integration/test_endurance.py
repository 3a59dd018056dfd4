"""An hour of operation, compressed: what is there at its end was there at its start.

Timers go by a Clock, bytes over loopback HTTP, both ways with the real client and the
real server. The upstream changes and fails at random, from a seed.
"""

import gc
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text
from treq.client import HTTPClient
from twisted.internet import reactor
from twisted.internet.task import Clock, deferLater
from twisted.logger import ILogObserver, LogEvent, LogLevel, globalLogPublisher
from twisted.python import log
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool
from twisted.web.http import datetimeToString
from twisted.web.http_headers import Headers
from twisted.web.resource import Resource
from twisted.web.server import Request, Site
from zope.interface import implementer

from api_exporter.daemon import logs
from api_exporter.demo.api import DemoApi
from api_exporter.netbird.resources import RESOURCE_BY_NAME, UP
from api_exporter.ports import ResponseBody
from api_exporter.refresh.network import AccountNetwork, NetworkOptions
from api_exporter.serving.site import BoundedSite
from api_exporter.settings import parsers
from api_exporter.settings.token import Token
from api_exporter.upstream.fetcher import Fetcher, FetchOptions
from api_exporter.web.metrics import Metrics
from api_exporter.world import World
from simulation.company.network import PEERS, SimulatedNetwork
from tests import tries
from tests.integration.ports import listening
from tests.integration.reaching import SECRET
from tests.integration.test_failures import reset
from tests.parts import quota, site_context
from tests.scripted import Answer, says

START = 1_800_014_400.0
HOUR = 3600
LASTING = tries(HOUR)
PEERS_PERIOD = 3.0
"""Seconds: a refresh of the peers is one step of the test, with one scrape."""

OTHERS_PERIOD = 30.0
MAX_AGE = 20.0
"""Seconds: some outages are longer, so that metrics are withdrawn and return."""

WARM_UP = 200
"""Rounds after which caches and the allocator have grown to what they need."""

GROWTH = 5 * 1024 * 1024
"""Bytes of resident memory that may come on top afterwards."""

OUTAGE = 4 * MAX_AGE / PEERS_PERIOD
"""Rounds of the outage that comes for certain, the first of every two hundred."""

SPEED = 50
"""How much faster the network lives, so that its machines come and go."""

SIZES = (60, 60, 60, 75, 40, 1, 0)
MARKS = (b"", b"-b", b"-\xc3\xa9", rb"-\"", rb"-\\", rb"-\n", rb"-\u2028")
"""Endings of names, as they stand in JSON."""

FAULTS: tuple[Answer, ...] = (
    says(500, b'{"message":"oops"}'),
    says(502, b"<html></html>", "text/html"),
    says(401, b'{"message":"token invalid"}'),
    says(403, b'{"message":"permission denied"}'),
    says(404, b'{"message":"not found"}'),
    says(200, b'[{"id":"a"'),
    says(200, b'[{"id":"a"},{"id":5},7,null]'),
    says(200, b"null"),
    says(422, b'{"message":"unprocessable"}'),
    reset,
)


OTHERS = frozenset({"/api/groups", "/api/users", "/api/networks", "/api/policies"})
"""The paths that may fail while the peers do not."""

NAME = re.compile(rb'("name":"(?:[^"\\]|\\.)*)"')


class Renaming(SimulatedNetwork):
    """A network whose names end in a mark that changes."""

    mark = b""

    def body(self, path: str, at: float) -> Iterator[bytes] | None:
        pieces = super().body(path, at)
        if pieces is None or not self.mark:
            return pieces
        mark = self.mark
        return (NAME.sub(lambda m: m[1] + mark + b'"', piece) for piece in pieces)


class UnsteadyApi(Resource):
    """The simulated API, whose network changes and which fails at random."""

    isLeaf = True

    def __init__(self, now: Callable[[], float], chance: Random) -> None:
        super().__init__()
        self._chance, self._now = chance, now
        self._networks = {size: Renaming(size) for size in set(SIZES)}
        self._apis = {
            size: DemoApi({SECRET: network}, now=now)
            for size, network in self._networks.items()
        }
        self._size = SIZES[0]
        self._fault: Answer | None = None
        self._faulty: frozenset[str] | None = None
        self.asked = self.failed = 0

    def change(self, number: int) -> None:
        """Recover or fail, grow or shrink, rename: once in each step."""
        chance = self._chance
        if number % 200 < OUTAGE:  # left to chance, a whole hour may be without one
            self._fault, self._faulty = FAULTS[0], None
        elif self._fault is not None:
            if chance.random() < 0.2:
                self._fault = None
        elif chance.random() < 0.05:
            self._fault = chance.choice(FAULTS)
            self._faulty = chance.choice((None, frozenset({PEERS}), OTHERS))
        if chance.random() < 0.2:
            self._size = chance.choice(SIZES)
            self._networks[self._size].mark = chance.choice(MARKS)

    def settle(self) -> None:
        """Be as at the start."""
        self._size, self._fault = SIZES[0], None
        self._networks[self._size].mark = b""

    def render(self, request: Request) -> bytes | int:
        self.asked += 1
        request.setHeader("Date", datetimeToString(self._now()))
        path = request.path.decode()
        if self._fault is not None and (self._faulty is None or path in self._faulty):
            self.failed += 1
            return self._fault(request)
        answer: bytes | int = self._apis[self._size].render(request)
        return answer


@implementer(ILogObserver)
class Defects:
    """Keeps what should not happen, and of all else nothing: that would be growth."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def __call__(self, event: LogEvent) -> None:
        if event["log_level"] >= LogLevel.error:
            self._lines.append(logs.text_line(event))


class EnduranceTests(TestCase):
    timeout = 480

    def setUp(self) -> None:
        self.chance = Random(20_261_121)
        self.clock = Clock()
        self.defects: list[str] = []
        # A worker of trial's keeps each line until the test ends: that would be growth.
        for observer in log.theLogPublisher.observers:
            log.theLogPublisher.removeObserver(observer)
            self.addCleanup(log.theLogPublisher.addObserver, observer)
        noticed = Defects(self.defects)
        globalLogPublisher.addObserver(noticed)
        self.addCleanup(globalLogPublisher.removeObserver, noticed)
        self.api = UnsteadyApi(self.now, self.chance)
        self.pool = HTTPConnectionPool(reactor)
        self.pool.retryAutomatically = False
        self.scraping = HTTPConnectionPool(reactor)
        self.scraper = HTTPClient(Agent(reactor, pool=self.scraping))
        self.running_requests = self.scrapes = self.withdrawn = 0
        others = dict.fromkeys(RESOURCE_BY_NAME, OTHERS_PERIOD)
        self.network = network = AccountNetwork(
            fetch=self.fetch,
            quota=quota(parsers.collectors("default"), {**others, UP: PEERS_PERIOD}),
            world=World(self.clock, self.now, Random(1).random),
            registry=CollectorRegistry(),
            options=NetworkOptions(metrics_max_age=MAX_AGE),
        )
        self.telemetry = network.telemetry
        self.upstream = Fetcher(
            agent=Agent(reactor, pool=self.pool),
            token=lambda: Token(SECRET),
            on_attempt=self.telemetry.count_attempt,
            options=FetchOptions(
                url=f"http://127.0.0.1:{listening(self, Site(self.api))}",
                timeout=30,
                attempts=2,
            ),
            world=World(self.clock, self.now, Random(2).random),
        )
        tree = Resource()
        context = site_context(self.clock)
        metrics = Metrics(
            network.pages,
            network.telemetry.registry,
            context.process.registry,
            context=context,
        )
        tree.putChild(b"metrics", metrics)
        self.site = BoundedSite(tree, reactor)
        self.page = f"http://127.0.0.1:{listening(self, self.site)}/metrics"

    def now(self) -> float:
        return START + SPEED * self.clock.seconds()

    async def fetch(self, path: str, patience: float) -> ResponseBody:
        self.running_requests += 1
        try:
            return await self.upstream.fetch(path, patience)
        finally:
            self.running_requests -= 1

    async def settled(self) -> None:
        """Run everything that is due, with its retries, within a step."""
        for _ in range(20_000):
            self.clock.advance(0)
            due = [
                call
                for call in self.clock.getDelayedCalls()
                if call.getTime() <= self.clock.seconds()
            ]
            if not due and not self.running_requests:
                return
            if self.running_requests and not due:
                self.clock.advance(0.005)  # pauses between attempts pass, too
                await deferLater(reactor, 0.0005)
        self.fail("never quiet")

    async def round(self, number: int) -> None:
        """Let one period of the peers pass, then scrape."""
        self.clock.advance(PEERS_PERIOD)
        await self.settled()
        openmetrics = number % 2 == 0
        for encoding in ("identity", "gzip"):
            body = await self.scrape(openmetrics=openmetrics, encoding=encoding)
            if number % 25 == 0:  # To read all of it takes longer than all the rest.
                list((parse_openmetrics if openmetrics else parse_text)(body.decode()))

    async def scrape(self, *, openmetrics: bool, encoding: str) -> bytes:
        headers = Headers({"Accept-Encoding": [encoding]})
        if openmetrics:
            headers.addRawHeader("Accept", "application/openmetrics-text;version=1.0.0")
        answer = await self.scraper.get(self.page, headers=headers, unbuffered=True)
        self.assertEqual(200, answer.code)
        body = await answer.content()  # unpacked, if it came packed
        self.scrapes += 1
        self.withdrawn += b"netbird_api_peers{" not in body
        names = re.findall(rb"^# TYPE (\S+)", body, re.MULTILINE)
        self.assertEqual(len(names), len(set(names)))
        return body

    async def standing(self) -> dict[str, int]:
        """Return what must not grow, while all is idle and the upstream is well."""
        self.api.settle()
        for number in range(1, 3 * int(OTHERS_PERIOD / PEERS_PERIOD)):
            await self.round(number)
        await self.pool.closeCachedConnections()
        await self.scraping.closeCachedConnections()
        for _ in range(200):
            if not self.site.connections:
                break
            await deferLater(reactor, 0.01)
        await deferLater(reactor, 0.05)
        gc.collect()
        statm = Path("/proc/self/statm").read_text().split()
        return {
            "timers": len(self.clock.getDelayedCalls()),
            "timers of the reactor": len(reactor.getDelayedCalls()),
            "connections": len(reactor.getReaders()) + len(reactor.getWriters()),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "clients": len(self.site.connections) + len(self.site.running_requests),
            "memory": int(statm[1]) * os.sysconf("SC_PAGE_SIZE"),
        }

    async def test_growth(self) -> None:
        """After change and failure nothing has grown; pages are sound."""
        self.network.startService()
        for number in range(WARM_UP):
            self.api.change(number)
            await self.round(number)
        before = await self.standing()
        for number in range(int(LASTING / PEERS_PERIOD)):
            self.api.change(number)
            await self.round(number)
        after = await self.standing()
        grown = after.pop("memory") - before.pop("memory")
        self.assertEqual(before, after)
        self.assertLess(grown, GROWTH)
        # The test must have made these things happen.
        self.assertGreater(self.api.asked, LASTING * 3000 / HOUR)
        self.assertGreater(self.api.failed, LASTING * 150 / HOUR)
        self.assertGreater(self.scrapes, 2 * LASTING / PEERS_PERIOD)
        self.assertGreater(self.withdrawn, 0)
        refreshed = [s.error for s in self.telemetry.freshness.values()]
        self.assertEqual([None] * len(refreshed), refreshed)
        self.assertEqual([], self.defects)
        await self.network.stopService()
        self.assertEqual([], self.clock.getDelayedCalls())
