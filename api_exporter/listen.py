"""Where we are reached: addresses, and the service that listens on them."""

import socket
from collections.abc import Callable, Sequence

from twisted.application.service import Service
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort, IReactorTCP
from twisted.logger import Logger
from twisted.web.server import Site

from api_exporter.settings import Address


class CannotServe(Exception):
    """Why we cannot listen, in one line for the operator."""


def interfaces(host: str) -> Sequence[str]:
    """The addresses to bind to for a host; an empty one means all, IPv6 and IPv4.

    Raises OSError where the host cannot be resolved.
    """
    if not host:
        return _all_interfaces()
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    by_family = {
        family: str(address[0]) for family, _, _, _, address in reversed(found)
    }
    return [by_family.get(socket.AF_INET) or by_family[socket.AF_INET6]]


def _all_interfaces() -> Sequence[str]:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::", 0))
            only_ipv6 = probe.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    except OSError:  # this machine has no IPv6
        return ["0.0.0.0"]  # noqa: S104 - what an empty host asks for
    # Where the system keeps the families apart, one socket each.
    return ["::", "0.0.0.0"] if only_ipv6 else ["::"]  # noqa: S104


class Listener(Service):
    """Listens before privileges are dropped, and raises CannotServe where it cannot.

    Args:
        ready: told where we can be reached, as a URL without a path.
    """

    log = Logger()

    def __init__(
        self,
        *,
        address: Address,
        site: Site,
        reactor: IReactorTCP,
        ready: Callable[[str], object],
    ) -> None:
        self._address = address
        self._site = site
        self._reactor = reactor
        self._ready = ready
        self._ports: list[IListeningPort] = []

    def privilegedStartService(self) -> None:
        super().privilegedStartService()
        port = self._address.port
        try:
            for interface in interfaces(self._address.host):
                listening = self._reactor.listenTCP(
                    port,
                    self._site,  # type: ignore[arg-type]
                    interface=interface,
                )
                self._ports.append(listening)
                bound = listening.getHost()
                assert isinstance(bound, (IPv4Address, IPv6Address))
                port = bound.port
        except (OSError, CannotListenError) as error:
            raise CannotServe(self._explain(error)) from None
        host = self._address.host or "localhost"
        self._ready(f"http://{Address(host, port)}")

    def _explain(self, error: OSError | CannotListenError) -> str:
        cause = error.socketError if isinstance(error, CannotListenError) else error
        hint = ""
        if isinstance(cause, PermissionError):
            hint = "; ports below 1024 need a privilege"
        words = getattr(cause, "strerror", None) or str(cause)
        # Short, because a daemon's start report holds a hundred bytes.
        return f"cannot listen on {self._address}: {words}{hint}"

    def stopService(self) -> Deferred[list[None]]:
        """Fires when no port is open any more."""
        super().stopService()
        closing = [Deferred.fromCoroutine(_close(port)) for port in self._ports]
        self._ports.clear()
        return gatherResults(closing)


async def _close(port: IListeningPort) -> None:
    closed = port.stopListening()
    if closed is not None:
        await closed
