"""The table of what not everybody wants. Who does not want a part does not import it.

Each part is imported here, and at few other places: access control in `access.part`,
what a command wants in `cli` and `entry`, the way through a proxy in `upstream.agent`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from msgspec import Struct
from prometheus_client import CollectorRegistry
from twisted.application.service import MultiService, Service
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool
from twisted.web.resource import Resource

from api_exporter.account import SharedState, log
from api_exporter.netbird.resources import ACCESS_LOG
from api_exporter.ports import Now
from api_exporter.refresh.network import Network
from api_exporter.refresh.pipeline import AccountPart, BodyReader, Source
from api_exporter.settings import loader
from api_exporter.settings.definitions import AccountSettings, Settings
from api_exporter.settings.options import Options
from api_exporter.web.context import PROFILES, SiteContext
from api_exporter.web.tree import SummaryPages
from api_exporter.world import log_of


class Context(Struct, frozen=True, kw_only=True):
    """What parts of the program are made of.

    Attributes:
        simulated: whether the upstream is one of our own.
        pprof: whether profiles are served.
        threads: our own.
    """

    settings: Settings
    simulated: bool
    pprof: bool
    reactor: PosixReactorBase
    threads: ThreadPool
    now: Now


class Part(Struct, frozen=True, kw_only=True):
    """Of the program.

    Attributes:
        services: in the order in which they start.
        pages: by path.
        summary: makes the pages of several accounts together.
        announce: says what there is at an address at which we listen.
    """

    services: Sequence[Service] = ()
    pages: Mapping[str, Resource] = {}
    summary: Callable[[Mapping[str, Network], SiteContext], SummaryPages] | None = None
    announce: Callable[[Logger, str], None] | None = None


def _profiles(context: Context) -> Part:
    from api_exporter.web.pprof import Profiles  # noqa: PLC0415

    profiles = Profiles(context.reactor, context.threads, context.now)
    return Part(
        services=[profiles],
        pages={PROFILES: profiles.pages},
        announce=lambda log, address: log.info(
            "profiles are at {address}/debug/pprof/", address=address
        ),
    )


def _several_accounts(context: Context) -> Part:
    from api_exporter.web.accounts import summary  # noqa: PLC0415

    count = len(context.settings.accounts)
    served = "1 account is" if count == 1 else f"{count or 'no'} accounts are"
    return Part(
        summary=summary,
        announce=lambda log, _: log.info("{served} served", served=served),
    )


Wanted = Callable[[Context], bool]

PARTS: tuple[tuple[Wanted, Callable[[Context], Part]], ...] = (
    (lambda context: context.settings.several, _several_accounts),
    (lambda context: context.pprof, _profiles),
)
"""Who wants a part, and what builds it."""


def parts(context: Context) -> list[Part]:
    return [build(context) for wanted, build in PARTS if wanted(context)]


BuildAccountPart = Callable[[AccountSettings, CollectorRegistry], AccountPart]


def _logs(reactor: PosixReactorBase, shared: SharedState, now: Now) -> BuildAccountPart:
    from api_exporter.events.wiring import Journals  # noqa: PLC0415

    assert shared.log_threads is not None  # what writes has threads
    journals = Journals(reactor, shared.log_threads, shared.compute, now)

    def build(settings: AccountSettings, registry: CollectorRegistry) -> AccountPart:
        log_ = log_of(settings.name, log)
        services = MultiService()
        readers: dict[str, BodyReader] = {}
        sources: dict[str, Source] = {}
        reloads = []
        if settings.events_file is not None:
            journal = journals.journal(settings, registry, log_)
            services.addService(journal)
            readers["events"] = journal.take
            reloads.append(journal.look)
        if settings.reads_access_log:
            period = shared.quotas[settings.name].selection.periods[ACCESS_LOG]
            source = journals.access_log(settings, registry, log_, period=period)
            services.addService(source.journal)
            sources[ACCESS_LOG] = source
            reloads.append(source.journal.look)
        return AccountPart(
            service=services,
            body_readers=readers,
            sources=sources,
            reload=lambda: [reload() for reload in reloads],
        )

    return build


def account_parts(
    reactor: PosixReactorBase, shared: SharedState, now: Now
) -> Callable[[AccountSettings, CollectorRegistry], list[AccountPart]]:
    """Return what builds the parts of an account that not every account has."""

    @cache
    def logs() -> BuildAccountPart:
        return _logs(reactor, shared, now)

    def build(
        settings: AccountSettings, registry: CollectorRegistry
    ) -> list[AccountPart]:
        if settings.events_file is None and not settings.reads_access_log:
            return []
        return [logs()(settings, registry)]

    return build


def simulation(
    options: Options, reactor: PosixReactorBase, now: Now
) -> tuple[Settings, Callable[[], Service]]:
    """For `--demo`, the settings that read a simulated API, and what serves that."""
    from api_exporter.demo import server  # noqa: PLC0415

    listening = server.bind()
    settings = loader.load(options, server.environ(listening))
    return server.simulated(settings), lambda: server.server(
        listening, settings=settings, reactor=reactor, now=now
    )
