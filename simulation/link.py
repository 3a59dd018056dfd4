"""A connection from the exporter to a simulated HTTP/1.1 server."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import (
    IDelayedCall,
    IProtocol,
    IPushProducer,
    ITransport,
)
from twisted.python.failure import Failure
from zope.interface import implementer

if TYPE_CHECKING:
    from simulation.machine import Machine

READ_BYTES = 64 * 1024
"""Bytes that are read at once, as in Twisted."""

LATENCY = 0.05
"""Seconds from a request to its response."""


class Response(Struct):
    """The response to a request.

    Attributes:
        pieces: the parts of the response, each with its delay in seconds after the one
            before.
        end: the reason why the connection closes afterwards; None if it stays open.
        on_end: called at the end with whether the response was received completely.
    """

    pieces: list[tuple[float, bytes]]
    end: ConnectionDone | ConnectionLost | None = None
    on_end: Callable[[bool], object] = lambda _: None


def complete(
    status: int, body: bytes, media: str = "application/json", seconds: float = 0.1
) -> Response:
    """Return a response that arrives in one piece, after some time."""
    head = f"HTTP/1.1 {status} Said\r\nContent-Type: {media}\r\n"
    whole = head.encode() + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    return Response([(seconds, whole)])


Received = bytes | ConnectionDone | ConnectionLost | None
"""Some bytes, None for the end of a response, or the end of the connection."""


class Server(Protocol):
    """The server side of a simulated connection."""

    def connection_state(self) -> str:
        """Return the result of an attempt to connect: "open", "refused" or "lost"."""
        ...

    def respond(self, path: str, token: str) -> Response:
        """Return the response to a request for a path with its query."""
        ...


@implementer(ITransport, IPushProducer)
class Link:
    """The exporter's side of a connection."""

    disconnecting = False

    def __init__(
        self, machine: "Machine", server: Server, protocol: IProtocol, began: float
    ) -> None:
        self._machine = machine
        self._server = server
        self._protocol = protocol
        self._requests = b""
        self._paused = False
        self._held_back: list[Received] = []
        self._response: Response | None = None
        self._pending: list[IDelayedCall] = []
        self._open = True
        self._began: float | None = began
        machine.links[self] = None
        protocol.makeConnection(self)

    def write(self, data: bytes) -> None:
        self._requests += data
        while (end := self._requests.find(b"\r\n\r\n")) >= 0 and self._open:
            head, self._requests = self._requests[:end], self._requests[end + 4 :]
            self._request(head.decode("latin-1"))

    def writeSequence(self, data: Iterable[bytes]) -> None:
        self.write(b"".join(data))

    def _request(self, head: str) -> None:
        target, *lines = head.split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines)
        assert fields.keys() >= {"host", "authorization", "user-agent"}
        # Case matters in a token.
        token = next(x for x in lines if x.lower().startswith("authorization"))
        path = target.split()[1].removeprefix("/")
        self._machine.request_began = self._began or self._machine.seconds()
        self._began = None
        self._response = response = self._server.respond(path, token.split()[-1])
        wait = 0.0
        for delay, piece in response.pieces:
            wait += delay
            for start in range(0, len(piece), READ_BYTES):
                self._receive_later(wait, piece[start : start + READ_BYTES])
        if response.pieces:
            self._receive_later(wait, None)
        if response.end is not None:  # At once, before the next response.
            self._receive_later(wait if response.pieces else LATENCY, response.end)

    def _receive_later(self, wait: float, what: Received) -> None:
        call = self._machine.callLater(wait, self._receive, what)
        self._pending = [*(c for c in self._pending if c.active()), call]

    def _receive(self, what: Received) -> None:
        if self._paused or self._held_back:
            self._held_back.append(what)
        elif isinstance(what, bytes):
            self._deliver(what)
        elif what is None:
            self._end_response(whole=True)
        else:
            self._close(what)

    def _deliver(self, data: bytes) -> None:
        self._protocol.dataReceived(data)

    def _end_response(self, *, whole: bool) -> None:
        response, self._response = self._response, None
        if response is not None:
            response.on_end(whole)

    def _flush(self) -> None:
        while self._held_back and self._open and not self._paused:
            waiting, self._held_back = self._held_back, []
            self._receive(waiting[0])
            self._held_back = waiting[1:] + self._held_back

    def _close(self, why: Exception) -> None:
        if self._open:
            self._open = False
            self._machine.links.pop(self)
            for call in self._pending:
                if call.active():
                    call.cancel()
            self._end_response(whole=False)
            self._protocol.connectionLost(Failure(why))

    def pauseProducing(self) -> None:
        self._paused = True

    def resumeProducing(self) -> None:
        self._paused = False
        self._machine.callLater(0, self._flush)

    def stopProducing(self) -> None:
        self.loseConnection()

    def loseConnection(self) -> None:  # noqa: N802 - Twisted's name
        self.disconnecting = True
        self._machine.callLater(0, self._close, ConnectionDone())

    def abortConnection(self) -> None:
        self.disconnecting = True
        self._machine.callLater(0, self._close, ConnectionAborted())

    def getPeer(self) -> IPv4Address:  # noqa: N802 - Twisted's name
        return IPv4Address("TCP", "127.0.0.1", 443)

    def getHost(self) -> IPv4Address:  # noqa: N802 - Twisted's name
        return IPv4Address("TCP", "127.0.0.1", 1)

    def registerProducer(self, producer: object, streaming: bool) -> None:  # noqa: N802
        """Do nothing: requests have no bodies."""

    def unregisterProducer(self) -> None:  # noqa: N802
        """Do nothing."""
