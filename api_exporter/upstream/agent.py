"""The HTTP agent: sends requests over kept connections, directly or through a proxy."""

from collections.abc import Callable
from functools import partial

from OpenSSL.crypto import X509
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import wrapClientTLS
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.posixbase import PosixReactorBase
from twisted.web.client import URI, Agent, HTTPConnectionPool, ProxyAgent
from twisted.web.http_headers import Headers
from twisted.web.iweb import (
    IAgent,
    IAgentEndpointFactory,
    IBodyProducer,
    IPolicyForHTTPS,
    IResponse,
)
from zope.interface import implementer

from api_exporter.settings.proxy import Proxy
from api_exporter.upstream.connection import (
    BoundedConnection,
    BoundedEndpoint,
    TlsConnection,
    tcp_endpoint,
)

IDLE_SECONDS = 50
"""Seconds for which an idle connection is kept; proxies keep it for 60."""

RENEWAL_SECONDS = 3600.0
"""Seconds between closings of all kept connections: a certificate may be new."""


@implementer(IAgent, IAgentEndpointFactory)
class UpstreamAgent:
    """An HTTP agent with a connection pool and an optional proxy.

    The proxy forwards http requests, and can read them. For https there is a tunnel.

    Args:
        timeout: seconds for connecting.
        on_certificate: called with the server's certificate, once for each connection.
    """

    def __init__(
        self,
        reactor: PosixReactorBase,
        *,
        proxy: Proxy | None,
        policy: IPolicyForHTTPS,
        timeout: float,
        on_certificate: Callable[[X509], None],
    ) -> None:
        self._reactor = reactor
        self._policy = policy
        self._timeout = timeout
        self._protocol = partial(TlsConnection, on_certificate=on_certificate)
        self._make_tunnel: Callable[[str, int], IStreamClientEndpoint] | None = None
        self._renewed_at = reactor.seconds()
        self._pool = pool = HTTPConnectionPool(reactor)
        pool.cachedConnectionTimeout = IDLE_SECONDS
        # Twisted retries only if a kept connection ends without a single byte: the
        # server closed it at the moment of its reuse. That is no failed attempt, and if
        # no new connection is made, the request counts as unsent.
        pool.retryAutomatically = True
        self._forwarding_agent: IAgent | None = None
        self._credentials: bytes | None = None
        if proxy is not None:  # without a proxy this module needs no memory
            from api_exporter.upstream.tunnel import ProxyEndpoint, Tunnel  # noqa: PLC0415

            to_proxy = ProxyEndpoint(reactor, proxy, timeout)
            self._make_tunnel = partial(Tunnel, to_proxy, proxy)
            bounded = BoundedEndpoint(lambda: to_proxy, BoundedConnection)
            self._forwarding_agent = ProxyAgent(bounded, reactor, pool)
            if proxy.login is not None:
                self._credentials = proxy.login.reveal().encode("ascii")
        self._agent: IAgent = Agent.usingEndpointFactory(reactor, self, pool)

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """Return an endpoint of the NetBird API, or of a tunnel to it."""
        host = uri.host.decode("ascii")
        if self._make_tunnel is None:
            endpoint = tcp_endpoint(self._reactor, host, uri.port, self._timeout)
        else:
            endpoint = self._make_tunnel(host, uri.port)
        if uri.scheme != b"https":
            return BoundedEndpoint(lambda: endpoint, BoundedConnection)
        creator = partial(self._policy.creatorForNetloc, uri.host, uri.port)
        return BoundedEndpoint(
            lambda: wrapClientTLS(creator(), endpoint), self._protocol
        )

    def request(
        self,
        method: bytes,
        uri: bytes,
        headers: Headers | None = None,
        bodyProducer: IBodyProducer | None = None,  # noqa: N803 - Twisted's name
    ) -> Deferred[IResponse]:
        if self._reactor.seconds() - self._renewed_at > RENEWAL_SECONDS:
            self._renewed_at = self._reactor.seconds()
            self._pool.closeCachedConnections()
        if self._forwarding_agent is None or uri.startswith(b"https:"):
            return self._agent.request(method, uri, headers, bodyProducer)
        headers = Headers() if headers is None else headers.copy()
        if self._credentials is not None:
            headers.setRawHeaders(b"Proxy-Authorization", [self._credentials])
        return self._forwarding_agent.request(method, uri, headers, bodyProducer)

    def close(self) -> Deferred[None]:
        """Close idle connections. The result fires when they are closed."""
        closed: Deferred[None] = self._pool.closeCachedConnections()
        return closed
