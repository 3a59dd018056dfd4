"""Plain HTTP on a port with TLS: a readable answer in place of a broken connection."""

from twisted.internet.interfaces import (
    IOpenSSLServerConnectionCreator,
    IProtocolFactory,
)
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol

ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Connection: close\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
)
"""The words of Go's servers, such as Prometheus' own exporters."""


class TlsProtocol(TLSMemoryBIOProtocol):
    """TLS, unless the first byte is a letter: a handshake begins with byte 22."""

    _has_data = False

    def dataReceived(self, bytes: bytes) -> None:  # noqa: A002 - Twisted's names
        if not self._has_data and bytes[:1].isalpha():
            assert self.transport is not None  # it is connected
            self.transport.write(ANSWER)
            self.transport.loseConnection()
            return
        self._has_data = True
        super().dataReceived(bytes)


def encrypted(
    creator: IOpenSSLServerConnectionCreator, factory: IProtocolFactory
) -> IProtocolFactory:
    """Put TLS in front of a server."""
    wrapped = TLSMemoryBIOFactory(creator, False, factory)
    wrapped.protocol = TlsProtocol
    return wrapped
