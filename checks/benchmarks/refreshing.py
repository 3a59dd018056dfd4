"""Full refreshes in a separate process: `checks.benchmarks.refreshing URL ROUNDS`.

Settings may follow, such as `PEER_DETAIL=none`. It runs the exporter's own code, reads
the processor's clock between the stages, and prints one JSON object.
"""

import gc
import json
import random
import statistics
import sys
import time
import urllib.request

from prometheus_client import CollectorRegistry
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.task import LoopingCall, deferLater, react

from api_exporter.attention.finding import Snapshot
from api_exporter.clocks import Clocks
from api_exporter.daemon.threads import daemon_threads
from api_exporter.demo.server import DEMO_TOKEN
from api_exporter.exposition.rendering import EMPTY_PAGE, RenderedPage, render_page
from api_exporter.netbird.bodies import DecodeContext, unpack
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.record_cache import KnownRecords
from api_exporter.netbird.resources import CURRENT_USER
from api_exporter.ports import Attempt, ResponseBody
from api_exporter.refresh.budget import Budget
from api_exporter.refresh.compute import SWITCH_INTERVAL, AccountCompute, ComputeThread
from api_exporter.refresh.network import AccountNetwork, NetworkOptions
from api_exporter.refresh.request_plans import RequestPlan
from api_exporter.settings import environment
from api_exporter.subjects import watch
from api_exporter.subjects.table import RESOURCE_BY_NAME, selection
from api_exporter.subjects.watch import FindingsKeeper, KeptFindings, update_findings
from api_exporter.upstream.client import Client
from checks.benchmarks.client import MAX_WAIT
from tests.inventories import inventory_of

NEVER = 1e6
"""Seconds of an interval in which the exporter starts no refresh by itself."""

LAG_INTERVAL = 0.002
"""Seconds between two measurements of the event loop's lag."""

STAGES = ("digest", "decode", "make", "look")


class GarbageCollections:
    """The processor time of the garbage collector."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._begin = 0.0
        gc.callbacks.append(self._called)

    def _called(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._begin = time.process_time()
        else:
            self.seconds += time.process_time() - self._begin


def _keep_findings(_: Snapshot, __: str, last: KeptFindings) -> KeptFindings:
    """Return the last findings: the search for findings is measured separately."""
    return last


class Exporter:
    """A network with a real client, whose refreshes the caller starts."""

    def __init__(self, url: str, settings: dict[str, str]) -> None:
        self.url = url
        self.receiving = 0.0
        self._made: dict[str, RenderedPage] = {}
        environ = {
            "UPSTREAM_API_URL": url,
            "UPSTREAM_API_TOKEN": DEMO_TOKEN,
            **settings,
        }
        checked = environment.read_settings(environ).accounts[""]
        self.inventory = inventory_of(detail=checked.peer_detail)
        assert isinstance(reactor, PosixReactorBase)
        self.client = Client(
            checked,
            reactor,
            clocks=Clocks(reactor, time.time, random.random, ""),
            on_attempt=self._attempted,
        )
        thread = ComputeThread(reactor, daemon_threads(1, "compute"))
        compute = AccountCompute(thread, self._fetch)
        self.network = AccountNetwork(
            fetch=compute.fetch,
            plan=RequestPlan(
                Budget(),
                selection(
                    checked.collectors,
                    dict.fromkeys(RESOURCE_BY_NAME, NEVER),
                    metric_filter=checked.metric_filter(),
                ),
                "",
                "",
            ),
            clocks=Clocks(reactor, time.monotonic, random.random, ""),
            registry=CollectorRegistry(),
            compute=compute,
            options=NetworkOptions(detail=checked.peer_detail),
        )
        watch.update_findings = _keep_findings  # type: ignore[assignment]
        sys.setswitchinterval(SWITCH_INTERVAL)
        gc.freeze()  # as the daemon does after its imports

    def _attempted(self, attempt: Attempt) -> None:
        self.network.count_attempt(attempt)

    async def _fetch(self, path: str, patience: float) -> ResponseBody:
        begin = time.process_time()
        body = await self.client.fetcher.fetch(path, patience)
        # Nothing else runs meanwhile in the first refresh.
        self.receiving += time.process_time() - begin
        return body

    async def refresh_all(self) -> dict[str, float]:
        """Refresh all resources once. Return processor seconds."""
        self.receiving = 0.0
        collections = GarbageCollections()
        wall, cpu = time.monotonic(), time.process_time()
        for name in self.network.states.every:
            self.network.states.change(name, due=None)
        self.network.startService()
        ended = [0.0]
        while min(ended) < wall:
            await deferLater(reactor, 0.005)
            resources = self.network.states.values()
            ended = [known.ended_at or 0.0 for known in resources]
            if time.monotonic() > wall + MAX_WAIT:
                raise TimeoutError("a refresh of all resources does not end")
        spent = time.process_time() - cpu
        gc.callbacks.clear()
        await self.network.stopService()
        states = self.network.states.items()
        failed = [n for n, s in states if not s.up and s.supported is not False]
        if failed:
            raise RuntimeError(f"not refreshed: {failed}")
        return {
            "cpu": spent,
            "wall": max(ended) - wall,
            "receive": self.receiving,
            "gc": collections.seconds,
        }

    async def longest_stall(self) -> float:
        """Return the longest block of the event loop during a refresh, in seconds."""
        longest = 0.0
        last = time.monotonic()

        def look() -> None:
            nonlocal longest, last
            now = time.monotonic()
            longest = max(longest, now - last - LAG_INTERVAL)
            last = now

        watch = LoopingCall(look)
        watch.start(LAG_INTERVAL)
        await self.refresh_all()
        watch.stop()
        return longest

    def tick(self) -> None:
        """Advance the time of the simulated API, so that every body changes."""
        with urllib.request.urlopen(f"{self.url}/tick") as answer:
            answer.read()

    async def stages(self, rounds: int) -> dict[str, float]:
        """Return the median processor seconds of each stage, without the event loop.

        As in a refresh, only changed records are rendered, and `update_findings` runs
        after each resource, changed or not.
        """
        watch = time.process_time
        inventory = self.inventory
        before: dict[str, int] = {}
        seen: dict[str, KnownRecords] = {name: {} for name in RESOURCE_BY_NAME}
        every: list[dict[str, float]] = []
        attention = FindingsKeeper(
            lambda: inventory,
            states=self.network.states,
            now=time.time,
            clock=time.monotonic,
        )
        for _ in range(rounds + 1):
            spent = dict.fromkeys(STAGES, 0.0)
            every.append(spent)
            for resource in self.network.selection.resources:
                if resource.name == CURRENT_USER:  # NetBird refuses a service user
                    continue
                path = resource.request_path(inventory, time.time())
                assert path is not None
                received = await self.client.fetcher.fetch(path, NEVER)
                received.close()
                body = unpack(received)
                times = [watch()]
                digest = hash(body)
                times.append(watch())
                changed = digest != before.get(resource.name)
                before[resource.name] = digest
                if changed:
                    known = inventory.records.get(resource.name) or ()
                    context = DecodeContext(known, seen[resource.name])
                    decoded = resource.decoder.decode(body, context)
                    seen[resource.name] = decoded.recognized
                    inventory = inventory.replacing(resource.name, decoded.records)
                times.append(watch())
                del body, received
                spent["digest"] += times[1] - times[0]
                spent["decode"] += times[2] - times[1]
                if changed:
                    self._pages_of(resource.name, inventory, spent)
                begin = watch()
                attention.last = update_findings(
                    attention.snapshot(), resource.name, attention.last
                )
                spent["look"] += watch() - begin
            self.tick()
        # All is new in the first pass; the others render changes only.
        return {
            stage: statistics.median(spent[stage] for spent in every[1:])
            for stage in STAGES
        }

    def _pages_of(
        self, resource: str, inventory: Inventory, spent: dict[str, float]
    ) -> None:
        begin = time.process_time()
        for collector in self.network.selection.collectors:
            if resource in collector.reads:
                before = self._made.get(collector.name, EMPTY_PAGE)
                page = render_page(collector.make_families(inventory), before)
                self._made[collector.name] = page
        spent["make"] += time.process_time() - begin


async def measured(
    url: str, rounds: int, settings: dict[str, str]
) -> dict[str, object]:
    exporter = Exporter(url, settings)
    first = await exporter.refresh_all()  # This warms the allocator and all caches.
    full, unchanged, stalls = [], [], []
    for _ in range(rounds):
        exporter.tick()
        full.append(await exporter.refresh_all())
        unchanged.append(await exporter.refresh_all())
    for _ in range(rounds):
        exporter.tick()
        stalls.append(await exporter.longest_stall())
    stages = await exporter.stages(rounds)
    looking = stages.pop("look")
    await exporter.client.stopService()
    texts = [piece.text for piece in exporter.network.pages.whole().pieces]
    return {
        "series": sum(
            not line.startswith(b"#") for text in texts for line in text.splitlines()
        ),
        "bytes": sum(map(len, texts)),
        "first": first,
        "full": full,
        "unchanged": unchanged,
        "stalls": stalls,
        "stages": stages,
        "look": looking,
    }


def main() -> None:
    url, rounds, *words = sys.argv[1:]
    settings = dict(word.split("=", 1) for word in words)

    async def run() -> None:
        print(json.dumps(await measured(url, int(rounds), settings)))

    react(lambda _: Deferred.fromCoroutine(run()))


if __name__ == "__main__":
    main()
