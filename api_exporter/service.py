"""The composition root: the one place where everything is put together."""

import os
import random
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry
from twisted.application.service import MultiService, Service
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger

from api_exporter.collectors.selection import selection
from api_exporter.daemon import life
from api_exporter.daemon.supervision import Notifier, Supervisor
from api_exporter.exposition.pages import Pages
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import UP
from api_exporter.ports import Attempt
from api_exporter.refresh.refresher import Refresher
from api_exporter.serving.listen import Listener
from api_exporter.serving.site import BoundedSite, max_connections
from api_exporter.settings import configuration
from api_exporter.settings.options import Options
from api_exporter.settings.table import Settings
from api_exporter.telemetry.history import History
from api_exporter.telemetry.instruments import Telemetry
from api_exporter.telemetry.lag import LagMeter
from api_exporter.upstream.client import Client
from api_exporter.version import this_build
from api_exporter.web.health import Health
from api_exporter.web.metrics import Metrics
from api_exporter.web.ready import Ready
from api_exporter.web.status.page import Status
from api_exporter.web.tree import root

__all__ = ["Options", "assemble", "makeService"]

log = Logger()


def makeService(options: Options) -> MultiService:
    """What `twistd` calls. Wrong settings end it here, before it becomes a daemon."""
    from twisted.internet import reactor  # noqa: PLC0415 - installed by now, not before

    assert isinstance(reactor, PosixReactorBase)
    assert options.parent is not None
    # Twisted's timers go by the wall clock: set back an hour, it stops them for one.
    reactor.seconds = time.monotonic
    configured = configuration.configured(options)
    settings = configured.settings
    exporter = life.Exporter(life.log_observer(settings, options.parent, reactor))
    simulated = configuration.simulated(configured, reactor)
    if simulated is not None:
        exporter.addService(simulated)
    parts = assemble(
        settings,
        reactor,
        pprof=options["enable-pprof"],
        simulated=simulated is not None,
    )
    for service in parts:
        exporter.addService(service)
    life.explain_failures(options.parent)
    life.end_well(reactor)
    return exporter


def upstream_client(
    settings: Settings,
    reactor: PosixReactorBase,
    observe: Callable[[Attempt], None],
) -> Client:
    """The upstream's client with the world's time and chance."""
    return Client(
        settings, reactor, now=time.time, jitter=random.random, observe=observe
    )


def assemble(
    settings: Settings, reactor: PosixReactorBase, *, pprof: bool, simulated: bool
) -> list[Service]:
    """All parts, wired, in the order in which they start; they stop in reverse.

    Args:
        pprof: whether profiles are served.
        simulated: whether the upstream is one of our own.
    """
    started = reactor.seconds()
    build = this_build()
    selected = selection(settings.collectors, settings.refresh_intervals)
    pages = Pages([collector.name for collector in selected.collectors])
    telemetry = Telemetry(
        registry=CollectorRegistry(), build=build, periods=selected.periods
    )
    telemetry.watch_threads(reactor.getThreadPool())
    history = History(period=selected.periods[UP])
    client = upstream_client(settings, reactor, telemetry.attempted)
    refresher = Refresher(
        selection=selected,
        metrics_max_age=settings.metrics_max_age,
        inventory=Inventory(personal=settings.expose_personal_data),
        fetch=client.upstream.fetch,
        pages=pages,
        telemetry=telemetry,
        clock=reactor,
        now=time.time,
        jitter=random.random,
        observe=lambda known: history.observe(time.time(), known.peers or ()),
    )
    profiles = None
    if pprof:  # nobody else pays for importing the profilers
        from api_exporter.web.pprof import Profiles  # noqa: PLC0415

        profiles = Profiles(reactor, time.time)
    tree = root(
        status=Status(
            telemetry=telemetry,
            pages=pages,
            history=history,
            inventory=lambda: refresher.inventory,
            collectors=selected.collectors,
            version=build.details,
            upstream_url=settings.upstream_api_url,
            simulated=simulated,
            metrics_path=settings.metrics_path,
            pprof=pprof,
            uptime=lambda: reactor.seconds() - started,
            now=time.time,
        ),
        health=Health(
            telemetry=telemetry,
            version=build.version,
            upstream_url=settings.upstream_api_url,
            uptime=lambda: reactor.seconds() - started,
        ),
        ready=Ready(telemetry=telemetry, now=time.time),
        metrics=Metrics(pages=pages, telemetry=telemetry, seconds=reactor.seconds),
        metrics_path=settings.metrics_path,
        pprof=None if profiles is None else profiles.pages,
    )

    def ready(address: str) -> None:
        if not address.startswith("http"):
            log.info("{build} is at {address}", build=build, address=address)
            return
        log.info(
            "{build} is at {address}/ and its metrics at {address}{path}",
            build=build,
            address=address,
            path=settings.metrics_path,
        )
        if pprof:
            log.info("profiles are at {address}/debug/pprof/", address=address)

    site = BoundedSite(tree, reactor, max_connections(settings.max_connections))
    listener = Listener(
        addresses=settings.listen_address,
        site=site,
        reactor=reactor,
        ready=ready,
    )
    services: list[Service] = [
        listener,
        client,
        LagMeter(reactor, telemetry.reactor_lag.observe),
        refresher,
        Notifier(
            Supervisor(os.environ), lambda: telemetry.summary(time.time()), reactor
        ),
    ]
    return services if profiles is None else [*services, profiles]
