"""`/debug/pprof/`: profiles of this process on demand, one at a time."""

import re
from collections.abc import Awaitable, Callable

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.web.resource import IResource
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.ports import Now
from api_exporter.profiling.recorders import Encode, record_cpu, record_heap
from api_exporter.serving.page import ReadOnlyPage, error_line, forbid_other_sites
from api_exporter.web.context import PROFILES_PATH

Record = Callable[[IReactorTime, int], Awaitable[Encode]]
"""Records for some seconds. Cancelling ends it and leaves nothing behind."""

InThread = Callable[[Encode, float], Awaitable[bytes]]
"""A function that makes a profile in another thread."""

KINDS: dict[str, tuple[Record, int, str]] = {
    "profile": (record_cpu, 30, "CPU time of the next 30 seconds"),
    "heap": (
        record_heap,
        5,
        "live memory that is allocated within 5 seconds; if tracemalloc has run from"
        " the start, all live memory at once",
    ),
}
"""The kinds of profiles by their names in Go: recorder, default seconds, title."""

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


class Profiles(Service):
    """The pages by path. Stopping cancels a profile that is being recorded."""

    recording: Deferred[None] | None = None

    def __init__(self, clock: IReactorTime, now: Now, in_thread: InThread) -> None:
        self.clock, self.now, self.in_thread = clock, now, in_thread
        index = Index()
        self.pages: dict[str, IResource] = {
            PROFILES_PATH: index,
            f"{PROFILES_PATH}/": index,
        }
        for name, (record, seconds, _) in KINDS.items():
            page = ProfilePage(self, name, record, seconds)
            self.pages[f"{PROFILES_PATH}/{name}"] = page

    def stopService(self) -> None:
        super().stopService()
        self.cancel()

    def cancel(self) -> None:
        if self.recording is not None:
            self.recording.cancel()


class Index(ReadOnlyPage):
    """A list of the profiles. Its links work only below the slash."""

    media_type = b"text/html; charset=utf-8"

    def page(self, request: Request) -> str:
        forbid_other_sites(request)
        if name := (request.prepath or [b""])[-1]:
            request.redirect(name + b"/")
        items = "".join(
            f'<li><a href="{name}">{name}</a>: {title}</li>\n'
            for name, (_, _, title) in KINDS.items()
        )
        return _INDEX.format(items=items)


class ProfilePage(ReadOnlyPage):
    """A page that records a profile; a disconnect cancels it."""

    def __init__(
        self, profiles: Profiles, name: str, record: Record, seconds: int
    ) -> None:
        super().__init__()
        self._profiles = profiles
        self._name = name
        self._record = record
        self._seconds = seconds

    def render_GET(self, request: Request) -> bytes | int:
        forbid_other_sites(request)
        values = (request.args or {}).get(b"seconds", [b"%d" % self._seconds])
        # A repeated parameter is invalid too: no number has a comma.
        seconds = b",".join(values)
        if not re.fullmatch(rb"[1-9]\d?|[12]\d\d|300", seconds):
            line = "seconds must be a whole number from 1 to 300"
            return self._refuse(request, 400, line)
        if self._profiles.recording is not None:
            return self._refuse(request, 409, "another profile runs; retry later")
        if request.method == b"HEAD":
            return self._attach(request, b"")
        answering = Deferred.fromCoroutine(self._answer(request, int(seconds)))
        self._profiles.recording = answering
        answering.addBoth(self._on_ended)
        return NOT_DONE_YET

    def _on_ended(self, _: object) -> None:
        self._profiles.recording = None

    async def _answer(self, request: Request, seconds: int) -> None:
        disconnected = request.notifyFinish()
        disconnected.addErrback(lambda _: self._profiles.cancel())
        profiles, started = self._profiles, self._profiles.now()
        try:
            encode = await self._record(profiles.clock, seconds)
            body = self._attach(request, await profiles.in_thread(encode, started))
        except CancelledError:
            body = self._refuse(request, 503, "the exporter is stopping")
        except Exception:  # noqa: BLE001 - the client gets a response
            _log.failure("cannot make the {kind} profile", kind=self._name)
            line = "the exporter cannot make the profile; see the log"
            body = self._refuse(request, 500, line)
        if not disconnected.called:
            request.write(body)
            request.finish()

    def _attach(self, request: Request, body: bytes) -> bytes:
        request.setHeader(b"Content-Type", b"application/octet-stream")
        file = b"attachment; filename=%s.pb.gz" % self._name.encode()
        request.setHeader(b"Content-Disposition", file)
        return body

    def _refuse(self, request: Request, status: int, line: str) -> bytes:
        request.setHeader(b"X-Go-Pprof", b"1")  # `go tool pprof` shows the line
        return error_line(request, status, line)
