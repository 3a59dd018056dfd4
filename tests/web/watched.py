"""An exporter of the simulated network, with its status page and a test clock."""

import json
from collections.abc import Container

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.web.resource import Resource

from api_exporter.collectors.collector import EVERYTHING, MetricFilter
from api_exporter.ports import Compute, ResponseBody, UpstreamError
from api_exporter.refresh.budget import Budget
from api_exporter.refresh.compute import compute_at_once
from api_exporter.refresh.network import AccountNetwork
from api_exporter.web.lookup import NewestTable
from api_exporter.web.tree import tree
from simulation.company.network import SimulatedNetwork
from tests.bodies import body as made_up
from tests.parts import (
    CURRENT_USER,
    account_settings,
    attempt,
    clocks_of,
    request_plan,
    site_context,
)

NOON = 1_800_014_400.0
URL = "https://netbird.example"
VERSION = "1.0.0"

QUIET = {
    "api/groups": b"[]",
    "api/users": b'[{"id":"me","is_current":true,"is_service_user":true}]',
    "api/users/me/tokens": b"[]",
}
"""Bodies of a network without findings, of fourteen peers: the next one waits."""


def lost_routes(*networks: str) -> bytes:
    """Return the body of routes to 10.0.0.0/8 whose only peer does not exist."""
    usual = {"network": "10.0.0.0/8", "network_type": "IPv4", "enabled": True}
    routes = [
        {"id": f"{number}", "network_id": network, "peer": "gone", **usual}
        for number, network in enumerate(networks)
    ]
    return json.dumps(routes).encode()


class Watched(AccountNetwork):
    """All parts except the client and the sockets.

    Attributes:
        faults: errors by path.
        bodies: bodies by path, instead of those of the simulated network.
        silent: paths without any response.
        down: the error of all other paths, if any.
    """

    def __init__(
        self,
        *,
        collectors: Container[str] = ("peers", "groups", "users"),
        name: str = "",
        peers: int = 20,
        pprof: bool = False,
        simulated: bool = False,
        metrics_path: str = "/metrics",
        metric_filter: MetricFilter = EVERYTHING,
        compute: Compute = compute_at_once,
        personal: frozenset[str] = frozenset(),
        important_groups: tuple[str, ...] = (),
        lookup: bool = False,
        budget: Budget | None = None,
    ) -> None:
        self.clock = Clock()
        self.network = SimulatedNetwork(peers)
        self.faults: dict[str, UpstreamError] = {}
        self.bodies: dict[str, bytes] = {}
        self.silent: set[str] = set()
        self.down: UpstreamError | None = None
        super().__init__(
            fetch=self.fetch,
            plan=request_plan(collectors, metric_filter=metric_filter, budget=budget),
            clocks=clocks_of(self.clock, self.now, name),
            registry=CollectorRegistry(),
            settings=account_settings(
                upstream_api_url=URL,
                peer_detail=metric_filter.detail,
                expose_personal_data=personal,
                important_groups=important_groups,
            ),
        )
        self.context = site_context(
            self.clock,
            version=VERSION,
            metrics_path=metrics_path,
            simulated=simulated,
            profiles={"debug/pprof/": Resource()} if pprof else {},
            now=self.now,
            compute=compute,
        )
        if lookup:
            self.followers.append(NewestTable(self, compute))
        self.tree = tree({name: self}, self.context, lookup=lookup)

    def now(self) -> float:
        return NOON + self.clock.seconds()

    def fetch(self, path: str, _patience: float = 0) -> Deferred[ResponseBody]:
        """Return a body after a time that grows with its length, or a fault."""
        fetched: Deferred[ResponseBody] = Deferred()
        if path in self.silent:
            return fetched
        fault = self.faults.get(path, self.down)
        body = self.bodies.get(path)
        if path == CURRENT_USER and body is None:
            body = made_up("current_user")
        if body is None:
            body = b"".join(self.network.body(f"/{path}", self.now()) or (b"[]",))
        status = 200
        if fault is not None:
            status, body = int(str(fault)[:3]), b""
        seconds = 0.0214 + len(body) / 2e6
        made = attempt(
            path,
            status,
            started=self.now(),
            received=len(body),
            seconds=seconds,
            error=fault,
        )

        def answer() -> None:
            self.telemetry.count_attempt(made)
            self.states.record_attempt(made)
            if fault is not None:
                fetched.errback(fault)
            else:
                fetched.callback(ResponseBody(body))

        self.clock.callLater(seconds, answer)
        return fetched

    def start(self, seconds: float = 20) -> "Watched":
        """Start and run for some time, with the first refreshes."""
        self.startService()
        return self.advance(seconds)

    def advance(self, seconds: float) -> "Watched":
        """Advance the clock from one due call to the next."""
        end = self.clock.seconds() + seconds
        while due := [c.getTime() for c in self.clock.getDelayedCalls()]:
            if min(due) > end:
                break
            self.clock.advance(max(0.0, min(due) - self.clock.seconds()))
        self.clock.advance(max(0.0, end - self.clock.seconds()))
        return self
