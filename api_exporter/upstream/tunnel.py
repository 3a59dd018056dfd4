"""Tunnels through a proxy by CONNECT (RFC 9110, 9.3.6).

The proxy carries encrypted data: it sees neither the token nor a response.
"""

import re
from functools import partial
from typing import cast

from twisted.internet import error
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
    ITCPTransport,
)
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from api_exporter.ports import UpstreamError
from api_exporter.settings.addresses import Address
from api_exporter.settings.proxy import Proxy
from api_exporter.upstream.connection import tcp_endpoint
from api_exporter.upstream.failures import (
    CANCELLED,
    ProxyTimeout,
    explanation,
    login_error,
)
from api_exporter.version import this_build


@implementer(IStreamClientEndpoint)
class ProxyEndpoint:
    """The endpoint of a proxy. The timeout in seconds is for connecting."""

    def __init__(self, reactor: PosixReactorBase, proxy: Proxy, timeout: float) -> None:
        self._proxy = proxy
        self._endpoint = tcp_endpoint(reactor, proxy.host, proxy.port, timeout)

    def connect(self, factory: IProtocolFactory) -> Deferred[IProtocol]:
        return self._endpoint.connect(factory).addErrback(self._with_proxy_name)

    def _with_proxy_name(self, failure: Failure) -> Failure:
        message = f"no connection to the proxy {self._proxy}"
        if failure.check(*CANCELLED):
            return Failure(ProxyTimeout(message))
        if failure.check(error.DNSLookupError, error.ConnectError):
            message += explanation(failure.value)
            return Failure(UpstreamError("proxy", message, retryable=True, unsent=True))
        return failure


MAX_TUNNEL_HEAD_BYTES = 16 * 1024
"""Bytes of the proxy's response to CONNECT, those of all 1xx responses included."""

_USER_AGENT = f"api-exporter/{this_build().version}"

_HTTP_1 = b"HTTP/1."
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d)(?: [^\r\n]*)?\r?\n")
_HEAD_END = re.compile(rb"(\r?\n)\r?\n")
_CHALLENGE = re.compile(
    rb"^proxy-authenticate:[ \t]*([^\r\n]*)", re.MULTILINE | re.IGNORECASE
)


def connect_request(host: str, port: int, proxy: Proxy) -> bytes:
    """Return the CONNECT request for a host: a name, or an address without brackets."""
    target = Address(host, port)
    lines = [
        f"CONNECT {target} HTTP/1.1",
        f"Host: {target}",
        f"User-Agent: {_USER_AGENT}",
    ]
    if proxy.login is not None:
        lines.append(f"Proxy-Authorization: {proxy.login.reveal()}")
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("ascii")


def is_open(received: bytes, proxy: Proxy) -> bool:
    """Return whether the response is complete. Raise UpstreamError for a refusal.

    Words of the proxy are not repeated: the proxy knows the password.
    """
    if len(received) > MAX_TUNNEL_HEAD_BYTES:
        raise _error(
            proxy, f"answers CONNECT with more than {MAX_TUNNEL_HEAD_BYTES} bytes"
        )
    code = 100
    head = b""
    while code < 200:  # a 1xx response precedes the final one
        if not received.startswith(_HTTP_1[: len(received)]):
            raise _error(proxy, "answers CONNECT with something that is not HTTP")
        end = _HEAD_END.search(received)
        if end is None:
            return False
        head, received = received[: end.end(1)], received[end.end() :]
        status = _STATUS.match(head)
        if status is None:
            raise _error(proxy, "answers CONNECT with something that is not HTTP")
        code = int(status[1])
    if code in {401, 407}:  # tinyproxy answers 401 to a wrong password
        challenges = [c.decode("latin-1") for c in _CHALLENGE.findall(head)]
        raise login_error(code, f"the proxy {proxy}", challenges)
    if code >= 300:
        raise _status_error(proxy, code)
    if received:
        raise _error(proxy, f"sends a body after its {code} to CONNECT")
    return True


def _status_error(proxy: Proxy, code: int) -> UpstreamError:
    message = f"answers CONNECT with {code}"
    if code >= 500:
        message += ": the proxy cannot reach the NetBird API"
        return _error(proxy, message, retryable=True, unsent=True)
    if code in {403, 405}:
        message += ": the proxy does not allow this destination"
    return _error(proxy, message)


def _error(
    proxy: Proxy, message: str, *, retryable: bool = False, unsent: bool = False
) -> UpstreamError:
    return UpstreamError(
        "proxy", f"the proxy {proxy} {message}", retryable=retryable, unsent=unsent
    )


class _ConnectProtocol(Protocol):
    """Sends the CONNECT request; afterwards, all data is that of another protocol.

    Attributes:
        opened: fires when the tunnel is open. Cancelling it aborts the connection.
        inner: the protocol in the open tunnel.
    """

    inner: Protocol | None = None

    def __init__(self, proxy: Proxy, request: bytes) -> None:
        self._proxy = proxy
        self._request = request
        self._received = b""
        self.opened: Deferred[None] = Deferred(self._give_up)

    def connectionMade(self) -> None:
        assert self.transport is not None
        self.transport.write(self._request)

    def dataReceived(self, data: bytes) -> None:
        if self.inner is not None:
            self.inner.dataReceived(data)
        elif not self.opened.called:  # more may arrive before an abort takes effect
            self._received += data
            try:
                if is_open(self._received, self._proxy):
                    self.opened.callback(None)
            except UpstreamError:
                self._refuse(Failure())

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self.inner is not None:
            self.inner.connectionLost(reason)
        elif not self.opened.called:
            message = "closed the connection before it answered CONNECT"
            self.opened.errback(_error(self._proxy, message, retryable=True))

    def _give_up(self, _: object) -> None:
        self._refuse(
            Failure(ProxyTimeout(f"the proxy {self._proxy} did not answer CONNECT"))
        )

    def _refuse(self, failure: Failure) -> None:
        self.opened.errback(failure)
        cast("ITCPTransport", self.transport).abortConnection()


@implementer(IStreamClientEndpoint)
class Tunnel:
    """The endpoint of a host behind a proxy, whose own endpoint is given."""

    def __init__(
        self, endpoint: IStreamClientEndpoint, proxy: Proxy, host: str, port: int
    ) -> None:
        self._endpoint = endpoint
        request = connect_request(host, port, proxy)
        self._protocol = partial(_ConnectProtocol, proxy, request)

    def connect(self, factory: IProtocolFactory) -> Deferred[IProtocol]:
        return Deferred.fromCoroutine(self._connect(factory))

    async def _connect(self, factory: IProtocolFactory) -> IProtocol:
        connecting = Factory.forProtocol(self._protocol)
        connecting.noisy = False
        carrier = cast("_ConnectProtocol", await self._endpoint.connect(connecting))
        await carrier.opened
        transport = cast("ITCPTransport", carrier.transport)
        inner = cast("Protocol", factory.buildProtocol(transport.getPeer()))
        carrier.inner = inner
        inner.makeConnection(transport)
        return inner
