"""A client's connection and its requests, with limits to what they may cost."""

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

from api_exporter.ports import NO_ACCOUNTS, Accounts

MAX_UNSENT_BYTES = 256 * 1024
"""Unsent bytes that the kernel keeps for a connection; by default, megabytes."""

MAX_RESPONSE_SECONDS = 120.0
"""Seconds from a response's first byte until its client has received all of it. A
client that reads slowly keeps an old page in memory for so long."""

MAX_ACCEPTS = 20
"""Connections accepted in one event loop iteration; Twisted may exceed it by 20."""

_ORIGIN = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
"""The part before the path in a request target of absolute form (RFC 9112, 3.2.2)."""

_log = Logger("api_exporter.serving")  # Twisted logs with this module's name


def client_host(request: http.Request) -> str:
    return host_of(request.getClientAddress())


def host_of(client: object) -> str:
    """Return a client's address, "" for a client on this machine without one.

    A socket of both families has an IPv4 address as `::ffff:10.0.0.1`.
    """
    return str(getattr(client, "host", "")).removeprefix("::ffff:")


class BodilessRequest(Request):
    """A request without a body; one with a body is refused."""

    accounts: Accounts = NO_ACCOUNTS

    def gotLength(self, length: int | None) -> None:
        """Refuse a body. Called after the headers, with None for a chunked body."""
        super().gotLength(0)
        if length is None or length > 0:
            self.requestHeaders.removeHeader(b"Expect")  # or Twisted sends 100
            assert isinstance(self.channel, Channel)
            self.channel.refuse("413 Content Too Large")

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Remove scheme and host from the target."""
        path = _ORIGIN.sub(b"", path, 1) if path[:1] != b"/" else path
        if path[:1] not in b"/?" and path != b"*":
            path = b"//" + path  # no page: Twisted drops the first byte
        super().requestReceived(command, path, version)


class Channel(http.HTTPChannel):
    """A connection with a timeout for requests, and a deadline for each response.

    Pipelined requests are answered one per event loop iteration, and only while the
    client receives previous ones. A response's deadline begins with its first byte.

    Attributes:
        address: the client's address; "" for a client without one.
        is_refused: True to close the connection at once.
    """

    connections: "set[Channel]"
    address = ""
    is_refused = False
    _next_request_call: IDelayedCall | None = None
    _deadline: IDelayedCall | None = None
    _has_data = False

    def connectionMade(self) -> None:
        if self.is_refused:
            self.abort()
            return
        self.connections.add(self)
        tcp = self._tcp_transport()
        if isinstance(tcp, Server):  # Twisted's port accepts more and more at once
            port = tcp.server
            port.numberAccepts = min(port.numberAccepts, MAX_ACCEPTS)
            if tcp.socket.family in {AF_INET, AF_INET6}:
                option = TCP_NOTSENT_LOWAT, MAX_UNSENT_BYTES
                tcp.socket.setsockopt(IPPROTO_TCP, *option)
        super().connectionMade()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.connections.discard(self)
        for timer in filter(None, (self._next_request_call, self._deadline)):
            timer.cancel()
        super().connectionLost(reason)

    def abort(self) -> None:
        self.connections.discard(self)
        cast(ITCPTransport, self.transport).abortConnection()

    def resetTimeout(self) -> None:
        """Do nothing: received bytes do not extend the timeout."""

    def dataReceived(self, data: bytes) -> None:
        """Drop what a client sends after the close: TLS waits for its last record.

        A handshake of TLS, which begins with byte 22, gets a readable answer at once.
        """
        if getattr(self.transport, "disconnecting", False):
            return
        if data[:1] == b"\x16" and not self._has_data:
            self.refuse(
                "400 Bad Request", "Client sent TLS to an HTTP server: use http."
            )
            return
        self._has_data = True
        super().dataReceived(data)

    def rawDataReceived(self, data: bytes) -> None:  # noqa: N802 - the name is Twisted's
        """Pause a client that sends further requests meanwhile.

        Twisted does not pause one that reads no response, and would keep all it sends.
        """
        super().rawDataReceived(data)
        if sum(map(len, self._dataBuffer)) > self._optimisticEagerReadSize:
            self._networkProducer.pauseProducing()

    def requestDone(self, request: http.Request) -> None:
        """Called when a response is complete. Requests received meanwhile wait."""
        if self.persistent and (self._buffer or self._dataBuffer):
            self.paused = True  # LineReceiver keeps the bytes
        super().requestDone(request)
        self._schedule_next_request()

    def resumeProducing(self) -> None:
        """Called when the client has received what was sent."""
        super().resumeProducing()
        self._schedule_next_request()

    def _schedule_next_request(self) -> None:
        if self.paused:
            self._networkProducer.pauseProducing()
            if self._next_request_call is None:
                self._next_request_call = self.callLater(0, self._handle_next_request)

    def _handle_next_request(self) -> None:
        self._next_request_call = None
        if self._waitingForTransport:  # resumeProducing() will be called
            return
        self.paused = False
        self._networkProducer.resumeProducing()
        self.dataReceived(b"")

    def headerReceived(self, line: bytes) -> bool:
        """Refuse a Content-Length of so many digits that Twisted raises an error."""
        try:
            received: bool = super().headerReceived(line)
        except ValueError:
            self.refuse("400 Bad Request")
            return False
        return received

    def lineLengthExceeded(self, _line: bytes) -> None:
        self.refuse(
            "431 Request Header Fields Too Large"
            if self.requests
            else "414 URI Too Long"
        )

    def refuse(self, status: str, line: str = "") -> None:
        """Respond with a status and a line, and close the connection."""
        body = f"{line}\n" if line else ""
        head = f"HTTP/1.1 {status}\r\nConnection: close\r\n"
        if line:
            head += "Content-Type: text/plain; charset=utf-8\r\n"
        assert self.transport is not None
        self.transport.write(
            f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        self.loseConnection()

    def writeHeaders(
        self, version: bytes, code: bytes, reason: bytes, headers: Headers
    ) -> None:
        """Write the first bytes of a response, and start its deadline.

        Only buffered bytes of the previous response may be left.
        """
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.callLater(MAX_RESPONSE_SECONDS, self._on_deadline)
        super().writeHeaders(version, code, reason, headers)

    def _on_deadline(self) -> None:
        """Abort the connection unless the client has received all of the response."""
        self._deadline = None
        bytes_left = self.unsent_bytes()
        has_begun = bool(self.requests and self.requests[0].startedWriting)
        if has_begun or bytes_left or getattr(self.transport, "disconnecting", False):
            _log.info(
                "closed the connection of a slow client: the response took longer than"
                " {limit:.0f} s",
                limit=MAX_RESPONSE_SECONDS,
                bytes_left=bytes_left,
            )
            self.abort()

    def unsent_bytes(self) -> int:
        """Return the number of bytes that the client has not acknowledged yet."""
        tcp = self._tcp_transport()
        if tcp is None:
            return 0
        buffered = len(tcp.dataBuffer) - tcp.offset + tcp._tempDataLen
        queued = fcntl.ioctl(tcp.socket, termios.TIOCOUTQ, b"\0" * 4)
        return buffered + int(struct.unpack("i", queued)[0])

    def _tcp_transport(self) -> Connection | None:
        """Return the TCP transport, which is below TLS; None if it is closed."""
        tcp: object = self.transport
        if isinstance(tcp, TLSMemoryBIOProtocol):
            tcp = tcp.transport
        return tcp if isinstance(tcp, Connection) and tcp.connected else None
