"""Full refreshes in a separate process: `checks.benchmarks.refreshing URL ROUNDS`.

Settings may follow, such as `PEER_DETAIL=none`. It runs the exporter's own code and
prints one JSON object.
"""

import gc
import json
import random
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
from api_exporter.ports import Attempt
from api_exporter.refresh.budget import Budget
from api_exporter.refresh.compute import SWITCH_INTERVAL, AccountCompute, ComputeThread
from api_exporter.refresh.network import AccountNetwork
from api_exporter.refresh.request_plans import RequestPlan
from api_exporter.settings import environment
from api_exporter.subjects import watch
from api_exporter.subjects.table import RESOURCE_BY_NAME, selection
from api_exporter.subjects.watch import KeptFindings
from api_exporter.upstream.client import Client
from checks.benchmarks.client import MAX_WAIT

NEVER = 1e6
"""Seconds of an interval in which the exporter starts no refresh by itself."""

LAG_INTERVAL = 0.002
"""Seconds between two measurements of the event loop's lag."""


def _keep_findings(_: Snapshot, __: str, last: KeptFindings) -> KeptFindings:
    """Return the last findings: the search for findings is no part of a refresh."""
    return last


class Exporter:
    """A network with a real client, whose refreshes the caller starts."""

    def __init__(self, url: str, settings: dict[str, str]) -> None:
        self.url = url
        environ = {
            "UPSTREAM_API_URL": url,
            "UPSTREAM_API_TOKEN": DEMO_TOKEN,
            **settings,
        }
        checked = environment.read_settings(environ).accounts[""]
        assert isinstance(reactor, PosixReactorBase)
        self.client = Client(
            checked,
            reactor,
            clocks=Clocks(reactor, time.time, random.random, ""),
            on_attempt=self._attempted,
        )
        thread = ComputeThread(reactor, daemon_threads(1, "compute"))
        compute = AccountCompute(thread, self.client.fetcher.fetch)
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
            settings=checked,
        )
        watch.update_findings = _keep_findings  # type: ignore[assignment]
        sys.setswitchinterval(SWITCH_INTERVAL)
        gc.freeze()  # as the daemon does after its imports

    def _attempted(self, attempt: Attempt) -> None:
        self.network.count_attempt(attempt)

    async def refresh_all(self) -> float:
        """Refresh all resources once. Return processor seconds."""
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
        await self.network.stopService()
        states = self.network.states.items()
        failed = [n for n, s in states if not s.up and s.supported is not False]
        if failed:
            raise RuntimeError(f"not refreshed: {failed}")
        return spent

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


async def measured(
    url: str, rounds: int, settings: dict[str, str]
) -> dict[str, object]:
    exporter = Exporter(url, settings)
    await exporter.refresh_all()  # This warms the allocator and all caches.
    full, unchanged, stalls = [], [], []
    for _ in range(rounds):
        exporter.tick()
        full.append(await exporter.refresh_all())
        unchanged.append(await exporter.refresh_all())
    for _ in range(rounds):
        exporter.tick()
        stalls.append(await exporter.longest_stall())
    await exporter.client.stopService()
    texts = [piece.text for piece in exporter.network.pages.whole().pieces]
    return {
        "series": sum(
            not line.startswith(b"#") for text in texts for line in text.splitlines()
        ),
        "bytes": sum(map(len, texts)),
        "full": full,
        "unchanged": unchanged,
        "stalls": stalls,
    }


def main() -> None:
    url, rounds, *words = sys.argv[1:]
    settings = dict(word.split("=", 1) for word in words)

    async def run() -> None:
        print(json.dumps(await measured(url, int(rounds), settings)))

    react(lambda _: Deferred.fromCoroutine(run()))


if __name__ == "__main__":
    main()
