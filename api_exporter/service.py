"""The composition root: the one module that connects all others."""

import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from prometheus_client import CollectorRegistry
from twisted.application.service import MultiService, Service
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

from api_exporter.account import SharedState
from api_exporter.accounts import AccountSet
from api_exporter.daemon import process as daemon_process
from api_exporter.daemon.systemd import Notifier
from api_exporter.daemon.threads import daemon_threads, install_name_resolver
from api_exporter.formatting import with_noun
from api_exporter.live import LiveSettings, ReadSettings
from api_exporter.ports import Compute, Jitter, Now
from api_exporter.refresh.compute import SMALL_BYTES, SWITCH_INTERVAL, ComputeThread
from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving import listener
from api_exporter.serving.site import (
    BoundedSite,
    OpenSite,
    connection_limit,
    warn_exposed,
)
from api_exporter.settings import loader
from api_exporter.settings.definitions import ACCESS_SECTION, SECTIONS, Settings
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.options import Options
from api_exporter.telemetry.account import accounts_summary as describe_accounts
from api_exporter.telemetry.process import (
    LagMeter,
    ProcessTelemetry,
    register_account_gauges,
)
from api_exporter.version import this_build
from api_exporter.web.context import RUNBOOKS_PATH, SiteContext
from api_exporter.web.tree import tree

if TYPE_CHECKING:  # imported only if they are configured
    from api_exporter.access.control import AccessControl
    from api_exporter.web.pprof import Profiles

log = Logger()

LOG_THREADS = 10
"""The maximum of threads in which all accounts write their logs."""


def _ignore(_: str) -> None:
    """Apply no LOG_LEVEL: syslog has its own."""


def makeService(options: Options) -> MultiService:
    """Return all services; wrong settings raise SystemExit before twistd forks."""
    daemon_process.reopen_standard_streams()
    from twisted.internet import reactor  # noqa: PLC0415 - installed by now, not before

    assert isinstance(reactor, PosixReactorBase)
    assert options.parent is not None
    # Twisted's timers use the wall clock: setting it back would delay all of them.
    reactor.seconds = time.monotonic
    configured = configure(options, reactor)
    if (setting := configured.settings.output_setting) and (
        problem := daemon_process.output_problem(options.parent)
    ):
        raise daemon_process.start_error([f"{setting}: {problem}"], lasting=True)
    file = daemon_process.log_file(options.parent)
    observer = daemon_process.log_observer(configured.settings, options.parent, file)
    exporter = daemon_process.Exporter(observer)
    sys.setswitchinterval(SWITCH_INTERVAL)
    program = assemble(
        configured,
        reactor,
        pprof=options["enable-pprof"],
        dropped=lambda: 0 if observer is None else observer.dropped,
        log_threads=daemon_threads(LOG_THREADS, "logs"),
        compute=ComputeThread(reactor, daemon_threads(1, "compute")),
        read=None if options["demo"] else _reader(options, reactor),
        set_log_level=_ignore if observer is None else observer.set_level,
    )
    for service in program.services:
        exporter.addService(service)
    daemon_process.install_exception_hook(options.parent)
    daemon_process.install_signal_handlers(
        options.parent, file, reactor, reload=program.reload
    )
    return exporter


def _reader(options: Options, reactor: PosixReactorBase) -> ReadSettings:
    load = partial(loader.load, options, {}, reload=True)
    thread = daemon_threads(1, "settings")
    return partial(deferToThreadPool, reactor, thread, load)


class Configuration(Struct, frozen=True):
    """The checked settings and the services that depend on them.

    Attributes:
        access: the access control; None for a server without authentication.
    """

    settings: Settings
    simulation: Service | None
    access: "AccessControl | None"


def configure(options: Options, reactor: PosixReactorBase) -> Configuration:
    """Load and check the settings; raises SystemExit if they are wrong."""
    try:
        configured = _configure(options, reactor)
    except ConfigurationError as error:
        raise daemon_process.start_error(
            error.problems, lasting=not error.retryable
        ) from None
    if problems := listener.description_errors(
        configured.settings.listen_address, reactor
    ):
        lines = [f"LISTEN_ADDRESS: {problem}" for problem in problems]
        raise daemon_process.start_error(lines, lasting=True)
    return configured


def load(
    options: Options, reactor: PosixReactorBase, *, reload: bool = False
) -> Configuration:
    """Load the settings and all files that they name; raise ConfigurationError."""
    settings = loader.load(options, {}, reload=reload)
    return Configuration(settings, None, load_access(settings, reactor))


def load_access(
    settings: Settings, reactor: PosixReactorBase, now: Now = time.time
) -> "AccessControl | None":
    """Load access control, which is imported only if one of its settings is set."""
    if not any(getattr(settings, s.name.lower()) for s in SECTIONS[ACCESS_SECTION]):
        return None
    from api_exporter.access import control, passwords  # noqa: PLC0415

    # A pool of its own: a name look-up that hangs must not delay authentication.
    threads = partial(daemon_threads, 1, "passwords")
    compare = passwords.compare_in_thread(reactor, threads)
    return control.load(settings, reactor.seconds, now, compare)


def _configure(options: Options, reactor: PosixReactorBase) -> Configuration:
    if not options["demo"]:
        return load(options, reactor)
    from api_exporter.demo import server  # noqa: PLC0415

    listening = server.bind()
    settings = server.with_demo_accounts(
        loader.load(options, server.demo_environment(listening))
    )
    access = load_access(settings, reactor)
    simulation = server.server(
        listening, settings=settings, reactor=reactor, now=time.time
    )
    return Configuration(settings, simulation, access)


class Program(Struct, frozen=True):
    """The connected program.

    Attributes:
        services: in the order in which they start; they stop in reverse.
        reloads: reload files that may have been replaced.
    """

    services: list[Service]
    reloads: list[Callable[[], None]]

    def reload(self) -> None:
        for reload in self.reloads:
            reload()


def make_accounts(
    settings: Settings,
    reactor: PosixReactorBase,
    shared: SharedState,
    *,
    now: Now = time.time,
    jitter: Jitter = random.random,
) -> AccountSet:
    return AccountSet(settings, reactor, shared, now=now, jitter=jitter)


def assemble(
    configured: Configuration,
    reactor: PosixReactorBase,
    *,
    pprof: bool,
    dropped: Callable[[], int],
    log_threads: ThreadPool,
    compute: Compute,
    small_bytes: int = SMALL_BYTES,
    read: ReadSettings | None = None,
    set_log_level: Callable[[str], None] = _ignore,
    now: Now = time.time,
    jitter: Jitter = random.random,
) -> Program:
    """Make all services of the program, and connect them.

    Args:
        log_threads: write all logs; the process does not wait for a disk that hangs.
        read: reads the settings again; None if a reload keeps them.
    """
    settings = configured.settings
    threads = install_name_resolver(reactor)
    each, thresholds = settings.accounts.values(), settings.thresholds_file
    shared = SharedState(each, thresholds, log_threads, compute, small_bytes)
    process = _process([reactor.getThreadPool(), threads, log_threads], dropped, now)
    accounts = make_accounts(settings, reactor, shared, now=now, jitter=jitter)
    networks = accounts.networks
    profiles = _profiles(reactor, threads, now) if pprof else None
    context = _site_context(
        configured, process, reactor, compute=compute, profiles=profiles, now=now
    )
    if settings.has_named_accounts:
        register_account_gauges(
            process.registry, lambda: {n: one.telemetry for n, one in networks.items()}
        )
    site = _site(configured, networks, context, reactor)
    listening = _listener(configured, site, reactor, pprof=pprof)
    notifier = Notifier(os.environ, partial(_state, settings, networks, now), reactor)
    accounts.follow(partial(_follow, settings, notifier, compute))
    services: list[Service] = [
        *filter(None, [configured.simulation]),
        listening,
        accounts,
        LagMeter(reactor, process.reactor_lag.observe),
        notifier,
        *filter(None, [profiles]),
    ]
    reloads = [accounts.reload, listening.reload]
    if configured.access is not None:
        reloads.append(configured.access.reload)
    if read is not None:
        live = LiveSettings(
            settings=settings,
            read=read,
            accounts=accounts,
            set_log_level=set_log_level,
            on_changed=partial(_on_changed, settings, networks, site, notifier),
        )
        reloads.append(live.reload)
    return Program(services, reloads)


def _process(
    pools: list[ThreadPool], dropped: Callable[[], int], now: Now
) -> ProcessTelemetry:
    return ProcessTelemetry(
        registry=CollectorRegistry(),
        build=this_build(),
        threads=pools,
        dropped=dropped,
        created=now(),
    )


def _listener(
    configured: Configuration,
    site: BoundedSite,
    reactor: PosixReactorBase,
    *,
    pprof: bool,
) -> listener.Listener:
    settings, access = configured.settings, configured.access
    is_simulated = configured.simulation is not None
    is_safe = is_simulated or (access is not None and access.protected)
    return listener.Listener(
        addresses=settings.listen_address,
        site=site,
        reactor=reactor,
        on_ready=partial(_announce, settings, pprof),
        on_exposed=(lambda: None) if is_safe else warn_exposed,
    )


def _profiles(reactor: PosixReactorBase, threads: ThreadPool, now: Now) -> "Profiles":
    from api_exporter.web.pprof import Profiles  # noqa: PLC0415

    return Profiles(reactor, now, partial(deferToThreadPool, reactor, threads))


def _site(
    configured: Configuration,
    networks: Mapping[str, AccountNetwork],
    context: SiteContext,
    reactor: PosixReactorBase,
) -> BoundedSite:
    settings, access = configured.settings, configured.access
    pages = tree(networks, context, lookup=settings.lookup)
    limit = connection_limit(settings.max_connections, len(networks))
    if access is None:
        return OpenSite(pages, reactor, limit)
    from api_exporter.access.site import ProtectedSite  # noqa: PLC0415

    registry = context.process.registry
    return ProtectedSite(
        pages, reactor, access, max_connections=limit, registry=registry
    )


def _follow(
    settings: Settings, notifier: Notifier, compute: Compute, network: AccountNetwork
) -> None:
    network.states.on_up_changed = notifier.send_status
    if settings.lookup:
        from api_exporter.web.lookup import NewestTable  # noqa: PLC0415

        network.followers.append(NewestTable(network, compute))


def _on_changed(
    settings: Settings,
    networks: Mapping[str, AccountNetwork],
    site: BoundedSite,
    notifier: Notifier,
) -> None:
    """Adapt to other accounts after a reload."""
    site.max_connections = connection_limit(settings.max_connections, len(networks))
    notifier.send_status()


def _site_context(
    configured: Configuration,
    process: ProcessTelemetry,
    reactor: PosixReactorBase,
    *,
    compute: Compute,
    profiles: "Profiles | None",
    now: Now,
) -> SiteContext:
    started = reactor.seconds()
    return SiteContext(
        process=process,
        build=this_build(),
        metrics_path=configured.settings.metrics_path,
        runbooks=configured.settings.runbooks_url or RUNBOOKS_PATH,
        simulated=configured.simulation is not None,
        compute=compute,
        profiles={} if profiles is None else profiles.pages,
        uptime=lambda: reactor.seconds() - started,
        clock=reactor,
        now=now,
    )


def _announce(settings: Settings, pprof: bool, address: str) -> None:
    build = this_build()
    if not address.startswith("http"):
        log.info("{build} is at {address}", build=build, address=address)
        return
    log.info(
        "{build} is at {address}/ and its metrics at {address}{path}",
        build=build,
        address=address,
        path=settings.metrics_path,
    )
    if settings.has_named_accounts:
        log.info(
            "serving {accounts}", accounts=with_noun(len(settings.accounts), "account")
        )
    if pprof:
        log.info("profiles are at {address}/debug/pprof/", address=address)


def _state(settings: Settings, networks: Mapping[str, AccountNetwork], now: Now) -> str:
    telemetries = [network.telemetry for network in networks.values()]
    if settings.has_named_accounts:
        return describe_accounts(telemetries)
    return telemetries[0].summary(now())
