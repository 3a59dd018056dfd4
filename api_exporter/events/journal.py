"""Writes what is new in each list of audit events, and holds nobody else up.

A list is read in slices, files are written in a thread. What could not be written is in
the next list again.
"""

from collections.abc import Awaitable, Generator
from typing import Protocol, TypeVar

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from api_exporter.events.cursor import Cursor, batches, choose
from api_exporter.events.listing import Event, listed
from api_exporter.events.sinks import Sink
from api_exporter.events.telling import line
from api_exporter.ports import UpstreamError
from api_exporter.telemetry.events import EventsTelemetry

T = TypeVar("T")


class Run(Protocol):
    """Runs a generator in slices."""

    def __call__(self, steps: Generator[object, None, T], /) -> Awaitable[T]: ...


class Journal(Service):
    """The audit log of an account.

    Args:
        account: its name, empty where it is the only one.
        personal: the kinds of personal data that may be told.
    """

    def __init__(
        self,
        *,
        account: str,
        personal: frozenset[str],
        sink: Sink,
        run: Run,
        telemetry: EventsTelemetry,
        log: Logger,
    ) -> None:
        self._account = account
        self._personal = personal
        self._sink = sink
        self._run = run
        self._telemetry = telemetry
        self._log = log
        self._cursor: Cursor | None = None
        self._body: bytes | None = None
        self._working: Deferred[None] | None = None
        self._failing = False
        self._unreadable = 0

    def take(self, body: bytes) -> None:
        """Write what is new in a list, as soon as those before it are done with."""
        self._body = body
        if self.running and self._working is None:
            self._working = working = Deferred.fromCoroutine(self._work())
            working.addBoth(self._done)

    def look(self) -> None:
        """Write to what has the file's name now."""
        self._sink.look()

    def stopService(self) -> Deferred[None]:
        """Fires when what is being written is."""
        super().stopService()
        if self._working is None:
            return succeed(None)
        ended: Deferred[None] = Deferred()
        self._working.addBoth(lambda _: ended.callback(None))
        return ended

    def _done(self, _: object) -> None:
        self._working = None

    async def _work(self) -> None:
        """One list after the other. It never raises, so that the next one comes."""
        while self.running and self._body is not None:
            body, self._body = self._body, None
            try:
                await self._write(body)
            except UpstreamError:
                continue  # whose refresh tells of it
            except (OSError, ValueError) as error:
                self._failed(error)
            except Exception:  # noqa: BLE001 - a defect of ours must not end the log
                self._log.failure("a defect while writing audit events")
            else:
                self._succeeded()

    async def _write(self, body: bytes) -> None:
        if self._cursor is None:
            self._cursor = await self._sink.begin()
            self._log.info("audit events go to {where}", where=self._sink.where)
        await self._sink.settle()
        listing = await self._run(listed(body))
        del body
        self._count_unreadable(listing.unreadable)
        chosen = await self._run(choose(self._cursor, listing.events))
        del listing
        self._cursor = chosen.cursor
        if chosen.missed:
            self._telemetry.missed()
            self._log.warn("audit events may be missing: {why}", why=chosen.missed)
            await self._commit(b"", chosen.cursor)
        for batch in batches(chosen.new):
            if not self.running:
                return
            lines = await self._run(self._lines(batch))
            keys = [(event.id, event.timestamp) for event in batch]
            lost = [
                event.id for event, line in zip(batch, lines, strict=True) if not line
            ]
            cursor = self._cursor.with_(keys)
            await self._commit(b"".join(lines), cursor, len(batch) - len(lost))
            for number in lost:
                self._telemetry.missed()
                self._log.warn(
                    "the audit event {id} cannot be told, and is lost", id=number
                )

    async def _commit(self, lines: bytes, cursor: Cursor, count: int = 0) -> None:
        await self._sink.commit(lines, cursor)
        self._cursor = cursor  # whatever comes now, these were taken
        self._telemetry.written(count)
        await self._sink.settle()

    def _count_unreadable(self, unreadable: int) -> None:
        """Tell of events that cannot be read; they are in the next list, too."""
        more, self._unreadable = unreadable - self._unreadable, unreadable
        if more > 0:
            self._telemetry.missed(more)
            self._log.warn("{n} audit events cannot be read, and are lost", n=more)

    def _lines(self, events: list[Event]) -> Generator[None, None, list[bytes]]:
        found = []
        for event in events:
            found.append(line(event, self._account, self._personal))
            yield
        return found

    def _failed(self, error: OSError | ValueError) -> None:
        if not self._failing:
            self._failing = True
            self._telemetry.writable(False)
            self._log.warn(
                "cannot write audit events to {where}: {why}; they are kept by the"
                " upstream, and tried again",
                where=self._sink.where,
                why=_why(error, self._sink.where),
            )

    def _succeeded(self) -> None:
        if self._failing:
            self._failing = False
            self._telemetry.writable(True)
            self._log.info(
                "audit events are written to {where} again", where=self._sink.where
            )


def _why(error: OSError | ValueError, where: str) -> str:
    """In words, with the name of a file that is another one."""
    if isinstance(error, ValueError):
        return str(error)
    named = "" if error.filename in {None, where} else f"{error.filename}: "
    return f"{named}{error.strerror}"
