"""A connection from the exporter to a simulated HTTP/1.1 server."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, cast

from msgspec import Struct
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import (
    IDelayedCall,
    IProtocol,
    IPushProducer,
    ITCPTransport,
)
from twisted.python.failure import Failure
from zope.interface import implementer

if TYPE_CHECKING:
    from simulation.machine import Machine

READ = 64 * 1024
"""Bytes that are read at once, as in Twisted."""

LATENCY = 0.05
"""Seconds from a request to its response."""


class Answer(Struct):
    """The response to a request.

    Attributes:
        pieces: the parts of the response, each with its delay in seconds after the one
            before.
        end: the reason why the connection closes afterwards; None if it stays open.
        over: called at the end with whether the response was received completely.
    """

    pieces: list[tuple[float, bytes]]
    end: ConnectionDone | ConnectionLost | None = None
    over: Callable[[bool], object] = lambda _: None


Received = bytes | ConnectionDone | ConnectionLost | None
"""Some bytes, None for the end of a response, or the end of the connection."""


class Server(Protocol):
    """The server side of a simulated connection."""

    def door(self) -> str:
        """Return the result of an attempt to connect: "open", "refused" or "lost"."""
        ...

    def answer(self, path: str, token: str) -> Answer:
        """Return the response to a request for a path with its query."""
        ...


@implementer(ITCPTransport, IPushProducer)
class Link:
    """The exporter's side of a connection."""

    disconnecting = False

    def __init__(self, machine: "Machine", server: Server, protocol: IProtocol) -> None:
        self._machine = machine
        self._server = server
        self._protocol = protocol
        self._asked = b""
        self._paused = False
        self._waiting: list[Received] = []
        self._answer: Answer | None = None
        self._to_come: list[IDelayedCall] = []
        self._open = True
        machine.links[self] = None
        protocol.makeConnection(cast("ITCPTransport", self))

    def write(self, data: bytes) -> None:
        self._asked += data
        while (end := self._asked.find(b"\r\n\r\n")) >= 0 and self._open:
            head, self._asked = self._asked[:end], self._asked[end + 4 :]
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
        self._answer = answer = self._server.answer(path, token.split()[-1])
        wait = 0.0
        for delay, piece in answer.pieces:
            wait += delay
            for start in range(0, len(piece), READ):
                self._later(wait, piece[start : start + READ])
        if answer.pieces:
            self._later(wait, None)
        if answer.end is not None:  # At once, before the next response.
            self._later(wait if answer.pieces else LATENCY, answer.end)

    def _later(self, wait: float, what: Received) -> None:
        call = self._machine.callLater(wait, self._receive, what)
        self._to_come = [*(c for c in self._to_come if c.active()), call]

    def _receive(self, what: Received) -> None:
        if self._paused or self._waiting:
            self._waiting.append(what)
        elif isinstance(what, bytes):
            self._protocol.dataReceived(what)
        elif what is None:
            self._over(whole=True)
        else:
            self._lost(what)

    def _over(self, *, whole: bool) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.over(whole)

    def _flush(self) -> None:
        while self._waiting and self._open and not self._paused:
            waiting, self._waiting = self._waiting, []
            self._receive(waiting[0])
            self._waiting = waiting[1:] + self._waiting

    def _lost(self, why: Exception) -> None:
        if self._open:
            self._open = False
            self._machine.links.pop(self)
            for call in self._to_come:
                if call.active():
                    call.cancel()
            self._over(whole=False)
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
        self._machine.callLater(0, self._lost, ConnectionDone())

    def abortConnection(self) -> None:
        self.disconnecting = True
        self._machine.callLater(0, self._lost, ConnectionAborted())

    def getPeer(self) -> IPv4Address:  # noqa: N802 - Twisted's name
        return IPv4Address("TCP", "127.0.0.1", 443)

    def getHost(self) -> IPv4Address:  # noqa: N802 - Twisted's name
        return IPv4Address("TCP", "127.0.0.1", 1)

    def registerProducer(self, producer: object, streaming: bool) -> None:  # noqa: N802
        """Do nothing: requests have no bodies."""

    def unregisterProducer(self) -> None:  # noqa: N802
        """Do nothing."""

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802
        """Do nothing."""

    def setTcpKeepAlive(self, enabled: bool) -> None:  # noqa: N802
        """Do nothing."""

    def getTcpNoDelay(self) -> bool:  # noqa: N802
        return True

    def getTcpKeepAlive(self) -> bool:  # noqa: N802
        return False

    def loseWriteConnection(self) -> None:  # noqa: N802
        """Do nothing."""
