"""`/debug/pprof/`: profiles of this process on demand, one of a kind at a time."""

import re
from collections.abc import Callable
from math import ceil

from twisted.application.service import Service
from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.profiling.in_thread import InThread
from api_exporter.profiling.kinds import KINDS, Kind, Work
from api_exporter.serving.page import ReadOnly, Text, keep_at_home

SECONDS = range(1, 301)
"""How long a profile may take."""

FORMATS = range(1)
"""Go's `debug` parameter: 0 is the binary format, the only one that we have."""

_INDEX = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Profiles of api-exporter</title></head>
<body>
<h1>Profiles of api-exporter</h1>
<p>To be read by <code>go tool pprof</code>; <code>?seconds=N</code> says how long.</p>
<ul>
{items}</ul>
</body>
</html>
"""

_log = Logger()


class Slot:
    """Room for one profile at a time.

    Attributes:
        running: the profile that is being made, if any.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self.running: Deferred[bytes] | None = None
        self._clock = clock
        self._until = 0.0

    def start(self, work: Work, seconds: int) -> Deferred[bytes]:
        self._until = self._clock.seconds() + seconds
        self.running = Deferred.fromCoroutine(work)
        return self.running.addBoth(self._end)

    def _end(self, result: bytes | Failure) -> bytes | Failure:
        self.running = None
        return result

    def wait(self) -> int:
        """Seconds after which another try makes sense."""
        return max(1, ceil(self._until - self._clock.seconds()))

    def stop(self) -> None:
        if self.running is not None:
            self.running.cancel()


class ProfilePage(ReadOnly):
    """Makes a profile of one kind for whoever asks, and for as long as they wait."""

    def __init__(
        self,
        kind: Kind,
        slot: Slot,
        clock: IReactorTime,
        now: Callable[[], float],
        in_thread: InThread,
    ) -> None:
        super().__init__()
        self._kind = kind
        self._slot = slot
        self._clock = clock
        self._now = now
        self._in_thread = in_thread

    def render_GET(self, request: Request) -> bytes | int:
        """The profile, when its time has come."""
        keep_at_home(request)
        try:
            _whole_number(request, "debug", FORMATS, 0)
            seconds = _whole_number(request, "seconds", SECONDS, self._kind.seconds)
        except ValueError as error:
            return _refuse(request, 400, str(error))
        if self._slot.running is not None:
            request.setHeader(b"Retry-After", b"%d" % self._slot.wait())
            return _refuse(request, 409, f"{self._kind.uses} is in use; try later")
        file_name = f"{self._kind.name}.pb.gz".encode()
        request.setHeader(b"Content-Type", b"application/octet-stream")
        request.setHeader(b"Content-Disposition", b"attachment; filename=" + file_name)
        request.setHeader(b"X-Content-Type-Options", b"nosniff")
        request.setHeader(b"Cache-Control", b"no-store")
        if request.method == b"HEAD":
            return b""
        self._serve(request, seconds)
        return NOT_DONE_YET

    def _serve(self, request: Request, seconds: int) -> None:
        work = self._kind.make(self._clock, self._in_thread, seconds, self._now())
        running = self._slot.start(work, seconds)
        gone = request.notifyFinish()
        gone.addErrback(lambda _: running.cancel())

        def ended(failure: Failure) -> bytes:
            if failure.check(CancelledError):
                return _refuse(request, 503, "the exporter is being stopped")
            _log.failure("No {kind} profile", failure, kind=self._kind.name)
            return _refuse(request, 500, "no profile could be made; see the log")

        def answer(body: bytes) -> None:
            if not gone.called:
                request.write(body)
                request.finish()

        running.addErrback(ended).addCallback(answer)


class Pprof(Text):
    """The index, and below it a page for each kind of profile."""

    media_type = b"text/html; charset=utf-8"

    def __init__(
        self, clock: IReactorTime, now: Callable[[], float], in_thread: InThread
    ) -> None:
        super().__init__()
        self._slots = {kind.uses: Slot(clock) for kind in KINDS}
        self.putChild(b"", self)
        for kind in KINDS:
            page = ProfilePage(kind, self._slots[kind.uses], clock, now, in_thread)
            self.putChild(kind.name.encode(), page)

    def stop(self) -> None:
        """End the profiles that are being made; their clients are told."""
        for slot in self._slots.values():
            slot.stop()

    def render_GET(self, request: Request) -> bytes:
        """The index, whose links work below the slash only."""
        keep_at_home(request)
        *_, last = request.prepath or [b""]
        if last:
            request.redirect(last + b"/")
        return super().render_GET(request)

    def text(self, _request: Request) -> str:
        """Links to all profiles."""
        items = "".join(
            f'<li><a href="{kind.name}">{kind.name}</a>: {kind.title}</li>\n'
            for kind in KINDS
        )
        return _INDEX.format(items=items)


class Profiles(Service):
    """All pages, and the end of what is being made when the program ends.

    Args:
        threads: profiles are encoded in them.
        now: seconds since the epoch.

    Attributes:
        pages: to be put below `/debug/pprof`.
    """

    def __init__(
        self, reactor: ReactorBase, threads: ThreadPool, now: Callable[[], float]
    ) -> None:
        def in_thread(work: Callable[[], bytes]) -> Deferred[bytes]:
            return deferToThreadPool(reactor, threads, work)

        self.pages = Pprof(reactor, now, in_thread)

    def stopService(self) -> None:
        super().stopService()
        self.pages.stop()


def _whole_number(request: Request, name: str, allowed: range, default: int) -> int:
    """A parameter of the query; raises what is wrong with it in one line."""
    values = (request.args or {}).get(name.encode())
    if values is None:
        return default
    # Given twice it is wrong too, as no number has a comma.
    value = b",".join(values)
    if re.fullmatch(rb"[0-9]{1,3}", value) and int(value) in allowed:
        return int(value)
    wanted = (
        f"a whole number from {allowed[0]} to {allowed[-1]}" if allowed[-1] else "0"
    )
    shown = ascii(value[:30].decode("latin-1"))
    raise ValueError(f"{name} must be {wanted}, not {shown}")


def _refuse(request: Request, status: int, line: str) -> bytes:
    request.setResponseCode(status)
    request.responseHeaders.removeHeader(b"Content-Disposition")
    request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
    request.setHeader(b"X-Content-Type-Options", b"nosniff")
    # Asks `go tool pprof` to show the line.
    request.setHeader(b"X-Go-Pprof", b"1")
    return f"{line}\n".encode()
