"""Connections to a proxy. Their failures have the reason `proxy`."""

from twisted.internet import error
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
)
from twisted.internet.posixbase import PosixReactorBase
from twisted.python.failure import Failure
from zope.interface import implementer

from api_exporter.ports import UpstreamError
from api_exporter.settings.proxy import Proxy
from api_exporter.upstream.connection import tcp_endpoint
from api_exporter.upstream.failures import ProxyTimeout, explanation


@implementer(IStreamClientEndpoint)
class ProxyEndpoint:
    """The endpoint of a proxy. The timeout in seconds is for connecting."""

    def __init__(self, reactor: PosixReactorBase, proxy: Proxy, timeout: float) -> None:
        self._proxy = proxy
        self._endpoint = tcp_endpoint(reactor, proxy.host, proxy.port, timeout)

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
