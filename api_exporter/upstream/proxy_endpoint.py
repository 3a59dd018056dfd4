"""Connections to a proxy. Their failures have the reason `proxy`."""

from functools import partial

from twisted.internet import error
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
)
from twisted.internet.posixbase import PosixReactorBase
from twisted.python.failure import Failure
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from api_exporter.ports import UpstreamError
from api_exporter.settings.proxy import Proxy
from api_exporter.upstream.connection import (
    BoundedEndpoint,
    TlsConnection,
    TlsEndpoint,
    tcp_endpoint,
)
from api_exporter.upstream.failures import ProxyTimeout, cure_of, explanation


@implementer(IStreamClientEndpoint)
class ProxyEndpoint:
    """The endpoint of a proxy, with TLS if the proxy uses it.

    Args:
        timeout: seconds for connecting.
    """

    def __init__(
        self,
        reactor: PosixReactorBase,
        policy: IPolicyForHTTPS,
        proxy: Proxy,
        timeout: float,
    ) -> None:
        self._proxy = proxy
        self._endpoint = tcp_endpoint(reactor, proxy.host, proxy.port, timeout)
        if proxy.secure:
            host = proxy.host.encode("ascii")
            secured = TlsEndpoint(self._endpoint, policy, host, proxy.port)
            self._endpoint = BoundedEndpoint(
                reactor, secured, partial(TlsConnection, tls_failure=self._tls_failure)
            )

    def connect(self, factory: IProtocolFactory) -> Deferred[IProtocol]:
        cancelled = False

        def give_up(_: object) -> None:
            nonlocal cancelled
            cancelled = True
            connecting.cancel()

        def failed(failure: Failure) -> None:
            # A cancelled DNS lookup raises the error of an unknown name.
            if cancelled:
                connected.errback(
                    ProxyTimeout(f"no connection to the proxy {self._proxy}")
                )
            else:
                connected.errback(self._with_proxy_name(failure))

        connected: Deferred[IProtocol] = Deferred(give_up)
        connecting = self._endpoint.connect(factory)
        connecting.addCallbacks(connected.callback, failed)
        return connected

    def _with_proxy_name(self, failure: Failure) -> Failure:
        if failure.check(error.DNSLookupError, error.ConnectError):
            why = explanation(failure.value)
            message = f"no connection to the proxy {self._proxy}{why}"
            return Failure(UpstreamError("proxy", message, retryable=True, unsent=True))
        return failure

    def _tls_failure(self, untrusted: Failure | None) -> Failure:
        why = "" if untrusted is None else explanation(untrusted.value)
        message = f"no trusted TLS connection to the proxy {self._proxy}"
        cure = "" if untrusted is None else cure_of(untrusted.value)
        text = f"{message}{why}"
        return Failure(UpstreamError("proxy", text, retryable=True, cure=cure))
