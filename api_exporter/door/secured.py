"""TLS for each connection as it is wanted when the connection begins."""

from collections.abc import Callable

from OpenSSL import SSL
from twisted.internet.interfaces import (
    IOpenSSLServerConnectionCreator,
    IProtocolFactory,
)
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from zope.interface import implementer

from api_exporter.door.context import ServerConnection

Refused = Callable[[str, str], None]
"""Told of an address that may not come in, and why."""


@implementer(IOpenSSLServerConnectionCreator)
class Newest:
    """Makes connections from the context that there is now.

    Args:
        refused: told of each client certificate that is not taken.
    """

    def __init__(self, context: Callable[[], SSL.Context], refused: Refused) -> None:
        self._context = context
        self._refused = refused

    def serverConnectionForTLS(  # noqa: N802 - Twisted's names
        self,
        tlsProtocol: TLSMemoryBIOProtocol,  # noqa: N803
    ) -> SSL.Connection:
        def refused(why: str) -> None:
            assert tlsProtocol.transport is not None  # it shakes hands
            peer = tlsProtocol.transport.getPeer()
            self._refused(str(getattr(peer, "host", "")), why)

        made = ServerConnection(self._context(), None)
        made.refused = refused
        return made


def secured(
    factory: IProtocolFactory, context: Callable[[], SSL.Context], refused: Refused
) -> IProtocolFactory:
    """The same behind TLS."""
    return TLSMemoryBIOFactory(Newest(context, refused), False, factory)
