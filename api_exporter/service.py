"""The composition root: the one place where everything is put together."""

import os
import random
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from prometheus_client import CollectorRegistry
from twisted.application.service import MultiService, Service
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger

from api_exporter.access import part as access_part
from api_exporter.account import Account, Shared
from api_exporter.daemon import life
from api_exporter.daemon.supervision import Notifier, Supervisor
from api_exporter.daemon.threads import daemon_threads, own_threads
from api_exporter.serving import listener
from api_exporter.serving.page_readers import PageReaders
from api_exporter.serving.site import max_connections
from api_exporter.settings import loader
from api_exporter.settings.definitions import Settings
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.options import Options
from api_exporter.telemetry.account import summary
from api_exporter.telemetry.lag import LagMeter
from api_exporter.telemetry.process import ProcessTelemetry
from api_exporter.version import this_build
from api_exporter.web.discovery.answers import Answers
from api_exporter.web.runbooks import RUNBOOKS
from api_exporter.web.tree import Around, of_one

if TYPE_CHECKING:  # nobody but those who want access control pay for importing it
    from api_exporter.access.configuration import AccessControl

log = Logger()

STARTS = 20
"""Accounts that begin in a second: each makes connections, and then a first round."""


def makeService(options: Options) -> MultiService:
    """All of it, as twistd starts it. Wrong settings end it, before it is a daemon."""
    life.need_standard_streams()
    from twisted.internet import reactor  # noqa: PLC0415 - installed by now, not before

    assert isinstance(reactor, PosixReactorBase)
    assert options.parent is not None
    # Twisted's timers go by the wall clock: set back an hour, it stops them for one.
    reactor.seconds = time.monotonic
    configured = configure(options, reactor)
    if problems := listener.wrong(configured.settings.listen_address, reactor):
        told = [f"LISTEN_ADDRESS: {problem}" for problem in problems]
        raise life.refusal(told, lasting=True)
    if configured.settings.events_to_output and (
        problem := life.no_output(options.parent)
    ):
        raise life.refusal([f"EVENTS_FILE: {problem}"], lasting=True)
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
    life.heed_signals(options.parent, file, reactor, reload=assembled.look)
    return exporter


class Configured(Struct, frozen=True):
    """The checked settings and what goes with them.

    Attributes:
        simulation: for `--demo`, the upstream that it reads.
        access: what says who may come in; None where everybody may.
    """

    settings: Settings
    simulation: Service | None
    access: "AccessControl | None"


def configure(options: Options, reactor: PosixReactorBase) -> Configured:
    """What the operator wants; raises SystemExit where that cannot be."""
    try:
        return _configure(options, reactor)
    except ConfigurationError as error:
        raise life.refusal(error.problems, lasting=not error.retryable) from None


def _configure(options: Options, reactor: PosixReactorBase) -> Configured:
    if not options["demo"]:
        settings = loader.load(options, {})
        return Configured(settings, None, _access(settings, reactor))
    # Nobody but the demo pays for importing it.
    from api_exporter.demo import server as demo  # noqa: PLC0415

    listening = demo.bind()
    settings = loader.load(options, demo.environ(listening))
    simulation = demo.server(
        listening,
        settings=settings,
        reactor=reactor,
        now=time.time,
    )
    settings = demo.simulated(settings)
    return Configured(settings, simulation, _access(settings, reactor))


def _access(settings: Settings, reactor: PosixReactorBase) -> "AccessControl | None":
    # Threads of its own: name look-ups that hang must keep nobody out.
    threads = partial(daemon_threads, 1, "passwords")
    return access_part.load(settings, reactor, threads)


class Assembled(Struct, frozen=True):
    """The whole program.

    Attributes:
        services: in the order in which they start; they stop in reverse.
        look: looks at the files of tokens and certificates.
    """

    services: list[Service]
    look: Callable[[], None]


def accounts(
    settings: Settings, reactor: PosixReactorBase, shared: Shared
) -> dict[str, Account]:
    """Those that are wanted, with the world's time and chance."""
    return {
        name: Account(
            account,
            reactor,
            shared=shared,
            registry=CollectorRegistry(),
            now=time.time,
            jitter=random.random,
            after=number / STARTS,
        )
        for number, (name, account) in enumerate(settings.accounts.items())
    }


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
    shared = Shared(reactor, settings.accounts.values(), settings.thresholds_file)
    shown = accounts(settings, reactor, shared)
    profiles = None
    if pprof:  # nobody else pays for importing the profilers
        from api_exporter.web.pprof import Profiles  # noqa: PLC0415

        profiles = Profiles(reactor, threads, time.time)
    around = Around(
        process=process,
        build=build,
        metrics_path=settings.metrics_path,
        runbooks=settings.runbooks_url or RUNBOOKS,
        simulated=configured.simulation is not None,
        readers=PageReaders(),
        making=Answers(shared.slicer.run),
        pprof=None if profiles is None else profiles.pages,
        uptime=lambda: reactor.seconds() - started,
        seconds=reactor.seconds,
        now=time.time,
    )
    state: Callable[[], str]
    if settings.several:  # nobody else pays for importing their pages
        from api_exporter.web.accounts import of_several  # noqa: PLC0415

        tree = of_several(shown, around)
        telemetries = [account.telemetry for account in shown.values()]
        state = partial(summary, telemetries)
    else:
        only = shown[""]
        tree = of_one(only, around)
        state = lambda: only.telemetry.summary(time.time())  # noqa: E731

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
        if settings.several:
            count = len(settings.accounts)
            served = "1 account is" if count == 1 else f"{count or 'no'} accounts are"
            log.info("{served} served", served=served)
        if pprof:
            log.info("profiles are at {address}/debug/pprof/", address=address)

    site = access_part.make_site(
        configured.access,
        tree,
        reactor,
        max_connections=max_connections(settings.max_connections, len(shown)),
        registry=process.registry,
    )
    listening = listener.Listener(
        addresses=settings.listen_address,
        site=site,
        reactor=reactor,
        ready=ready,
        secured=site.encrypt,
        exposed=site.warn_exposed,
    )
    notifier = Notifier(Supervisor(os.environ), state, reactor)
    for account in shown.values():
        account.telemetry.changed = notifier.tell_status
    services = (
        configured.simulation,
        listening,
        *shown.values(),
        LagMeter(reactor, process.reactor_lag.observe),
        notifier,
        profiles,
    )

    def look() -> None:
        for account in shown.values():
            account.look()
        listening.reload()
        site.reload()

    return Assembled(
        [service for service in services if service is not None], look=look
    )
