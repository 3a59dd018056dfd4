"""The HTTP server: one subclass of Twisted's, with bounds and a graceful end."""

import fcntl
import struct
import termios
from socket import socket

from msgspec import Struct
from twisted.internet import defer
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IReactorTime
from twisted.internet.protocol import connectionDone
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web import http
from twisted.web.resource import IResource
from twisted.web.server import Request, Site

from api_exporter.web.page import Refusal

GRACE = 5.0
"""Seconds that requests under way are given when we stop."""

RESERVE = 16
"""Connections above the limit that still get an answer: 503, or `/health`."""

LONGEST_SILENCE = 60
"""Seconds in which a request has to be complete, or another one has to come."""

LOOK_INTERVAL = 20.0
"""Seconds between two looks at the readers."""

LOOKS = 3
"""Looks in a row that must find a reader where it was for it to count as gone."""

LONGEST_ANSWER = 300.0
"""Seconds that a client may take for one answer. No scrape lasts as long, and whoever
reads for ever would keep the pages of the past in memory."""

ALWAYS = b"/health"
"""The page that is served however many connections there are."""

_TOO_LARGE = (
    b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


class BodilessRequest(Request):
    """A request whose body nobody reads: one that has any to speak of is refused."""

    def gotLength(self, length: int | None) -> None:
        """Called when the headers are complete; None stands for chunks."""
        super().gotLength(0)
        if length is None or length > 0:
            channel = self.channel
            channel.write(_TOO_LARGE)
            channel.loseConnection()


class Channel(http.HTTPChannel):
    """A connection that counts, and whose requests may not trickle in for ever."""

    site: "DrainingSite"

    def connectionMade(self) -> None:
        self.site.connections.add(self)
        super().connectionMade()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.site.connections.discard(self)
        super().connectionLost(reason)

    def resetTimeout(self) -> None:
        """Not for every byte: the time runs from the connection, or the last answer."""

    def unsent(self) -> int:
        """Bytes of answers that the client has not acknowledged yet."""
        # Below TLS lies the transport that knows.
        transport: object = getattr(self.transport, "transport", self.transport)
        buffered = len(getattr(transport, "dataBuffer", b""))
        buffered -= getattr(transport, "offset", 0)
        handle = getattr(transport, "socket", None)
        if not isinstance(handle, socket):
            return buffered
        queued = fcntl.ioctl(handle, termios.TIOCOUTQ, b"\0" * 4)
        return buffered + int(struct.unpack("i", queued)[0])


class _Progress(Struct, frozen=True):
    """What a look finds of an answer.

    Attributes:
        sent: bytes handed to the transport.
        unsent: bytes that the client has not taken.
        reading: looks that found it unfinished.
        standing: the newest of these in a row that found it where it was.
    """

    sent: int
    unsent: int
    reading: int = 0
    standing: int = 0


_NONE = _Progress(-1, -1)


class DrainingSite(Site):
    """Bounds how many clients there are and how long each may take.

    Above `max_connections` every request but `/health` gets 503; above that and a
    reserve, a connection is closed without an answer.
    """

    noisy = False  # Twisted need not say that it starts
    protocol = Channel  # type: ignore[assignment]  # HTTP/1 alone
    _logger = Logger()

    def __init__(self, resource: IResource, max_connections: int = 512) -> None:
        super().__init__(resource, requestFactory=BodilessRequest)
        self.timeOut = LONGEST_SILENCE
        self.connections: set[Channel] = set()
        self.under_way: set[Request] = set()
        self._max_connections = max_connections
        self._full = Refusal(503, "Too many connections: try again later.")
        self._waiting: Deferred[None] | None = None
        self._seen: dict[Request, _Progress] = {}

    def buildProtocol(self, addr: IAddress) -> Channel | None:  # type: ignore[override]
        """None closes the connection at once."""
        if len(self.connections) >= self._max_connections + RESERVE:
            return None
        channel: Channel = super().buildProtocol(addr)
        return channel

    def getResourceFor(self, request: Request) -> IResource:
        """Twisted asks once for each request: here it begins."""
        self.under_way.add(request)
        request.notifyFinish().addBoth(self._finished, request)
        crowded = len(self.connections) > self._max_connections
        if crowded and request.path != ALWAYS:
            request.setHeader(b"Connection", b"close")
            request.setHeader(b"Retry-After", b"10")
            return self._full
        found: IResource = super().getResourceFor(request)
        return found

    def _finished(self, _result: object, request: Request) -> None:
        self.under_way.discard(request)
        self._seen.pop(request, None)
        if self._waiting is not None and not self.under_way:
            waiting, self._waiting = self._waiting, None
            waiting.callback(None)

    def look(self) -> None:
        """Drop whoever has read nothing since some looks ago, or reads for ever."""
        for request in list(self.under_way):
            channel = request.channel
            assert isinstance(channel, Channel)
            before = self._seen.get(request, _NONE)
            unsent = channel.unsent()
            stands = (before.sent, before.unsent) == (request.sentLength, unsent)
            seen = self._seen[request] = _Progress(
                sent=request.sentLength,
                unsent=unsent,
                reading=before.reading + 1 if unsent else before.reading,
                standing=before.standing + 1 if unsent and stands else 0,
            )
            too_long = seen.reading * LOOK_INTERVAL > LONGEST_ANSWER
            if too_long or seen.standing >= LOOKS:
                self._logger.info(
                    "dropped a client that {why}",
                    why="took too long" if too_long else "read nothing",
                    bytes_left=unsent,
                )
                channel.forceAbortClient()

    def log(self, request: http.Request) -> None:
        """A line for each request, instead of Twisted's access log."""
        self._logger.debug(
            "{method} {path}",
            method=request.method.decode("latin-1"),
            path=request.path.decode("latin-1"),
            status=request.code,
            client=str(getattr(request.getClientAddress(), "host", "")),
            bytes=request.sentLength,
        )

    def drained(self, clock: IReactorTime) -> Deferred[None]:
        """Fires when every answer has been sent, after the grace at the latest."""
        drained = Deferred.fromCoroutine(self._drain(clock))
        return drained.addTimeout(GRACE, clock).addErrback(_too_late)

    async def _drain(self, clock: IReactorTime) -> None:
        while self.under_way:
            self._waiting = Deferred()
            await self._waiting
        # An answer is finished when the transport has it, which is not yet the client.
        while any(connection.unsent() for connection in self.connections):
            await deferLater(clock, 0.02)


def _too_late(failure: Failure) -> None:
    failure.trap(defer.TimeoutError)
