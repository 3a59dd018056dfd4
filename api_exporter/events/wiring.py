"""Construction of the logs of all accounts."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from prometheus_client import CollectorRegistry
from twisted.application.service import MultiService
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

from api_exporter.events.access_log import AccessLog
from api_exporter.events.audit_cursor import AuditCursor
from api_exporter.events.journal import Journal, Telemetry
from api_exporter.events.listing import NANOSECONDS_PER_SECOND
from api_exporter.events.log_cursor import LogCursor
from api_exporter.events.output import Output
from api_exporter.events.position import CountedPosition, Position
from api_exporter.events.sinks import FileSink, NullSink, OutputSink, OwnedPaths, Sink
from api_exporter.netbird.resources import ACCESS_LOG
from api_exporter.ports import Compute, Now
from api_exporter.refresh.pipeline import AccountFeature, BodyReader, ResourceSource
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.parsers import STANDARD_OUTPUT
from api_exporter.subjects.events import AUDIT_EVENTS
from api_exporter.telemetry.access_log import AccessLogTelemetry
from api_exporter.telemetry.events import EventsTelemetry

T = TypeVar("T")


class LogFactory:
    """A factory of logs. Logs on standard output share one `Output`, in whole lines.

    Args:
        threads: write files. A disk may hang, so the end of the process must not wait
            for these threads.
    """

    def __init__(
        self, reactor: PosixReactorBase, threads: ThreadPool, compute: Compute, now: Now
    ) -> None:
        self._reactor = reactor
        self._threads = threads
        self._compute = compute
        self._now = now
        self._output = Output()
        self._paths_in_use: set[Path] = set()

    def feature(
        self,
        settings: AccountSettings,
        registry: CollectorRegistry,
        log: Logger,
        periods: Mapping[str, float],
    ) -> AccountFeature:
        """Return the logs of an account, which may have none.

        Args:
            periods: seconds between two requests, by resource.
        """
        services = MultiService()
        readers: dict[str, BodyReader] = {}
        sources: dict[str, ResourceSource] = {}
        if settings.events_file is not None:
            audit = self._journal(
                AuditCursor,
                settings,
                sink=self._sink(
                    AuditCursor(), settings.events_file, settings.events_cursor
                ),
                paths=self._paths(settings.events_file, settings.events_cursor),
                telemetry=EventsTelemetry(registry),
                log=log,
            )
            services.addService(audit)
            readers[AUDIT_EVENTS.name] = audit.receive
        if settings.reads_access_log:
            period = periods[ACCESS_LOG]
            source = self._access_log(settings, registry, log, period=period)
            services.addService(source.journal)
            sources[ACCESS_LOG] = source
        return AccountFeature(service=services, body_readers=readers, sources=sources)

    def _access_log(
        self,
        settings: AccountSettings,
        registry: CollectorRegistry,
        log: Logger,
        *,
        period: float,
    ) -> AccessLog:
        """Return the access log for ACCESS_LOG_FILE or ACCESS_LOG_METRICS."""
        file = settings.access_log_file
        sink: Sink = NullSink(
            lambda: CountedPosition(start=int(self._now() * NANOSECONDS_PER_SECOND))
        )
        paths = self._paths()
        if file is not None:
            sink = self._sink(Position(), file, settings.access_log_cursor)
            paths = self._paths(file, settings.access_log_cursor)
        telemetry = AccessLogTelemetry(registry, writes=file is not None)
        kind = CountedPosition if file is None else Position
        journal = self._journal(
            kind, settings, sink=sink, paths=paths, telemetry=telemetry, log=log
        )
        return AccessLog(journal, telemetry, period=period, clock=self._reactor)

    def _journal(
        self,
        kind: type[LogCursor],
        settings: AccountSettings,
        *,
        sink: Sink,
        paths: OwnedPaths,
        telemetry: Telemetry,
        log: Logger,
    ) -> Journal:
        return Journal(
            kind,
            account=settings.name,
            personal=settings.expose_personal_data,
            sink=sink,
            paths=paths,
            compute=self._compute,
            telemetry=telemetry,
            log=log,
            now=self._now,
        )

    def _sink(self, first: LogCursor, file: Path, cursor: Path) -> Sink:
        if file == STANDARD_OUTPUT:
            reactor = self._reactor
            return OutputSink(first, self._output, cursor, self._in_thread, reactor)
        return FileSink(first, file, cursor, self._in_thread)

    def _paths(self, *paths: Path) -> OwnedPaths:
        files = [path for path in paths if path != STANDARD_OUTPUT]
        return OwnedPaths(self._paths_in_use, *files)

    def _in_thread(self, work: Callable[[], T], /) -> Awaitable[T]:
        return deferToThreadPool(self._reactor, self._threads, work)
