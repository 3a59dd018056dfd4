"""`/debug/pprof/`: profiles of this process on demand, one of each kind at a time."""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from math import ceil

from msgspec import Struct
from twisted.application.service import Service
from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.ports import Now
from api_exporter.profiling import cpu, heap, stacks
from api_exporter.profiling.pprof import Profile, encode
from api_exporter.serving.page import (
    ReadOnlyPage,
    TextPage,
    error_line,
    forbid_other_sites,
)

InThread = Callable[[Callable[[], bytes]], Awaitable[bytes]]
"""A function that runs blocking work in another thread."""

DURATIONS = range(1, 301)
"""The allowed duration of a profile in seconds."""

DEBUG_VALUES = range(1)
"""The supported values of Go's `debug` parameter: 0 is the binary format."""

_INDEX = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Profiles of api-exporter</title></head>
<body>
<h1>Profiles of api-exporter</h1>
<p>Read them with <code>go tool pprof</code>.
<code>?seconds=N</code> sets the duration in seconds.</p>
<ul>
{items}</ul>
</body>
</html>
"""

_log = Logger()


class ProfileKind(Struct, frozen=True, kw_only=True):
    """A kind of profile; one of each kind can run at a time.

    Attributes:
        uses: the resource that only one profile can use at a time.
        seconds: the default duration.
        record: records for a number of seconds. Cancelling ends it and leaves nothing
            behind. The result makes the profile, in any thread.
    """

    title: str
    uses: str
    seconds: int
    record: Callable[[IReactorTime, int], Awaitable[Callable[[], Profile]]]


PROFILE_KINDS = {
    "profile": ProfileKind(
        title="CPU time of the next 30 seconds",
        uses="the CPU sampler",
        seconds=30,
        record=cpu.profile,
    ),
    "heap": ProfileKind(
        title="live memory that is allocated within 5 seconds; "
        "if tracemalloc has run from the start, all live memory at once",
        uses="tracemalloc",
        seconds=5,
        record=heap.profile,
    ),
    "goroutine": ProfileKind(
        title="the stacks of all threads now",
        uses="the threads' stacks",
        seconds=1,
        record=stacks.profile,
    ),
}
"""The kinds of profiles by their names in Go."""


class ProfilePage(ReadOnlyPage):
    """A page that records a profile of one kind; a disconnect cancels it."""

    _ends_at: float

    def __init__(
        self, kind: ProfileKind, clock: IReactorTime, now: Now, in_thread: InThread
    ) -> None:
        super().__init__()
        self._kind = kind
        self._clock = clock
        self._now = now
        self._in_thread = in_thread
        self._running: Deferred[bytes] | None = None

    def render_GET(self, request: Request) -> bytes | int:
        forbid_other_sites(request)
        try:
            _whole_number(request, "debug", DEBUG_VALUES, 0)
            seconds = _whole_number(request, "seconds", DURATIONS, self._kind.seconds)
        except ValueError as error:
            return _refuse(request, 400, str(error))
        if self._running is not None:
            wait = max(1, ceil(self._ends_at - self._clock.seconds()))
            request.setHeader(b"Retry-After", b"%d" % wait)
            return _refuse(request, 409, f"{self._kind.uses} is in use; retry later")
        if request.method == b"HEAD":
            return _attach(request, b"")
        self._ends_at = self._clock.seconds() + seconds
        running = self._running = Deferred.fromCoroutine(self._make(seconds))
        disconnected = request.notifyFinish()
        disconnected.addErrback(lambda _: running.cancel())

        def on_failed(failure: Failure) -> bytes:
            if failure.check(CancelledError):
                return _refuse(request, 503, "the exporter is stopping")
            kind = _name(request).decode()
            _log.failure("cannot make the {kind} profile", failure, kind=kind)
            return _refuse(
                request, 500, "the exporter cannot make the profile; see the log"
            )

        def send(body: bytes) -> None:
            if not disconnected.called:
                request.write(body)
                request.finish()

        running.addBoth(self._on_ended)
        running.addCallbacks(partial(_attach, request), on_failed).addCallback(send)
        return NOT_DONE_YET

    async def _make(self, seconds: int) -> bytes:
        started = self._now()
        profile = await self._kind.record(self._clock, seconds)
        return await self._in_thread(lambda: encode(profile(), started))

    def _on_ended(self, result: bytes | Failure) -> bytes | Failure:
        self._running = None
        return result

    def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()


class Pprof(TextPage):
    """The index, and below it a page for each kind of profile."""

    media_type = b"text/html; charset=utf-8"

    def __init__(self, clock: IReactorTime, now: Now, in_thread: InThread) -> None:
        super().__init__()
        self._pages = [
            (name, ProfilePage(kind, clock, now, in_thread))
            for name, kind in PROFILE_KINDS.items()
        ]
        self.putChild(b"", self)
        for name, page in self._pages:
            self.putChild(name.encode(), page)

    def stop(self) -> None:
        for _, page in self._pages:
            page.stop()

    def render_GET(self, request: Request) -> bytes:
        """Return the index, whose links work only below the slash."""
        forbid_other_sites(request)
        if name := _name(request):
            request.redirect(name + b"/")
        return super().render_GET(request)

    def text(self, _request: Request) -> str:
        items = "".join(
            f'<li><a href="{name}">{name}</a>: {kind.title}</li>\n'
            for name, kind in PROFILE_KINDS.items()
        )
        return _INDEX.format(items=items)


class ProfileService(Service):
    """The pages of profiles; stopping the service cancels running profiles.

    Args:
        threads: where profiles are encoded.

    Attributes:
        pages: the resource for `/debug/pprof`.
    """

    def __init__(self, reactor: ReactorBase, threads: ThreadPool, now: Now) -> None:
        def in_thread(work: Callable[[], bytes]) -> Deferred[bytes]:
            return deferToThreadPool(reactor, threads, work)

        self.pages = Pprof(reactor, now, in_thread)

    def stopService(self) -> None:
        super().stopService()
        self.pages.stop()


def _name(request: Request) -> bytes:
    return (request.prepath or [b""])[-1]


def _whole_number(request: Request, name: str, allowed: range, default: int) -> int:
    """Return a parameter of the query; raise ValueError with a line for the client."""
    values = (request.args or {}).get(name.encode())
    if values is None:
        return default
    # A repeated parameter is invalid too: no number has a comma.
    value = b",".join(values)
    if re.fullmatch(rb"[0-9]{1,3}", value) and int(value) in allowed:
        return int(value)
    wanted = (
        f"a whole number from {allowed[0]} to {allowed[-1]}" if allowed[-1] else "0"
    )
    shown = ascii(value[:30].decode("latin-1"))
    raise ValueError(f"{name} must be {wanted}, not {shown}")


def _attach(request: Request, body: bytes) -> bytes:
    request.setHeader(b"Content-Type", b"application/octet-stream")
    file = b"attachment; filename=%s.pb.gz" % _name(request)
    request.setHeader(b"Content-Disposition", file)
    return body


def _refuse(request: Request, status: int, line: str) -> bytes:
    # With this header, `go tool pprof` shows the line.
    request.setHeader(b"X-Go-Pprof", b"1")
    return error_line(request, status, line)
