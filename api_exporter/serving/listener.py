"""The listener: a service that opens the listening ports."""

import re
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import EADDRINUSE, EADDRNOTAVAIL
from ipaddress import ip_address
from pathlib import Path
from typing import cast

from twisted.application.service import Service
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import (
    AdoptedStreamServerEndpoint,
    SSL4ServerEndpoint,
    TCP4ServerEndpoint,
    TCP6ServerEndpoint,
    UNIXServerEndpoint,
    serverFromString,
)
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import (
    IAddress,
    IListeningPort,
    IProtocolFactory,
    IStreamServerEndpoint,
)
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.protocol import Factory
from twisted.internet.tcp import Port
from twisted.logger import Logger
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure

from api_exporter.serving.site import BoundedSite
from api_exporter.settings.addresses import Address, EndpointDescription

BACKLOG = 1024
"""Connections that the system keeps until they are accepted. If there are too many, a
client retries after a second."""

NETBIRD_PROXY_PORT = 8080
"""The port of the metrics of NetBird's reverse proxy, and of this exporter."""

_NETWORK = TCP4ServerEndpoint, TCP6ServerEndpoint, SSL4ServerEndpoint

_TCP = {"backlog": BACKLOG}
_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "tcp": _TCP,
    "tcp6": _TCP,
    "ssl": _TCP,
    # By Twisted's defaults, any user may connect, and a lock file has the process id.
    # In a container the id is always the same, so an old lock would stay forever.
    "unix": {"backlog": BACKLOG, "mode": 660, "lockfile": 0},
}

_FILES = re.compile(
    r"(?<!\\):(?:privateKey|certKey|extraCertChain|dhParameters)=((?:\\.|[^:\\])*)"
)
"""The options of an ssl: endpoint that name a file."""

log = Logger()


class ListenError(Exception):
    """The exporter cannot listen: the reason in one line for the operator."""


def bind_addresses(host: str) -> Sequence[str]:
    """Return the addresses to bind to for a host; "" means all of IPv6 and IPv4.

    Raises OSError if the host cannot be resolved, or UnicodeError if it is no name.
    """
    if not host:
        return _all_addresses()
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    by_family = {
        # With the zone of a link-local address, which is missing in `place[0]`.
        family: socket.getnameinfo(place, socket.NI_NUMERICHOST)[0]
        for family, _, _, _, place in reversed(found)
    }
    return [by_family.get(socket.AF_INET) or by_family[socket.AF_INET6]]


def _all_addresses() -> Sequence[str]:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::", 0))
            only_ipv6 = probe.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    except OSError:  # this machine has no IPv6
        return ["0.0.0.0"]  # noqa: S104 - an empty host means all addresses
    # If IPv6 sockets do not accept IPv4, each family needs its own socket.
    return ["::", "0.0.0.0"] if only_ipv6 else ["::"]  # noqa: S104


def endpoints(
    address: Address | EndpointDescription, reactor: PosixReactorBase
) -> Sequence[IStreamServerEndpoint]:
    """Return the endpoints of one address of the setting.

    Raises OSError if a host cannot be resolved or a file of a description cannot be
    read, and other exceptions if a description is wrong.
    """
    if isinstance(address, EndpointDescription):
        kind = address.partition(":")[0]
        for name in _FILES.findall(address):
            _refuse_pipe(Path(re.sub(r"\\(.)", r"\1", name)))
        options = [
            f":{name}={value}"
            for name, value in _DEFAULTS.get(kind, {}).items()
            if not re.search(rf"(?<!\\):{name}=", address)
        ]
        endpoint = serverFromString(reactor, f"{address}{''.join(options)}")
        if isinstance(endpoint, _NETWORK) and not 0 <= endpoint._port <= 65535:
            raise ValueError("the port must be a number up to 65535")
        if isinstance(endpoint, SSL4ServerEndpoint):
            endpoint._sslContextFactory.getContext()  # else each connection would fail
        return [endpoint]
    return [
        (TCP6ServerEndpoint if ":" in interface else TCP4ServerEndpoint)(
            reactor, address.port, interface=interface, backlog=BACKLOG
        )
        for interface in bind_addresses(address.host)
    ]


def _refuse_pipe(path: Path) -> None:
    """Raise ValueError for a pipe or device: Twisted's read of it might never end.

    Raise OSError for a missing file.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ValueError(f"{path}: the file is not a regular file")


def description_errors(
    addresses: Sequence[Address | EndpointDescription], reactor: PosixReactorBase
) -> list[str]:
    """Return permanent errors of descriptions, a line each.

    A missing file is no permanent error, and neither is a missing systemd socket.
    """
    found = []
    for description in addresses:
        if not isinstance(description, EndpointDescription):
            continue
        try:
            endpoints(description, reactor)
        except (OSError, LookupError):
            pass
        except Exception as error:  # noqa: BLE001 - it may be wrong in any way
            found.append(_explain(description, error))
    return found


def bind_problems(addresses: Iterable[Address | EndpointDescription]) -> Iterator[str]:
    """Yield why addresses cannot be used now, without the sockets of descriptions."""
    for address in addresses:
        if isinstance(address, EndpointDescription):
            continue
        try:
            for host in bind_addresses(address.host):
                [(family, *_, place)] = socket.getaddrinfo(
                    host, address.port, type=socket.SOCK_STREAM
                )
                with socket.socket(family) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(place)
                    probe.listen()
        except (OSError, UnicodeError) as error:  # the latter for a host
            yield _explain(address, error)


@dataclass(eq=False, kw_only=True, repr=False)
class Listener(Service):
    """Listens before privileges are dropped; raises ListenError if that fails.

    Attributes:
        on_ready: called with each address: a URL without a path, or an endpoint.
        on_exposed: called once if other machines can connect.
    """

    addresses: Sequence[Address | EndpointDescription]
    site: BoundedSite
    reactor: PosixReactorBase
    on_ready: Callable[[str], object]
    on_exposed: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self._ports: list[IListeningPort] = []
        self._tls_ports: list[tuple[EndpointDescription, Port]] = []

    def privilegedStartService(self) -> None:
        for address in self.addresses:
            try:
                for endpoint in endpoints(address, self.reactor):
                    if isinstance(endpoint, UNIXServerEndpoint):
                        _remove_unused(Path(endpoint._address))
                    port = _listen(endpoint, self._factory(endpoint))
                    self._ports.append(port)
                    secured = isinstance(endpoint, SSL4ServerEndpoint)
                    if secured and isinstance(port, Port):
                        self._tls_ports.append(
                            (EndpointDescription(str(address)), port)
                        )
            except Exception as error:  # noqa: BLE001 - a description may be wrong in any way
                raise ListenError(_explain(address, error)) from None
            self.on_ready(self._address(address))
        if not all(_is_local(port.getHost()) for port in self._ports):
            self.on_exposed()

    def _factory(self, endpoint: IStreamServerEndpoint) -> IProtocolFactory:
        if self.site.encrypt is None or _is_unix(endpoint):
            return self.site
        return self.site.encrypt(self.site)

    def reload(self) -> None:
        """Use the current keys and certificates, if valid, for new connections."""
        for address, port in self._tls_ports:
            try:
                [endpoint] = endpoints(address, self.reactor)
            except Exception as error:  # noqa: BLE001 - a file may be wrong in any way
                why = _explain(address, error)
                log.warn("{error}; the previous certificate stays in use", error=why)
                continue
            assert isinstance(endpoint, SSL4ServerEndpoint)
            certificate = endpoint._sslContextFactory
            # Connections that are open keep the factory that made them.
            port.factory = cast(
                Factory, TLSMemoryBIOFactory(certificate, False, self.site)
            )

    def _address(self, address: Address | EndpointDescription) -> str:
        host = self._ports[-1].getHost()
        if isinstance(address, EndpointDescription):
            if isinstance(host, (IPv4Address, IPv6Address)):
                # A description may omit the address, such as a systemd socket's.
                return f"{address} ({Address(host.host, host.port)})"
            return str(address)
        port = getattr(host, "port", address.port)
        scheme = "http" if self.site.encrypt is None else "https"
        return f"{scheme}://{Address(address.host or 'localhost', port)}"

    def stopService(self) -> Deferred[None]:
        """Close the ports. The result fires when all responses have been sent."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        for port in self._ports:
            closed = port.stopListening()
            if closed is not None:
                await closed
        await self.site.drain(self.reactor)


def _is_unix(endpoint: IStreamServerEndpoint) -> bool:
    if isinstance(endpoint, AdoptedStreamServerEndpoint):
        return bool(endpoint.addressFamily == socket.AF_UNIX)
    return isinstance(endpoint, UNIXServerEndpoint)


def _remove_unused(path: Path) -> None:
    """Remove a UNIX socket without a listening process: a killed exporter left it."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        if stat.S_ISSOCK(path.stat().st_mode):
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()


def _is_local(host: IAddress) -> bool:
    if isinstance(host, (IPv4Address, IPv6Address)):
        return ip_address(host.host).is_loopback
    return True


def _listen(endpoint: IStreamServerEndpoint, site: IProtocolFactory) -> IListeningPort:
    """Return the port. All endpoints of Twisted listen at once or fail at once."""
    outcome: list[IListeningPort | Failure] = []
    endpoint.listen(site).addBoth(outcome.append)
    [port] = outcome
    if isinstance(port, Failure):
        port.raiseException()
    return port


def _explain(address: Address | EndpointDescription, error: Exception) -> str:
    cause = error.socketError if isinstance(error, CannotListenError) else error
    hint = ""
    if isinstance(cause, PermissionError) and isinstance(address, Address):
        hint = "; ports below 1024 need a privilege"
    if isinstance(address, Address) and getattr(cause, "errno", 0) == EADDRINUSE:
        proxy = address.port == NETBIRD_PROXY_PORT
        user = ", maybe by NetBird's reverse proxy for its metrics" if proxy else ""
        hint = f"{user}; choose another port: LISTEN_ADDRESS=:PORT"
    missing = isinstance(cause, socket.gaierror) or (
        getattr(cause, "errno", 0) == EADDRNOTAVAIL
    )
    if isinstance(address, Address) and missing:
        all_interfaces = Address("", address.port)
        hint = f"; use an IP address of this machine, or {all_interfaces} for all"
    message = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    if isinstance(cause, LookupError):  # a socket that systemd should have opened
        message = "systemd has not passed this socket"
    # Short: a daemon's start report holds a hundred bytes.
    return f"cannot listen on {address}: {' '.join(message.split())}{hint}"
