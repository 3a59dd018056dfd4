"""The composition root: the one place where everything is put together."""

import os
import random
import resource
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from twisted.application.service import MultiService, Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.client import Agent, HTTPConnectionPool

from api_exporter import start
from api_exporter.credential import Rereading, Source
from api_exporter.history import History
from api_exporter.inventory import Inventory
from api_exporter.listen import Listener
from api_exporter.options import Options
from api_exporter.pages import Pages
from api_exporter.ports import Attempt
from api_exporter.refresh import Refresher
from api_exporter.resources import UP
from api_exporter.selection import selection
from api_exporter.settings import Settings
from api_exporter.supervision import Notifier, Supervisor
from api_exporter.telemetry import Telemetry
from api_exporter.timers import LagMeter, Repeated
from api_exporter.upstream import Upstream
from api_exporter.version import this_build
from api_exporter.web import root
from api_exporter.web.health import Health
from api_exporter.web.metrics import Metrics
from api_exporter.web.ready import Ready
from api_exporter.web.site import LOOK_INTERVAL, DrainingSite
from api_exporter.web.status import Status

if TYPE_CHECKING:
    from api_exporter.web.pprof import Pprof

__all__ = ["Options", "assemble", "makeService"]

IDLE_CONNECTION = 70
"""Seconds for which an idle connection to the upstream is kept: proxies grant more."""

OTHER_FILES = 64
"""Open files beside the clients' connections: logs, the upstream, the event loop's."""

REACTOR_THREADS = 4
"""They resolve names; each costs address space."""

log = Logger()


def makeService(options: Options) -> MultiService:
    """What `twistd` calls. Wrong settings end it here, before it becomes a daemon."""
    from twisted.internet import reactor  # noqa: PLC0415 - installed by now, not before

    assert isinstance(reactor, PosixReactorBase)
    assert options.parent is not None
    # Twisted's timers go by the wall clock: set back an hour, it stops them for one.
    reactor.seconds = time.monotonic
    configured = start.configured(options)
    checked = configured.settings
    exporter = start.Exporter(start.log_observer(checked, options.parent, reactor))
    simulated = start.simulated(configured, reactor)
    if simulated is not None:
        exporter.addService(simulated)
    for service in assemble(checked, reactor, pprof=options["enable-pprof"]):
        exporter.addService(service)
    start.explain_failures(options.parent)
    start.end_well(reactor)
    return exporter


def client(
    checked: Settings,
    reactor: PosixReactorBase,
    observe: Callable[[Attempt], None],
) -> tuple[Upstream, HTTPConnectionPool]:
    """The upstream's client, and its connections, which are to be closed in the end."""
    reactor.suggestThreadPoolSize(REACTOR_THREADS)
    pool = HTTPConnectionPool(reactor)
    pool.cachedConnectionTimeout = IDLE_CONNECTION
    pool.retryAutomatically = False  # our own retries are counted
    upstream = Upstream(
        agent=Agent(reactor, connectTimeout=checked.http_timeout, pool=pool),
        url=checked.upstream_api_url,
        token=token_source(checked),
        timeout=checked.http_timeout,
        attempts=checked.api_retry_attempts,
        clock=reactor,
        now=time.time,
        jitter=random.random,
        observe=observe,
    )
    return upstream, pool


def token_source(checked: Settings) -> Source:
    """Where the token comes from; says so where it cannot be right."""
    file = checked.upstream_api_token_file
    if file is not None:
        source: Source = Rereading(
            file, lambda why: log.warn("the token file cannot be read: {why}", why=why)
        )
    else:
        token = checked.upstream_api_token
        assert token is not None  # one of the two is set
        source = lambda: token  # noqa: E731
    if source().mistyped():
        log.warn("the token looks like NetBird's but its checksum is wrong: mistyped?")
    return source


def assemble(
    checked: Settings, reactor: PosixReactorBase, *, pprof: bool
) -> list[Service]:
    """All parts, wired, in the order in which they start; they stop in reverse."""
    started = reactor.seconds()
    build = this_build()
    selected = selection(checked.collectors, checked.refresh_intervals)
    pages = Pages([collector.name for collector in selected.collectors])
    telemetry = Telemetry(
        registry=CollectorRegistry(), build=build, periods=selected.periods
    )
    telemetry.watch_threads(reactor.getThreadPool())
    history = History(period=selected.periods[UP])
    upstream, pool = client(checked, reactor, telemetry.attempted)
    refresher = Refresher(
        selection=selected,
        metrics_max_age=checked.metrics_max_age,
        inventory=Inventory(personal=checked.expose_personal_data),
        fetch=upstream.fetch,
        pages=pages,
        telemetry=telemetry,
        clock=reactor,
        now=time.time,
        jitter=random.random,
        observe=lambda known: history.observe(time.time(), known.peers or ()),
    )
    profiles = None
    if pprof:  # nobody else pays for importing the profilers
        from api_exporter.web import pprof as web_pprof  # noqa: PLC0415

        profiles = web_pprof.pprof(reactor)
    tree = root(
        status=Status(
            telemetry=telemetry,
            pages=pages,
            history=history,
            inventory=lambda: refresher.inventory,
            collectors=selected.collectors,
            version=build.details,
            upstream_url=checked.upstream_api_url,
            metrics_path=checked.metrics_path,
            pprof=pprof,
            uptime=lambda: reactor.seconds() - started,
            now=time.time,
        ),
        health=Health(
            telemetry=telemetry,
            version=build.version,
            upstream_url=checked.upstream_api_url,
            uptime=lambda: reactor.seconds() - started,
        ),
        ready=Ready(telemetry=telemetry, now=time.time),
        metrics=Metrics(pages=pages, telemetry=telemetry, seconds=reactor.seconds),
        metrics_path=checked.metrics_path,
        pprof=profiles,
    )

    def ready(address: str) -> None:
        if not address.startswith("http"):
            log.info("{build} is at {address}", build=build, address=address)
            return
        log.info(
            "{build} is at {address}/ and its metrics at {address}{path}",
            build=build,
            address=address,
            path=checked.metrics_path,
        )
        if pprof:
            log.info("profiles are at {address}/debug/pprof/", address=address)

    site = DrainingSite(tree, max_connections(checked.max_connections))
    listener = Listener(
        addresses=checked.listen_address,
        site=site,
        reactor=reactor,
        ready=ready,
    )
    services = [
        listener,
        Connections(pool),
        LagMeter(reactor, telemetry.reactor_lag.observe),
        Repeated(LOOK_INTERVAL, site.look, reactor),
        Once(upstream.probe),
        refresher,
        Notifier(
            Supervisor(os.environ), lambda: telemetry.summary(time.time()), reactor
        ),
    ]
    return [*services, Profiles(profiles)] if profiles is not None else services


def max_connections(wanted: int) -> int:
    """As many as the limit of open files has room for beside what else we open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = max(1, soft - OTHER_FILES)
    if soft == resource.RLIM_INFINITY or wanted <= room:
        return wanted
    log.warn(
        "MAX_CONNECTIONS is {wanted}, but {soft} open files leave room for {room}",
        wanted=wanted,
        soft=soft,
        room=room,
    )
    return room


class Profiles(Service):
    """Ends running profiles at the end."""

    def __init__(self, profiles: "Pprof") -> None:
        self._profiles = profiles

    def stopService(self) -> None:
        super().stopService()
        self._profiles.stop()


class Connections(Service):
    """Closes the upstream's idle connections at the end."""

    def __init__(self, pool: HTTPConnectionPool) -> None:
        self._pool = pool

    def stopService(self) -> Deferred[None]:
        super().stopService()
        closed: Deferred[None] = self._pool.closeCachedConnections()
        return closed


class Once(Service):
    """Does something once, at the start, and gives it up at the end."""

    def __init__(self, work: Callable[[], Deferred[None]]) -> None:
        self._work = work
        self._doing: Deferred[None] | None = None

    def startService(self) -> None:
        super().startService()
        self._doing = self._work().addErrback(_cancelled)

    def stopService(self) -> Deferred[None] | None:
        super().stopService()
        if self._doing is not None:
            self._doing.cancel()
        return self._doing


def _cancelled(failure: Failure) -> None:
    failure.trap(CancelledError)
