"""The journal of a log, which writes the new rows of each list.

Lists are decoded in the compute thread, files are written in other threads. Rows that
could not be written are also in the next list.
"""

import os
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EROFS
from typing import Protocol

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from api_exporter.logs.listing import (
    NANOSECONDS_PER_SECOND,
    LogCursor,
    LogRow,
    NewRows,
    batches,
    nanoseconds,
)
from api_exporter.logs.position import COUNTED_AGE
from api_exporter.logs.sinks import NullSink, Sink
from api_exporter.netbird.inventory import Inventory
from api_exporter.ports import Compute, Fetch, Now, ResponseBody, UpstreamError
from api_exporter.refresh.pipeline import Log

MAX_UNREADABLE = 1000
"""Maximum number of remembered unreadable rows, each of which is counted once."""


class Telemetry(Protocol):
    """Metrics of written and read rows; see `telemetry.logs`."""

    def written(self, lines: int, /) -> None: ...

    def missed(self, gaps: int = ..., /) -> None: ...

    def writable(self, writable: bool, /) -> None: ...

    def count_recent_rows(self, rows: Iterable[bytes], old: int) -> None: ...

    def record_progress(self, lag: float, skipped: int) -> None: ...


@dataclass(eq=False, kw_only=True, repr=False)
class Journal(Log):
    """A log of an account, written from whole lists.

    Attributes:
        is_behind: whether there are more rows behind the last list.
        problem: why the log cannot be written, as an error message.
    """

    account: str
    personal: frozenset[str]
    sink: Sink
    compute: Compute
    telemetry: Telemetry
    log: Logger
    now: Now

    def __post_init__(self) -> None:
        self._rows = self.sink.first.rows
        self._cursor: LogCursor | None = None
        self._next_list: tuple[bytes, LogCursor | None] | None = None
        self._working: Deferred[None] | None = None
        self._failing = False
        self._unwritten_since: int | None = None
        self._lag: float | None = None
        self._unreadable = Counter[int]()
        self.is_behind = False
        self.problem = "the files of the log cannot be opened"

    def begin_with(self, before: Log) -> None:
        assert isinstance(before, Journal)
        self._unreadable = before._unreadable
        self._failing = before._failing
        self._unwritten_since = before._unwritten_since
        self.telemetry.writable(not self._failing)
        if before._lag is not None:
            self._record_lag(before._lag)
        if isinstance(self.sink, NullSink) and isinstance(before.sink, NullSink):
            self.sink = before.sink

    async def open_files(self) -> LogCursor | None:
        """Open the files and return the cursor; None if they cannot be used.

        If the caller cancels, the opening continues, and the next call awaits it.
        """
        if self._cursor is None:
            if self._working is None and self.running:
                self._start(self._open())
            await self._wait()
        return self._cursor

    async def fetch(
        self, fetch: Fetch, path: str, max_seconds: float, _: Inventory
    ) -> ResponseBody:
        body = await fetch(path, max_seconds)
        self.receive(body.data)
        return body

    def receive(self, body: bytes, requested: LogCursor | None = None) -> None:
        """Write the new rows of a list. Meanwhile, only the newest other list waits.

        Args:
            requested: the cursor of the request, or None. If the cursor has changed
                since then, the list is dropped.
        """
        self._next_list = body, requested
        if self.running and self._working is None:
            self._start(self._write_lists())

    def stopService(self) -> Deferred[None]:
        """Stop; the result fires after the current write, and closes the file."""
        super().stopService()
        return self._wait().addCallback(lambda _: self.sink.close())

    def _wait(self) -> Deferred[None]:
        """Wait for the current work; cancelling does not cancel it."""
        if self._working is None:
            return succeed(None)
        ended: Deferred[None] = Deferred()
        self._working.addBoth(lambda _: ended.callback(None))
        return ended

    def _start(self, work: Coroutine[Deferred[object], object, None]) -> None:
        self._working = working = Deferred.fromCoroutine(work)
        working.addBoth(self._done)

    def _done(self, _: object) -> None:
        self._working = None

    async def _open(self) -> None:
        with self._reported():
            await self._load_cursor()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Log an error in place of raising it: not even a bug must stop the log."""
        try:
            yield
        except (OSError, ValueError, MemoryError) as error:
            self._failed(error)
        except Exception:  # noqa: BLE001
            self._cursor = None
            self.log.failure("internal error while writing {rows}", rows=self._rows)

    async def _write_lists(self) -> None:
        """Write one list after the other; errors are logged, never raised."""
        while self.running and self._next_list is not None:
            (body, requested), self._next_list = self._next_list, None
            if requested is not None and requested is not self._cursor:
                continue
            # The refresh logs an UpstreamError.
            with self._reported(), suppress(UpstreamError):
                await self._write(body)
                self._succeeded()

    async def _load_cursor(self) -> LogCursor:
        if self._cursor is None:
            self._cursor, recovered = await self.sink.load()
            self.telemetry.written(len(recovered))
            keys = map(self.sink.first.key, recovered)
            self._count([(k[1], r) for k, r in zip(keys, recovered, strict=True) if k])
            if not self._failing:
                self.log.info(
                    "{rows} go to {output}", rows=self._rows, output=self.sink.where
                )
        return self._cursor

    async def _write(self, body: bytes) -> None:
        before = await self._load_cursor()
        now = int(self.now() * NANOSECONDS_PER_SECOND)
        unreadable, new = await self.compute(new_rows, before, body, now)
        del body
        self._count_unreadable(unreadable)
        self._cursor = new.before
        if new.gap_reason:
            await self._commit(b"", new.before)
            self.telemetry.missed()
            self.log.warn(
                "{rows} may be missing: {error}", rows=self._rows, error=new.gap_reason
            )
        for batch in batches(new.rows):
            if not self.running:
                return
            await self._write_batch(batch)
        after = new.after or self._cursor
        if new.rows or after != self._cursor:
            await self._commit(b"", after)
        self._unwritten_since = None
        self.is_behind = new.lag > 0
        self._record_lag(new.lag, new.skipped)
        if new.skipped:
            self.log.warn(
                "{count} {rows} are too old and are not counted: the exporter continues"
                " with the newest ones",
                count=new.skipped,
                rows=self._rows,
            )

    async def _write_batch(self, rows: Sequence[LogRow]) -> None:
        assert self._cursor is not None
        self._unwritten_since = nanoseconds(rows[0].timestamp)
        line = self.sink.first.line
        lines = await self.compute(render, line, rows, self.account, self.personal)
        lost = [row.id for row, line in zip(rows, lines, strict=True) if not line]
        cursor = self._cursor.with_([row.key for row in rows])
        await self._commit(b"".join(lines), cursor)
        self.telemetry.written(len(rows) - len(lost))
        self._count([(row.timestamp, row.raw) for row in rows])
        for id_ in lost:
            self.telemetry.missed()
            self.log.warn(
                "{row} {id} is unreadable and is not written",
                row=self.sink.first.row,
                id=id_,
            )

    async def _commit(self, lines: bytes, cursor: LogCursor) -> None:
        await self.sink.write(lines, cursor)
        self._cursor = cursor

    def _count(self, rows: Sequence[tuple[str, bytes]]) -> None:
        """Count rows, each with its timestamp."""
        since = int(self.now() * NANOSECONDS_PER_SECOND) - COUNTED_AGE
        recent = [raw for timestamp, raw in rows if nanoseconds(timestamp) >= since]
        self.telemetry.count_recent_rows(recent, len(rows) - len(recent))

    def _count_unreadable(self, hashes: Iterable[int]) -> None:
        """Report each unreadable row once: later lists may contain it again."""
        found = Counter(hashes)
        new_count = (found - self._unreadable).total()
        has_room = len(self._unreadable) < MAX_UNREADABLE
        self._unreadable = found | self._unreadable if has_room else found
        if new_count > 0:
            self.telemetry.missed(new_count)
            self.log.warn(
                "unreadable {rows} are not written: {count}",
                count=new_count,
                rows=self._rows,
            )

    def _record_lag(self, lag: float, skipped: int = 0) -> None:
        self._lag = lag
        self.telemetry.record_progress(lag, skipped)

    def _failed(self, error: OSError | ValueError | MemoryError) -> None:
        self._cursor = None
        now = int(self.now() * NANOSECONDS_PER_SECOND)
        if self._unwritten_since is None:  # the next row is not known yet
            self._unwritten_since = now
        self._record_lag(max(0, now - self._unwritten_since) / NANOSECONDS_PER_SECOND)
        where, error_text = self.sink.where, _reason(error, self.sink.where)
        self.problem = f"cannot write to {where}: {error_text}"
        if not self._failing:
            self._failing = True
            self.telemetry.writable(False)
            self.log.warn(
                "cannot write {rows} to {output}: {error}; NetBird keeps them, and the"
                " exporter retries",
                rows=self._rows,
                output=where,
                error=error_text,
            )

    def _succeeded(self) -> None:
        if self._failing:
            self._failing = False
            self.telemetry.writable(True)
            self.log.info(
                "{rows} are written to {output} again",
                rows=self._rows,
                output=self.sink.where,
            )


def new_rows(
    cursor: LogCursor, body: bytes, now: int
) -> tuple[tuple[int, ...], NewRows]:
    """Return the hashes of unreadable rows, and the new rows."""
    page = cursor.decode(body)
    return page.unreadable, cursor.new(page, now)


def render(
    line: Callable[[LogRow, str, frozenset[str]], bytes],
    rows: Sequence[LogRow],
    account: str,
    personal: frozenset[str],
) -> tuple[bytes, ...]:
    return tuple([line(row, account, personal) for row in rows])


def _reason(error: OSError | ValueError | MemoryError, where: str) -> str:
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, ValueError):
        return str(error)
    named = "" if error.filename in {None, where} else f"{error.filename}: "
    hint = ""
    # systemd sets this variable for a unit with LogsDirectory=.
    if error.errno == EROFS and (logs := os.environ.get("LOGS_DIRECTORY")):
        hint = (
            f" (the unit's sandbox: choose a file in {logs}, or add"
            f" ReadWritePaths={os.path.dirname(where)} to the unit)"
        )
    return f"{named}{error.strerror}{hint}"
