"""Connections to the upstream: plain or TLS, with a bound to what precedes a body."""

from collections.abc import Callable
from typing import cast

import idna
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import (
    HostnameEndpoint,
    TCP4ClientEndpoint,
    wrapClientTLS,
)
from twisted.internet.interfaces import (
    IHandshakeListener,
    IProtocol,
    IProtocolFactory,
    IPushProducer,
    IStreamClientEndpoint,
    ITCPTransport,
)
from twisted.internet.posixbase import PosixReactorBase
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.client import URI
from twisted.web.iweb import IAgentEndpointFactory, IPolicyForHTTPS
from zope.interface import implementer

from api_exporter.ports import UpstreamError
from api_exporter.upstream.failures import TLS

LONGEST_HEAD = 256 * 1024
"""Bytes before a body: status line and headers, those of all 1xx answers included."""


class _Bounded(ProtocolWrapper):
    """Counts what comes between a request and the body of its answer.

    Twisted bounds the length of a header line, not their number.
    """

    _head = 0
    _in_head = False
    _too_long = False

    def writeSequence(self, data: list[bytes]) -> None:
        """A request: what comes now is the head of its answer."""
        self._head, self._in_head = 0, True
        super().writeSequence(data)

    def pauseProducing(self) -> None:
        """The head has ended: Twisted pauses until somebody wants the body."""
        self._in_head = False
        cast("IPushProducer", self.transport).pauseProducing()

    def dataReceived(self, data: bytes) -> None:
        if self._in_head:
            self._head += len(data)
            if self._head > LONGEST_HEAD:
                self._too_long = True
                cast("ITCPTransport", self.transport).abortConnection()
                return
        super().dataReceived(data)

    def connectionLost(self, reason: Failure | None = None) -> None:
        if self._too_long:
            reason = Failure(
                UpstreamError("too_large", f"more than {LONGEST_HEAD} bytes of headers")
            )
        super().connectionLost(reason)


@implementer(IHandshakeListener)
class _Secured(_Bounded):
    """Knows whether the TLS handshake was completed: some servers end it in silence."""

    _secure = False

    def handshakeCompleted(self) -> None:
        self._secure = True

    def connectionLost(self, reason: Failure | None = None) -> None:
        if not (self._secure or (reason and reason.check(*TLS))):
            words = "the connection ended within the TLS handshake"
            reason = Failure(UpstreamError("tls", words, retryable=True))
        super().connectionLost(reason)


class _Bounding(WrappingFactory[_Bounded]):
    noisy = False

    def __init__(
        self, wrapped: IProtocolFactory, protocol: Callable[..., _Bounded]
    ) -> None:
        super().__init__(wrapped)
        self.protocol = protocol


@implementer(IStreamClientEndpoint)
class _BoundedEndpoint:
    def __init__(
        self, endpoint: IStreamClientEndpoint, protocol: Callable[..., _Bounded]
    ) -> None:
        self._endpoint = endpoint
        self._protocol = protocol

    def connect(self, factory: IProtocolFactory) -> Deferred[IProtocol]:
        connected = self._endpoint.connect(_Bounding(factory, self._protocol))
        return connected.addCallback(_wrapped)


def _wrapped(bounded: IProtocol) -> IProtocol:
    """What the pool wants to ask; it knows the wrapper as its transport."""
    return cast("_Bounded", bounded).wrappedProtocol


@implementer(IStreamClientEndpoint)
class _UnusualName:
    """A host with a name that HostnameEndpoint refuses, such as one with `_`."""

    def __init__(
        self, reactor: PosixReactorBase, host: str, port: int, timeout: float
    ) -> None:
        self._reactor = reactor
        self._host = host
        self._port = port
        self._timeout = timeout

    def connect(self, factory: IProtocolFactory) -> Deferred[IProtocol]:
        return Deferred.fromCoroutine(self._connect(factory))

    async def _connect(self, factory: IProtocolFactory) -> IProtocol:
        address = await self._reactor.resolve(self._host)
        endpoint = TCP4ClientEndpoint(self._reactor, address, self._port, self._timeout)
        return await endpoint.connect(factory)


def _unusual(host: str) -> bool:
    """Whether it is neither an address nor a name that a domain may have."""
    try:
        idna.encode(host)
    except UnicodeError:
        return ":" not in host
    return False


@implementer(IAgentEndpointFactory)
class Endpoints:
    """Where the agent connects to.

    Args:
        timeout: seconds for connecting.
    """

    def __init__(
        self, reactor: PosixReactorBase, policy: IPolicyForHTTPS, timeout: float
    ) -> None:
        self._reactor = reactor
        self._policy = policy
        self._timeout = timeout

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """The upstream's, whose URL is of one of two schemes."""
        host = uri.host.decode("ascii")
        kind = _UnusualName if _unusual(host) else HostnameEndpoint
        plain = kind(self._reactor, host, uri.port, self._timeout)
        if uri.scheme != b"https":
            return _BoundedEndpoint(plain, _Bounded)
        creator = self._policy.creatorForNetloc(uri.host, uri.port)
        return _BoundedEndpoint(wrapClientTLS(creator, plain), _Secured)
