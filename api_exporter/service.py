"""The composition root: the one place where everything is put together."""

import os
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from prometheus_client import CollectorRegistry
from twisted.application.service import MultiService, Service
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger

from api_exporter.account import Account
from api_exporter.daemon import life
from api_exporter.daemon.supervision import Notifier, Supervisor
from api_exporter.daemon.threads import own_threads
from api_exporter.serving import listen
from api_exporter.serving.site import BoundedSite, max_connections
from api_exporter.settings import configuration
from api_exporter.settings.options import Options
from api_exporter.settings.values import AccountSettings, Settings
from api_exporter.telemetry.lag import LagMeter
from api_exporter.telemetry.process import ProcessTelemetry
from api_exporter.version import this_build
from api_exporter.web.health import Health
from api_exporter.web.metrics import Metrics
from api_exporter.web.ready import Ready
from api_exporter.web.status.page import Status
from api_exporter.web.tree import root

if TYPE_CHECKING:  # nobody but those who want a front door pay for importing it
    from api_exporter.door.front import Front

__all__ = ["Options", "assemble", "makeService"]

log = Logger()


def makeService(options: Options) -> MultiService:
    """What `twistd` calls. Wrong settings end it here, before it becomes a daemon."""
    life.need_standard_streams()
    from twisted.internet import reactor  # noqa: PLC0415 - installed by now, not before

    assert isinstance(reactor, PosixReactorBase)
    assert options.parent is not None
    # Twisted's timers go by the wall clock: set back an hour, it stops them for one.
    reactor.seconds = time.monotonic
    configured = configure(options, reactor)
    if problems := listen.wrong(configured.settings.listen_address, reactor):
        told = [f"LISTEN_ADDRESS: {problem}" for problem in problems]
        raise life.refusal(told, lasting=True)
    file = life.log_file(options.parent)
    observer = life.log_observer(configured.settings, options.parent, file)
    exporter = life.Exporter(observer)
    assembled = assemble(
        configured,
        reactor,
        pprof=options["enable-pprof"],
        dropped=lambda: 0 if observer is None else observer.dropped,
    )
    for service in assembled.services:
        exporter.addService(service)
    life.explain_failures(options.parent)
    life.heed_signals(options.parent, file, reactor, look=assembled.look)
    return exporter


class Configured(Struct, frozen=True):
    """The checked settings and what goes with them.

    Attributes:
        simulation: for `--demo`, the upstream that it reads.
        front: what says who may come in; None where everybody may.
    """

    settings: Settings
    simulation: Service | None
    front: "Front | None"


def configure(options: Options, reactor: PosixReactorBase) -> Configured:
    """What the operator wants; raises SystemExit where that cannot be."""
    try:
        return _configure(options, reactor)
    except configuration.Refused as error:
        raise life.refusal(error.problems, lasting=error.lasting) from None


def _configure(options: Options, reactor: PosixReactorBase) -> Configured:
    if not options["demo"]:
        settings = configuration.configured(options, {})
        return Configured(settings, None, front(settings, reactor))
    # Nobody but the demo pays for importing it.
    from api_exporter.demo import server as demo  # noqa: PLC0415

    listening = demo.bind()
    settings = configuration.configured(options, demo.environ(listening))
    simulation = demo.DemoServer(
        listening,
        peers=settings.demo_peers,
        rate_limit=settings.demo_rate_limit,
        reactor=reactor,
        now=time.time,
    )
    return Configured(settings, simulation, front(settings, reactor))


def front(settings: Settings, reactor: PosixReactorBase) -> "Front | None":
    """Who may come in, as files say, None where everybody may; raises Refused."""
    if not (
        settings.web_config_file
        or settings.web_bearer_tokens_file
        or settings.web_open_paths
    ):
        return None
    from api_exporter.door.front import opened  # noqa: PLC0415
    from api_exporter.door.refusals import Wrong  # noqa: PLC0415

    try:
        return opened(settings, reactor.seconds)
    except Wrong as error:
        raise configuration.Refused(error.problems, lasting=error.lasting) from None


class Assembled(Struct, frozen=True):
    """The whole program.

    Attributes:
        services: in the order in which they start; they stop in reverse.
        look: looks at the files of tokens and certificates.
    """

    services: list[Service]
    look: Callable[[], None]


def account(settings: AccountSettings, reactor: PosixReactorBase) -> Account:
    """An account with the world's time and chance."""
    return Account(
        settings,
        reactor,
        registry=CollectorRegistry(),
        now=time.time,
        jitter=random.random,
    )


def assemble(
    configured: Configured,
    reactor: PosixReactorBase,
    *,
    pprof: bool,
    dropped: Callable[[], int],
) -> Assembled:
    """All parts, wired.

    Args:
        pprof: whether profiles are served.
        dropped: how many log lines nobody took.
    """
    settings = configured.settings
    started = reactor.seconds()
    threads = own_threads(reactor)
    build = this_build()
    process = ProcessTelemetry(
        registry=CollectorRegistry(),
        build=build,
        threads=[reactor.getThreadPool(), threads],
        dropped=dropped,
    )
    shown = account(settings.accounts[""], reactor)
    profiles = None
    if pprof:  # nobody else pays for importing the profilers
        from api_exporter.web.pprof import Profiles  # noqa: PLC0415

        profiles = Profiles(reactor, threads, time.time)
    tree = root(
        status=Status(
            shown,
            version=build.details,
            simulated=configured.simulation is not None,
            metrics_path=settings.metrics_path,
            pprof=pprof,
            uptime=lambda: reactor.seconds() - started,
            seconds=reactor.seconds,
            now=time.time,
        ),
        health=Health(
            shown,
            version=build.version,
            uptime=lambda: reactor.seconds() - started,
        ),
        ready=Ready(shown, now=time.time),
        metrics=Metrics(shown, process, seconds=reactor.seconds),
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

    def exposed() -> None:
        log.warn(
            "everybody who reaches it reads what it knows of the network: there are no"
            " passwords, tokens or client certificates (WEB_CONFIG_FILE)"
        )

    most = max_connections(settings.max_connections)
    door = configured.front
    if door is None:
        site = BoundedSite(tree, reactor, most)
    else:
        from api_exporter.door.compare import in_thread  # noqa: PLC0415
        from api_exporter.door.site import guarded  # noqa: PLC0415

        site = guarded(
            tree,
            reactor,
            max_connections=most,
            front=door,
            registry=process.registry,
            compare=in_thread(reactor, threads),
        )
    listener = listen.Listener(
        addresses=settings.listen_address,
        site=site,
        reactor=reactor,
        ready=ready,
        secured=door.secured if door is not None and door.encrypted else None,
        exposed=exposed if door is None or not door.guarded else lambda: None,
    )
    notifier = Notifier(
        Supervisor(os.environ), lambda: shown.telemetry.summary(time.time()), reactor
    )
    shown.telemetry.changed = notifier.tell_status
    services = (
        configured.simulation,
        listener,
        shown,
        LagMeter(reactor, process.reactor_lag.observe),
        notifier,
        profiles,
    )

    def look() -> None:
        shown.look()
        listener.look()
        if configured.front is not None:
            configured.front.look()

    return Assembled(
        [service for service in services if service is not None], look=look
    )
