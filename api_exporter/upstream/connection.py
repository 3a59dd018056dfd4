"""Connections: plain or TLS, with a limit to the bytes before a body."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import idna
from OpenSSL.crypto import X509
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import HostnameEndpoint, TCP4ClientEndpoint
from twisted.internet.interfaces import (
    IHandshakeListener,
    IProtocol,
    IProtocolFactory,
    IPushProducer,
    IStreamClientEndpoint,
    ITCPTransport,
)
from twisted.internet.posixbase import PosixReactorBase
from twisted.protocols.basic import LineReceiver
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from zope.interface import implementer

from api_exporter.ports import UpstreamError
from api_exporter.upstream.failures import (
    CANCELLED,
    TLS_ERRORS,
    ConnectTimeout,
    http_2_error,
)

MAX_HEADER_BYTES = 256 * 1024
"""Bytes of status line and headers, those of all 1xx responses included."""

_HTTP_2_FRAME = re.compile(rb"\0.{2}[\x04\x07].\0{4}", re.DOTALL)
"""The header of an HTTP/2 frame (SETTINGS or GOAWAY) of stream 0 (RFC 9113, 4.1)."""


class BoundedConnection(ProtocolWrapper):
    """A connection that limits a response's headers, and always ends.

    Twisted limits a header line, not their number, and waits forever for close_notify.
    """

    _header_bytes = 0
    _in_headers = False
    _problem: UpstreamError | None = None
    _is_lost = False

    def writeSequence(self, data: list[bytes]) -> None:
        """Start counting header bytes: Twisted sends a request by this method."""
        self._header_bytes, self._in_headers = 0, True
        super().writeSequence(data)

    def pauseProducing(self) -> None:
        """Stop counting header bytes: Twisted pauses between headers and body."""
        self._in_headers = False
        cast("IPushProducer", self.transport).pauseProducing()

    def stopProducing(self) -> None:
        """Abort the connection: a clean close would wait for the peer.

        Twisted gives the body protocol no other method (#8227).
        """
        cast("ITCPTransport", self.transport).abortConnection()

    def dataReceived(self, data: bytes) -> None:
        if self._in_headers:
            if not self._header_bytes and _HTTP_2_FRAME.match(data):
                self._problem = http_2_error()
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                message = f"more than {MAX_HEADER_BYTES} bytes of headers"
                self._problem = UpstreamError("too_large", message)
            if self._problem is not None:
                cast("ITCPTransport", self.transport).abortConnection()
                return
        super().dataReceived(data)

    def loseConnection(self) -> None:  # noqa: N802 - Twisted's name
        """Abort the connection. Twisted's pool also closes those that were lost.

        Within headers, Twisted closes it without an error if a line is too long.
        """
        if self._is_lost:
            return
        if self._in_headers and self._problem is None:
            message = f"a header of more than {LineReceiver.MAX_LENGTH} bytes"
            self._problem = UpstreamError("too_large", message)
        self.stopProducing()

    def connectionLost(self, reason: Failure | None = None) -> None:
        self._is_lost = True
        if self._problem is not None:
            reason = Failure(self._problem)
        super().connectionLost(reason)


@implementer(IHandshakeListener)
class TlsConnection(BoundedConnection):
    """A TLS connection that reports a close within the handshake as a TLS failure."""

    _has_tls = False

    def __init__(
        self,
        factory: "WrappingFactory[TlsConnection]",
        wrapped: IProtocol,
        *,
        on_certificate: Callable[[X509], None] | None = None,
    ) -> None:
        super().__init__(factory, wrapped)
        self._on_certificate = on_certificate

    def handshakeCompleted(self) -> None:
        self._has_tls = True

    def pauseProducing(self) -> None:
        super().pauseProducing()
        if self._on_certificate is not None:
            self._on_certificate(self.getPeerCertificate())
            self._on_certificate = None

    def connectionLost(self, reason: Failure | None = None) -> None:
        is_untrusted = reason is not None and reason.check(*TLS_ERRORS)
        if not (self._has_tls or is_untrusted):
            message = "the connection closed within the TLS handshake"
            reason = Failure(UpstreamError("tls", message, retryable=True))
        super().connectionLost(reason)


@implementer(IStreamClientEndpoint)
@dataclass(eq=False)
class BoundedEndpoint:
    """An endpoint that wraps each protocol in a `BoundedConnection`.

    Attributes:
        endpoint: returns the one below; called for each connection, as the files of
            certificates may have changed.
    """

    endpoint: Callable[[], IStreamClientEndpoint]
    protocol: Callable[..., BoundedConnection]

    def connect(self, factory: IProtocolFactory) -> Deferred[IProtocol]:
        bounding = WrappingFactory(factory)
        bounding.noisy, bounding.protocol = False, self.protocol
        connected = self.endpoint().connect(bounding)
        return connected.addCallbacks(
            lambda bounded: cast("BoundedConnection", bounded).wrappedProtocol,
            _not_connected,
        )


def _not_connected(failure: Failure) -> Failure:
    if failure.check(*CANCELLED) and not failure.check(ConnectTimeout):
        return Failure(ConnectTimeout())
    return failure


def _is_unusual(host: str) -> bool:
    try:
        idna.encode(host)
    except UnicodeError:
        return ":" not in host
    return False


class _NamedEndpoint(HostnameEndpoint):
    """The endpoint of a host whose cancelled DNS lookup is no unknown name."""

    def connect(self, factory: IProtocolFactory) -> Deferred[IProtocol]:
        def give_up(connected: Deferred[IProtocol]) -> None:
            connected.errback(CancelledError())
            connecting.cancel()

        def failed(failure: Failure) -> None:
            if not connected.called:
                connected.errback(failure)

        connected: Deferred[IProtocol] = Deferred(give_up)
        connecting = super().connect(factory)
        connecting.addCallbacks(connected.callback, failed)
        return connected


def tcp_endpoint(
    reactor: PosixReactorBase, host: str, port: int, timeout: float
) -> IStreamClientEndpoint:
    """Return the TCP endpoint of a host: a name, or an address without brackets.

    The timeout in seconds is for connecting.
    """
    if host == "localhost.":  # it is never in DNS, for which the dot is (RFC 6761, 6.3)
        host = "localhost"
    # HostnameEndpoint rejects a name that is no valid domain, such as one with `_`.
    kind = TCP4ClientEndpoint if _is_unusual(host) else _NamedEndpoint
    return kind(reactor, host, port, timeout)
