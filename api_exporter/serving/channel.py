"""One client's connection and its requests, with bounds on what they may cost."""

import fcntl
import re
import struct
import termios
from socket import AF_INET, AF_INET6, IPPROTO_TCP, TCP_NOTSENT_LOWAT
from typing import cast

from twisted.internet.interfaces import IDelayedCall, ITCPTransport
from twisted.internet.protocol import connectionDone
from twisted.internet.tcp import Connection, Server
from twisted.logger import Logger
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from twisted.web import http
from twisted.web.http_headers import Headers
from twisted.web.server import Request

from api_exporter.serving.idle_connections import IdleConnections
from api_exporter.serving.visibility import NONE, Accounts

MOST_NOT_SENT = 256 * 1024
"""Bytes that the system keeps for a connection before the client takes them: by itself
it would keep megabytes for each."""

LONGEST_ANSWER = 120.0
"""Seconds from an answer's first byte until its client has received all of it. A client
that reads slowly keeps an old page in memory for so long."""

MOST_ACCEPTED = 20
"""Connections that are let in before others have their turn, or a few more."""

_ORIGIN = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
"""What stands before the path in a target of absolute form (RFC 9112, 3.2.2)."""

_log = Logger("api_exporter.serving")  # what this module's name says is Twisted's


class BodilessRequest(Request):
    """A request whose body nobody reads: one that has any to speak of is refused.

    Attributes:
        accounts: those that the client may know of.
    """

    accounts: Accounts = NONE

    def gotLength(self, length: int | None) -> None:
        """Called when the headers are complete; None stands for chunks."""
        super().gotLength(0)
        if length is None or length > 0:
            self.requestHeaders.removeHeader(b"Expect")  # or Twisted would encourage it
            assert isinstance(self.channel, Channel)
            self.channel.refuse("413 Content Too Large")

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Called when it is complete."""
        path = _ORIGIN.sub(b"", path, 1) if path[:1] != b"/" else path
        super().requestReceived(command, path, version)


class Channel(http.HTTPChannel):
    """A connection that counts, and whose requests may not trickle in for ever.

    Requests that arrive together are answered one by one, each in its own turn of the
    event loop, and none while the client does not take the answers before it. Each has
    one deadline, which begins with its first byte.

    Attributes:
        connections: all there are; the site's.
        idle: those of them on which no request is being answered; the site's.
        host: the address of the client, "" for one on this machine that has none.
    """

    connections: "set[Channel]"
    idle: "IdleConnections[Channel]"
    host = ""
    _turn: IDelayedCall | None = None
    _deadline: IDelayedCall | None = None

    def connectionMade(self) -> None:
        self.connections.add(self)
        self.idle.add(self, self.host)
        below = self._below()
        if isinstance(below, Server):  # Twisted's port lets in more and more at a time
            port = below.server
            port.numberAccepts = min(port.numberAccepts, MOST_ACCEPTED)
            if below.socket.family in {AF_INET, AF_INET6}:
                option = TCP_NOTSENT_LOWAT, MOST_NOT_SENT
                below.socket.setsockopt(IPPROTO_TCP, *option)
        super().connectionMade()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.forget()
        for timer in filter(None, (self._turn, self._deadline)):
            timer.cancel()
        super().connectionLost(reason)

    def forget(self) -> None:
        """It counts no more."""
        self.connections.discard(self)
        self.idle.discard(self, self.host)

    def give_way(self) -> None:
        """Abort the connection, which counts no more from now on."""
        self.forget()
        cast(ITCPTransport, self.transport).abortConnection()

    def resetTimeout(self) -> None:
        """Not for every byte: the time runs from the connection, or the last answer."""

    def requestDone(self, request: http.Request) -> None:
        """An answer is complete; what has come in meanwhile waits for its turn."""
        if self.persistent and (self._buffer or self._dataBuffer):
            self.paused = True  # then LineReceiver keeps what it gets
        super().requestDone(request)
        if self in self.connections:
            self.idle.add(self, self.host)
        self._wait_for_turn()

    def resumeProducing(self) -> None:
        """The client has taken what was sent."""
        super().resumeProducing()
        self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        if self.paused:
            self._networkProducer.pauseProducing()
            if self._turn is None:
                self._turn = self.callLater(0, self._go_on)

    def _go_on(self) -> None:
        self._turn = None
        if self._waitingForTransport:  # there will be another turn
            return
        self.paused = False
        self._networkProducer.resumeProducing()
        self.dataReceived(b"")

    def headerReceived(self, line: bytes) -> bool:
        """Twisted raises for a Content-Length of more digits than Python reads."""
        try:
            received: bool = super().headerReceived(line)
        except ValueError:
            self.refuse("400 Bad Request")
            return False
        return received

    def lineLengthExceeded(self, _line: bytes) -> None:
        """A line of the request is longer than any that makes sense here."""
        self.refuse(
            "431 Request Header Fields Too Large"
            if self.requests
            else "414 URI Too Long"
        )

    def refuse(self, status: str) -> None:
        """Answer with a status alone, and close the connection."""
        head = f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        assert self.transport is not None
        self.transport.write(head.encode())
        self.loseConnection()

    def writeHeaders(
        self, version: bytes, code: bytes, reason: bytes, headers: Headers
    ) -> None:
        """Write the first bytes of an answer, and start its deadline.

        Of the answer before, only what lies in buffers may be left.
        """
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.callLater(LONGEST_ANSWER, self._end_answer)
        super().writeHeaders(version, code, reason, headers)

    def _end_answer(self) -> None:
        """Abort the connection unless the client has received all of the answer."""
        self._deadline = None
        left = self.unsent()
        begun = bool(self.requests and self.requests[0].startedWriting)
        if begun or left or getattr(self.transport, "disconnecting", False):
            _log.info(
                "closed the connection of a slow client: its answer took longer than"
                " {longest:.0f} s",
                longest=LONGEST_ANSWER,
                bytes_left=left,
            )
            self.give_way()

    def unsent(self) -> int:
        """Bytes of answers that the client has not acknowledged yet."""
        below = self._below()
        if below is None:
            return 0
        buffered = len(below.dataBuffer) - below.offset + below._tempDataLen
        queued = fcntl.ioctl(below.socket, termios.TIOCOUTQ, b"\0" * 4)
        return buffered + int(struct.unpack("i", queued)[0])

    def _below(self) -> Connection | None:
        """The transport that has the socket: with TLS it is not the one that we see."""
        below: object = self.transport
        if isinstance(below, TLSMemoryBIOProtocol):
            below = below.transport
        return below if isinstance(below, Connection) and below.connected else None
