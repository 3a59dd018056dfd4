"""Construction of the logs of all accounts."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from prometheus_client import CollectorRegistry
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

from api_exporter.logs.access_log import AccessLog
from api_exporter.logs.audit_cursor import AuditCursor
from api_exporter.logs.journal import Journal
from api_exporter.logs.listing import NANOSECONDS_PER_SECOND, LogCursor
from api_exporter.logs.position import CountedPosition, Position
from api_exporter.logs.sinks import FileSink, NullSink, Output, OutputSink, Sink
from api_exporter.netbird.resources import ACCESS_LOG
from api_exporter.ports import Compute, Now
from api_exporter.refresh.pipeline import Log
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.parsers import STANDARD_OUTPUT
from api_exporter.subjects.events import AUDIT_EVENTS
from api_exporter.telemetry.logs import AccessLogTelemetry, EventsTelemetry

T = TypeVar("T")


@dataclass
class LogFactory:
    """A factory of logs. Logs on standard output share one `Output`, in whole lines.

    Attributes:
        threads: write files. A disk may hang, so the end of the process must not wait
            for these threads.
    """

    reactor: PosixReactorBase
    threads: ThreadPool
    compute: Compute
    now: Now

    def __post_init__(self) -> None:
        self._output = Output()
        self._paths_in_use: set[Path] = set()

    def logs(
        self,
        settings: AccountSettings,
        registry: CollectorRegistry,
        log: Logger,
        intervals: Mapping[str, float],
    ) -> dict[str, Log]:
        """Return the logs of an account, by the resource that they request."""
        logs: dict[str, Log] = {}
        if (file := settings.events_file) is not None:
            logs[AUDIT_EVENTS.name] = Journal(
                sink=self._sink(AuditCursor(recent={}), file, settings.events_cursor),
                telemetry=EventsTelemetry(registry),
                account=settings.name,
                personal=settings.expose_personal_data,
                compute=self.compute,
                log=log,
                now=self.now,
            )
        if settings.reads_access_log:
            file = settings.access_log_file
            if file is not None:
                sink = self._sink(Position(start=0), file, settings.access_log_cursor)
            else:
                now = int(self.now() * NANOSECONDS_PER_SECOND)
                sink = NullSink(CountedPosition(start=now))
            rows = AccessLogTelemetry(registry, now=self.now, writes=file is not None)
            logs[ACCESS_LOG] = AccessLog(
                sink=sink,
                telemetry=rows,
                interval=intervals[ACCESS_LOG],
                clock=self.reactor,
                account=settings.name,
                personal=settings.expose_personal_data,
                compute=self.compute,
                log=log,
                now=self.now,
            )
        return logs

    def _sink(self, first: LogCursor, file: Path, cursor: Path) -> Sink:
        in_thread, in_use = self._in_thread, self._paths_in_use
        if file != STANDARD_OUTPUT:
            return FileSink(first, file, cursor, in_thread=in_thread, in_use=in_use)
        return OutputSink(
            first,
            self._output,
            cursor,
            in_thread=in_thread,
            in_use=in_use,
            clock=self.reactor,
        )

    def _in_thread(self, work: Callable[[], T], /) -> Awaitable[T]:
        return deferToThreadPool(self.reactor, self.threads, work)
