"""The journals of all accounts, put together."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from prometheus_client import CollectorRegistry
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from api_exporter.events.journal import Journal, Run
from api_exporter.events.output import Output
from api_exporter.events.sinks import Sink, ToFile, ToOutput
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.parsers import STANDARD_OUTPUT
from api_exporter.telemetry.events import EventsTelemetry

T = TypeVar("T")


class Journals:
    """Makes them; those that write to standard output take turns line by line."""

    def __init__(self, reactor: PosixReactorBase, run: Run) -> None:
        self._reactor = reactor
        self._run = run
        self._output = Output()

    def journal(
        self, settings: AccountSettings, registry: CollectorRegistry, log: Logger
    ) -> Journal:
        """Of an account that has EVENTS_FILE."""
        file, cursor = settings.events_file, settings.events_cursor
        assert file is not None
        sink: Sink = (
            ToOutput(self._output, cursor, self._in_thread, self._reactor)
            if file == STANDARD_OUTPUT
            else ToFile(file, cursor, self._in_thread)
        )
        return Journal(
            account=settings.name,
            personal=settings.expose_personal_data,
            sink=sink,
            run=self._run,
            telemetry=EventsTelemetry(registry),
            log=log,
        )

    def _in_thread(self, work: Callable[[], T], /) -> Awaitable[T]:
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), work)
