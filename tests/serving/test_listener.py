"""Listening addresses, and the errors if listening fails."""

import errno
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL
from twisted.internet import defer
from twisted.internet.address import IPv4Address
from twisted.internet.endpoints import (
    SSL4ServerEndpoint,
    TCP4ServerEndpoint,
    TCP6ServerEndpoint,
    UNIXServerEndpoint,
)
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort, IProtocolFactory
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.protocol import Factory
from twisted.internet.ssl import CertificateOptions
from twisted.internet.task import Clock
from twisted.internet.tcp import Port
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.serving.listener import (
    Listener,
    ListenError,
    bind_addresses,
    bind_problems,
    description_errors,
    endpoints,
)
from api_exporter.serving.site import BoundedSite
from api_exporter.settings.addresses import Address, EndpointDescription
from tests.authority import Authority
from tests.logbook import logbook
from tests.memory_reactor import MemoryReactorClock
from tests.web.connection import Connection, Waiting, shake_hands


class Refusing(MemoryReactorClock):
    """A reactor that cannot listen."""

    def __init__(self, cause: object) -> None:
        super().__init__()
        self._cause = cause

    def listenTCP(
        self, port: int, *_: object, interface: str = "", **__: object
    ) -> None:
        raise CannotListenError(interface, port, self._cause)

    def listenUNIX(  # noqa: N802 - the name is Twisted's
        self, address: str, *_: object, **__: object
    ) -> None:
        raise CannotListenError(None, address, self._cause)


class Honest(MemoryReactorClock):
    """A reactor that returns the address of a port.

    Attributes:
        closed: fires when a port is closed.
    """

    closed: defer.Deferred[None] | None = None

    def listenTCP(
        self, port: int, factory: Factory, backlog: int = 50, interface: str = ""
    ) -> IListeningPort:
        made: IListeningPort = super().listenTCP(port, factory, backlog, interface)
        address = IPv4Address("TCP", interface or "0.0.0.0", port)
        made._hostAddress = address  # type: ignore[attr-defined]
        made.stopListening = lambda: self.closed  # type: ignore[method-assign]
        return made


class Bound(MemoryReactorClock):
    """A reactor with real ports for TLS, which accept no connection."""

    def __init__(self) -> None:
        super().__init__()
        self.ports: list[Port] = []

    def listenSSL(  # noqa: N802 - the same
        self,
        port: int,
        factory: Factory,
        contextFactory: CertificateOptions,  # noqa: N803 - the name is Twisted's
        backlog: int = 50,
        interface: str = "",
    ) -> Port:
        secured = TLSMemoryBIOFactory(contextFactory, False, factory)
        self.ports.append(Port(port, secured, backlog, interface, self))
        self.ports[-1].startListening()
        return self.ports[-1]


def shown(port: Port) -> bytes:
    """Return the certificate that a new client gets, as PEM."""
    assert port.factory is not None
    client = shake_hands(port.factory, SSL.Context(SSL.TLS_CLIENT_METHOD))
    received = client.get_peer_certificate(as_cryptography=True)
    assert received is not None
    return received.public_bytes(Encoding.PEM)


def posix(reactor: MemoryReactorClock) -> PosixReactorBase:
    """Return the reactor with the type that listeners require."""
    return cast(PosixReactorBase, reactor)


class InterfacesTests(SynchronousTestCase):
    def test_all(self) -> None:
        """An empty host means all addresses of IPv6 and IPv4 that exist."""
        found = list(bind_addresses(""))
        self.assertIn(found, (["::"], ["::", "0.0.0.0"], ["0.0.0.0"]))
        self.assertRaises(OSError, bind_addresses, "no-such-host.invalid")

        def no_ipv6(*_: object) -> None:
            raise OSError(errno.EAFNOSUPPORT, "not on this machine")

        self.patch(socket, "socket", no_ipv6)
        self.assertEqual(["0.0.0.0"], list(bind_addresses("")))

    def test_zone(self) -> None:
        """A link-local address keeps its zone: without it, it is no address."""
        self.assertEqual(["fe80::1%lo"], bind_addresses("fe80::1%lo"))

    def test_no_name(self) -> None:
        """A host that cannot be a name is a problem like one that is unknown."""
        [problem] = bind_problems([Address("a..b", 8080)])
        self.assertRegex(problem, r"^cannot listen on a\.\.b:8080: .*label empty")


class EndpointsTests(SynchronousTestCase):
    def test_kinds(self) -> None:
        """An address or a description is the endpoint of its kind."""
        certificate = Path(self.mktemp())
        issued = Authority("test").issue("localhost")
        certificate.write_bytes(issued.pem + issued.key)
        cases: Sequence[tuple[Address | EndpointDescription, type[object]]] = (
            (Address("127.0.0.1", 8080), TCP4ServerEndpoint),
            (Address("::1", 8080), TCP6ServerEndpoint),
            (Address("localhost", 8080), TCP4ServerEndpoint),
            (EndpointDescription("tcp:8080:interface=127.0.0.1"), TCP4ServerEndpoint),
            (EndpointDescription(r"tcp:8080:interface=\:\:1"), TCP4ServerEndpoint),
            (EndpointDescription("tcp6:8080"), TCP6ServerEndpoint),
            (EndpointDescription("unix:/run/x.sock:mode=660"), UNIXServerEndpoint),
            (EndpointDescription("unix:/run/x.sock:lockfile=1"), UNIXServerEndpoint),
            (
                EndpointDescription(f"ssl:8443:privateKey={certificate}"),
                SSL4ServerEndpoint,
            ),
        )
        for address, kind in cases:
            [found] = endpoints(address, posix(MemoryReactorClock()))
            self.assertIs(kind, type(found), address)
        every = endpoints(Address("", 8080), posix(MemoryReactorClock()))
        self.assertEqual(len(bind_addresses("")), len(every))


class ListenerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.reported: list[str] = []
        self.page = Waiting()
        self.site = BoundedSite(self.page, Clock())

    def listener(
        self,
        reactor: MemoryReactorClock,
        *addresses: Address | EndpointDescription,
        **options: Any,
    ) -> Listener:
        return Listener(
            addresses=addresses,
            site=self.site,
            reactor=posix(reactor),
            on_ready=self.reported.append,
            **options,
        )

    def started(self, *arguments: Any, **options: Any) -> Listener:
        """Start a listener, which is stopped with the test."""
        service = self.listener(*arguments, **options)
        service.privilegedStartService()
        self.addCleanup(service.stopService)
        return service

    def failure(self, *arguments: Any) -> str:
        """Return the error, which is always one line."""
        with self.assertRaises(ListenError) as raised:
            self.listener(*arguments).privilegedStartService()
        words = str(raised.exception)
        self.assertEqual([words], words.splitlines())
        self.assertIsNone(raised.exception.__cause__)
        return words

    def test_ready(self) -> None:
        """The callback `ready` gets the address."""
        for address, expected in (
            (Address("127.0.0.1", 8080), "http://127.0.0.1:8080"),
            (Address("::1", 8080), "http://[::1]:8080"),
            (Address("", 8080), "http://localhost:8080"),
            (EndpointDescription("tcp:8080"), "tcp:8080 (0.0.0.0:8080)"),
            (EndpointDescription("unix:/run/x.sock"), "unix:/run/x.sock"),
        ):
            self.started(Honest(), address)
            self.assertEqual(expected, self.reported.pop())
        self.started(Honest(), Address("::1", 1), EndpointDescription("tcp:2"))
        self.assertEqual(["http://[::1]:1", "tcp:2 (0.0.0.0:2)"], self.reported)

    def test_exposed(self) -> None:
        """The callback `exposed` is called once if other machines can connect."""
        far, near = Address("192.0.2.1", 1), Address("127.0.0.1", 2)
        cases: Sequence[tuple[Sequence[Address | EndpointDescription], int]] = (
            ([near], 0),
            ([Address("::1", 1), EndpointDescription("unix:/run/x.sock")], 0),
            ([Address("127.8.9.1", 1)], 0),
            ([near, far], 1),
            ([far, Address("", 3)], 1),
            ([EndpointDescription("tcp:8080")], 1),
            ([EndpointDescription("tcp:8080:interface=127.0.0.1")], 0),
        )
        for addresses, expected in cases:
            calls: list[None] = []
            exposed = partial(calls.append, None)
            self.started(Honest(), *addresses, on_exposed=exposed)
            self.assertEqual(expected, len(calls), addresses)

    def test_secured(self) -> None:
        """Network ports have TLS, a UNIX socket has none."""
        behind: list[object] = []

        def secured(factory: IProtocolFactory) -> IProtocolFactory:
            behind.append(factory)
            return factory

        near, unix = Address("127.0.0.1", 1), EndpointDescription("unix:/run/x.sock")
        reactor = MemoryReactorClock()
        self.site.encrypt = secured
        self.started(reactor, near, unix, EndpointDescription("tcp:2"))
        self.assertEqual(2, len(behind))
        self.assertTrue(self.reported[0].startswith("https://127.0.0.1:"))

    def test_several(self) -> None:
        """The listener opens all addresses in order, and calls `ready` for each."""
        reactor = MemoryReactorClock()
        first, second = Address("127.0.0.1", 8080), Address("::1", 8081)
        service = self.started(
            reactor, first, second, EndpointDescription("unix:/run/x.sock")
        )
        ports = reactor.tcpServers + reactor.unixServers
        self.assertEqual(
            [
                (8080, 1024, "127.0.0.1"),
                (8081, 1024, "::1"),
                ("/run/x.sock", 1024, 0o660, 0),
            ],
            [(name, *options) for name, _, *options in ports],
        )
        self.assertEqual(3, len(self.reported))
        self.successResultOf(service.stopService())
        self.assertEqual([], reactor.getDelayedCalls())

    def test_refused(self) -> None:
        """An error is one line, with a hint for a port in use or below 1024."""
        why = "Refused for a test"
        used, denied = OSError(errno.EADDRINUSE, why), OSError(errno.EACCES, why)
        hint = "; ports below 1024 need a privilege"
        other = "; choose another port: LISTEN_ADDRESS=:PORT"
        proxy = "maybe by NetBird's reverse proxy for its metrics"
        local, unix = Address("127.0.0.1", 80), EndpointDescription("unix:/run/x.sock")
        cases: Sequence[tuple[object, Address | EndpointDescription, str]] = (
            (used, local, f"127.0.0.1:80: {why}{other}"),
            (used, Address("", 8080), f":8080: {why}, {proxy}{other}"),
            (used, unix, f"unix:/run/x.sock: {why}"),
            (denied, local, f"127.0.0.1:80: {why}{hint}"),
            (denied, unix, f"unix:/run/x.sock: {why}"),
            (
                OSError(errno.EADDRNOTAVAIL, why),
                Address("192.0.2.1", 80),
                f"192.0.2.1:80: {why}; use an IP address of this machine, or :80 for"
                " all",
            ),
            ("No reason", unix, "unix:/run/x.sock: No reason"),
        )
        for cause, address, expected in cases:
            words = self.failure(Refusing(cause), address)
            self.assertEqual(f"cannot listen on {expected}", words)
        missing = "systemd has not passed this socket"
        for description, reason in (
            ("ssl:1:privateKey=/no/key", "No such file or directory"),
            ("systemd:domain=INET:index=0", missing),
            ("systemd:domain=INET:name=x", missing),
        ):
            words = self.failure(MemoryReactorClock(), EndpointDescription(description))
            self.assertEqual(f"cannot listen on {description}: {reason}", words)

    def test_interface(self) -> None:
        """A network interface is no host; the error says what to write instead."""

        def unknown(*_: object, **__: object) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        self.patch(socket, "getaddrinfo", unknown)
        self.assertEqual(
            "cannot listen on eth0:99: Name or service not known; use an IP address of"
            " this machine, or :99 for all",
            self.failure(MemoryReactorClock(), Address("eth0", 99)),
        )

    def test_wrong_descriptions(self) -> None:
        """The error of a wrong description is one line with the reason."""
        empty = Path(self.mktemp())
        empty.touch()
        for description in (
            *("tcp:", "tcp:http", "tcp:8080:nonsense=1", "unix:/run/x.sock:mode=rw"),
            *("tcp:8080:interface=127.0.0.1:backlog=many", "systemd:domain=INET"),
            *(
                "systemd:domain=NONSENSE:index=0",
                f"ssl:8443:privateKey={empty}",
                "fd:x",
            ),
        ):
            words = self.failure(MemoryReactorClock(), EndpointDescription(description))
            start = f"cannot listen on {description}: "
            self.assertTrue(words.startswith(start), words)
            self.assertGreater(len(words), len(start))

    def test_pipe(self) -> None:
        """A key or certificate is not read from a pipe, which might never end."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        pipe = folder / "a:b"
        os.mkfifo(pipe)
        signal.alarm(5)  # ends a test that waits
        self.addCleanup(signal.alarm, 0)
        name = str(pipe).replace(":", "\\:")
        for options in (f"privateKey={name}", f"certKey={name}:privateKey=/no/key"):
            words = self.failure(
                MemoryReactorClock(), EndpointDescription(f"ssl:1:{options}")
            )
            self.assertIn(f": {pipe}: the file is not a regular file", words)

    def test_lasting(self) -> None:
        """Wrong descriptions are lasting errors; missing files and sockets are not."""
        good: list[Address | EndpointDescription] = [
            Address("no-such-host.invalid", 1),
            EndpointDescription("tcp:8080"),
        ]
        missing = "ssl:8443:privateKey=/nowhere/key.pem", "systemd:domain=INET:index=0"
        wrong = "tcp:http", "tcp:99999", "tcp6:-1", "unix:/run/x.sock:mode=rw"
        given = (*good, *map(EndpointDescription, (*missing, *wrong)))
        lines = description_errors(given, posix(MemoryReactorClock()))
        named = [line.removeprefix("cannot listen on ") for line in lines]
        self.assertEqual([*wrong], [name.partition(": ")[0] for name in named])

    def test_stopped(self) -> None:
        """A listener can be stopped before it starts, and twice."""
        service = self.listener(MemoryReactorClock(), Address("127.0.0.1", 8080))
        for _ in range(2):
            self.successResultOf(service.stopService())

    def test_closing(self) -> None:
        """A stop waits until the port is closed and all responses are sent."""
        for order in (1, -1):
            reactor, closed = Honest(), defer.Deferred[None]()
            reactor.closed = closed
            service = self.started(reactor, Address("127.0.0.1", 8080))
            service.startService()
            Connection(self.site).ask()
            stopped = service.stopService()
            self.assertFalse(service.running)
            ends: list[Callable[[], None]] = [partial(closed.callback, None)]
            for end in [*ends, self.page.finish][::order]:
                self.assertNoResult(stopped)
                end()
                reactor.advance(0.02)
            self.successResultOf(stopped)

    def test_unused_socket(self) -> None:
        """A start removes a socket that no process listens on, and no other file."""
        with tempfile.TemporaryDirectory() as folder:  # its name is short
            used, unused, text = (Path(folder) / name for name in ("a", "b", "c"))
            text.touch()
            with socket.socket(socket.AF_UNIX) as left:
                left.bind(str(unused))
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(used))
                listening.listen()
                for path in (used, unused, text):
                    service = self.listener(
                        Honest(), EndpointDescription(f"unix:{path}")
                    )
                    service.privilegedStartService()
                    self.successResultOf(service.stopService())
            self.assertEqual([used, text], sorted(Path(folder).iterdir()))

    def test_reload(self) -> None:
        """A valid certificate replaces the previous one, an invalid one does not."""
        reactor = Bound()
        files = [Path(self.mktemp()) for _ in range(2)]
        authority = Authority("test")

        def replace() -> bytes:
            issued = authority.issue("localhost")
            for file in files:
                file.write_bytes(issued.pem + issued.key)
            return issued.pem

        replace()
        addresses = [f"ssl:0:interface=127.0.0.1:privateKey={file}" for file in files]
        service = self.listener(reactor, *map(EndpointDescription, addresses))
        service.privilegedStartService()
        book = logbook(self)
        first = replace()
        service.reload()
        self.assertEqual([first, first], [*map(shown, reactor.ports)])
        second = replace()
        files[0].unlink()
        service.reload()
        unusable = authority.issue("localhost", key=X25519PrivateKey.generate())
        files[1].write_bytes(unusable.pem + unusable.key)
        files[0].write_bytes(unusable.pem + unusable.key)
        service.reload()
        self.assertEqual([first, second], [*map(shown, reactor.ports)])
        missing, *refused = book.lines()
        self.assertEqual(
            f"warning cannot listen on {addresses[0]}: No such file or directory;"
            " the previous certificate stays in use",
            missing,
        )
        for line, address in zip(refused, addresses, strict=True):
            self.assertRegex(line, f"listen on {address}: .*unknown certificate type")
        stopped = service.stopService()
        for seconds in (0, 0.02):
            reactor.advance(seconds)
        self.successResultOf(stopped)
