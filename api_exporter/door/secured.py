"""TLS for each connection as it is wanted when the connection begins."""

from collections.abc import Callable

from OpenSSL import SSL
from twisted.internet.interfaces import (
    IOpenSSLServerConnectionCreator,
    IProtocolFactory,
)
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from zope.interface import implementer


@implementer(IOpenSSLServerConnectionCreator)
class Newest:
    """Makes connections from the context that there is now."""

    def __init__(self, context: Callable[[], SSL.Context]) -> None:
        self._context = context

    def serverConnectionForTLS(  # noqa: N802 - Twisted's names
        self,
        tlsProtocol: TLSMemoryBIOProtocol,  # noqa: ARG002, N803
    ) -> SSL.Connection:
        return SSL.Connection(self._context(), None)


def secured(
    factory: IProtocolFactory, context: Callable[[], SSL.Context]
) -> IProtocolFactory:
    """The same behind TLS."""
    return TLSMemoryBIOFactory(Newest(context), False, factory)
