"""Listening addresses, and the errors if listening fails."""

import errno
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import cast

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
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource

from api_exporter.serving.listener import (
    Listener,
    ListenError,
    bind_addresses,
    endpoints,
)
from api_exporter.serving.site import BoundedSite
from api_exporter.settings.addresses import Address, Endpoint
from tests.authority import Authority


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
    """A reactor that returns the address of a port."""

    def listenTCP(
        self, port: int, factory: Factory, backlog: int = 50, interface: str = ""
    ) -> IListeningPort:
        made: IListeningPort = super().listenTCP(port, factory, backlog, interface)
        address = IPv4Address("TCP", interface or "0.0.0.0", port)
        made._hostAddress = address  # type: ignore[attr-defined]
        return made


def posix(reactor: MemoryReactorClock) -> PosixReactorBase:
    """Return the reactor with the type that listeners require."""
    return cast(PosixReactorBase, reactor)


class InterfacesTests(SynchronousTestCase):
    def test_addresses(self) -> None:
        """An address is returned unchanged, a name is resolved."""
        for host, expected in (
            ("127.0.0.1", ["127.0.0.1"]),
            ("::1", ["::1"]),
            ("localhost", ["127.0.0.1"]),
        ):
            self.assertEqual(expected, list(bind_addresses(host)))

    def test_unresolvable(self) -> None:
        """A name without an address raises an error of the system's."""
        with self.assertRaises(OSError):
            bind_addresses("no-such-host.invalid")

    def test_all(self) -> None:
        """An empty host means all addresses of IPv6 and IPv4, as far as they exist."""
        self.assertIn(
            list(bind_addresses("")), (["::"], ["::", "0.0.0.0"], ["0.0.0.0"])
        )

    def test_no_ipv6(self) -> None:
        """A machine without IPv6 listens on IPv4."""

        def no_ipv6(*_: object) -> None:
            raise OSError(errno.EAFNOSUPPORT, "not on this machine")

        self.patch(socket, "socket", no_ipv6)
        self.assertEqual(["0.0.0.0"], list(bind_addresses("")))


class EndpointsTests(SynchronousTestCase):
    def test_addresses(self) -> None:
        """An address is one endpoint of its family, an empty host one or two."""
        reactor = MemoryReactorClock()
        for host, kinds in (
            ("127.0.0.1", [TCP4ServerEndpoint]),
            ("::1", [TCP6ServerEndpoint]),
            ("localhost", [TCP4ServerEndpoint]),
        ):
            found = endpoints(Address(host, 8080), posix(reactor))
            self.assertEqual(kinds, [type(endpoint) for endpoint in found])
        every = endpoints(Address("", 8080), posix(reactor))
        self.assertEqual(len(bind_addresses("")), len(every))

    def test_descriptions(self) -> None:
        """A description becomes the endpoint that Twisted makes of it."""
        certificate = Path(self.mktemp())
        issued = Authority("an authority").issue("localhost")
        certificate.write_bytes(issued.pem + issued.key)
        for description, kind in (
            ("tcp:8080:interface=127.0.0.1", TCP4ServerEndpoint),
            (r"tcp:8080:interface=\:\:1", TCP4ServerEndpoint),
            ("tcp6:8080", TCP6ServerEndpoint),
            ("unix:/run/x.sock:mode=660", UNIXServerEndpoint),
            ("unix:/run/x.sock:lockfile=1", UNIXServerEndpoint),
            (f"ssl:8443:privateKey={certificate}", SSL4ServerEndpoint),
        ):
            [found] = endpoints(Endpoint(description), posix(MemoryReactorClock()))
            self.assertIsInstance(found, kind, description)


class ListenerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.reported: list[str] = []

    def listener(
        self, reactor: MemoryReactorClock, *addresses: Address | Endpoint
    ) -> Listener:
        return Listener(
            addresses=addresses,
            site=BoundedSite(Resource(), Clock()),
            reactor=posix(reactor),
            on_ready=self.reported.append,
        )

    def failure(
        self, reactor: MemoryReactorClock, *addresses: Address | Endpoint
    ) -> str:
        """Return the error, which is always one line."""
        with self.assertRaises(ListenError) as raised:
            self.listener(reactor, *addresses).privilegedStartService()
        words = str(raised.exception)
        self.assertEqual([words], words.splitlines())
        self.assertIsNone(raised.exception.__cause__)
        return words

    def test_ready(self) -> None:
        """The callback `ready` gets the address."""
        for address, expected in (
            (Address("127.0.0.1", 8080), "http://127.0.0.1:"),
            (Address("::1", 8080), "http://[::1]:"),
            (Address("", 8080), "http://localhost:"),
            (Endpoint("tcp:8080:interface=127.0.0.1"), "tcp:8080:interface=127.0.0.1"),
        ):
            self.reported.clear()
            reactor = MemoryReactorClock()
            service = self.listener(reactor, address)
            service.privilegedStartService()
            self.assertEqual(8080, reactor.tcpServers[0][0])
            [reported] = self.reported
            self.assertTrue(reported.startswith(expected), reported)
            self.successResultOf(defer.maybeDeferred(service.stopService))

    def test_exposed(self) -> None:
        """The callback `exposed` is called once if other machines can connect."""
        far, near = Address("192.0.2.1", 1), Address("127.0.0.1", 2)
        cases: Sequence[tuple[Sequence[Address | Endpoint], int]] = (
            ([near], 0),
            ([Address("::1", 1), Endpoint("unix:/run/x.sock")], 0),
            ([Address("127.8.9.1", 1)], 0),
            ([near, far], 1),
            ([far, Address("", 3)], 1),
            ([Endpoint("tcp:8080")], 1),
            ([Endpoint("tcp:8080:interface=127.0.0.1")], 0),
        )
        for addresses, expected in cases:
            reported: list[None] = []
            service = Listener(
                addresses=addresses,
                site=BoundedSite(Resource(), Clock()),
                reactor=posix(Honest()),
                on_ready=self.reported.append,
                on_exposed=lambda reported=reported: reported.append(None),  # type: ignore[misc]
            )
            service.privilegedStartService()
            self.assertEqual(expected, len(reported), addresses)
            self.successResultOf(service.stopService())

    def test_secured(self) -> None:
        """Network ports have TLS, a UNIX socket has none."""
        behind: list[object] = []

        def secured(factory: IProtocolFactory) -> IProtocolFactory:
            behind.append(factory)
            return factory

        reactor = MemoryReactorClock()
        service = Listener(
            addresses=[
                Address("127.0.0.1", 1),
                Endpoint("unix:/run/x.sock"),
                Endpoint("tcp:2"),
            ],
            site=BoundedSite(Resource(), Clock()),
            reactor=posix(reactor),
            on_ready=self.reported.append,
            encrypt=secured,
        )
        service.privilegedStartService()
        self.assertEqual(2, len(behind))
        self.assertTrue(self.reported[0].startswith("https://127.0.0.1:"))
        self.successResultOf(service.stopService())

    def test_several(self) -> None:
        """The listener opens all addresses in order, and calls `ready` for each."""
        reactor = MemoryReactorClock()
        service = self.listener(
            reactor,
            Address("127.0.0.1", 8080),
            Address("::1", 8081),
            Endpoint("unix:/run/x.sock"),
        )
        service.privilegedStartService()
        self.assertEqual([8080, 8081], [server[0] for server in reactor.tcpServers])
        self.assertEqual(
            ["127.0.0.1", "::1"], [server[3] for server in reactor.tcpServers]
        )
        [(path, _, _, mode, locked)] = reactor.unixServers
        self.assertEqual(("/run/x.sock", 0o660, 0), (path, mode, locked))
        self.assertEqual(3, len(self.reported))
        self.assertEqual("unix:/run/x.sock", self.reported[2])
        self.successResultOf(service.stopService())
        self.assertEqual([], reactor.getDelayedCalls())

    def test_refused(self) -> None:
        """An error is one line, with a hint if ports below 1024 need a privilege."""
        used, denied = (
            OSError(number, "Refused for a test")
            for number in (errno.EADDRINUSE, errno.EACCES)
        )
        hint = "; ports below 1024 need a privilege"
        local, unix = Address("127.0.0.1", 80), Endpoint("unix:/run/x.sock")
        cases: Sequence[tuple[object, Address | Endpoint, str]] = (
            (used, local, "127.0.0.1:80: Refused for a test"),
            (denied, local, f"127.0.0.1:80: Refused for a test{hint}"),
            (denied, unix, "unix:/run/x.sock: Refused for a test"),
            ("No reason", unix, "unix:/run/x.sock: No reason"),
        )
        for cause, address, expected in cases:
            words = self.failure(Refusing(cause), address)
            self.assertEqual(f"cannot listen on {expected}", words)

    def test_second_refused(self) -> None:
        """The error names the address that failed."""
        reactor = MemoryReactorClock()
        first = Address("127.0.0.1", 8080)
        words = self.failure(reactor, first, Address("no-such-host.invalid", 8080))
        self.assertTrue(words.startswith("cannot listen on no-such-host.invalid:8080"))

    def test_wrong_descriptions(self) -> None:
        """The error of a wrong description is one line with the reason."""
        empty = Path(self.mktemp())
        empty.touch()
        for description in (
            "tcp:",
            "tcp:http",
            "tcp:8080:nonsense=1",
            "tcp:8080:interface=127.0.0.1:backlog=many",
            "unix:/run/x.sock:mode=rw",
            "systemd:domain=INET",
            "systemd:domain=INET:index=0",
            "systemd:domain=NONSENSE:index=0",
            "systemd:domain=INET:name=web",
            "ssl:8443:privateKey=/nowhere/key.pem",
            f"ssl:8443:privateKey={empty}",
            "fd:x",
        ):
            words = self.failure(MemoryReactorClock(), Endpoint(description))
            start = f"cannot listen on {description}: "
            self.assertTrue(words.startswith(start), words)
            self.assertGreater(len(words), len(start))

    def test_file_is_named(self) -> None:
        """The error of a missing key has the system's words."""
        words = self.failure(MemoryReactorClock(), Endpoint("ssl:1:privateKey=/no/key"))
        expected = (
            "cannot listen on ssl:1:privateKey=/no/key: No such file or directory"
        )
        self.assertEqual(expected, words)

    def test_not_activated(self) -> None:
        """The error of a missing systemd socket names systemd, not an index."""
        for description in (
            "systemd:domain=INET:index=0",
            "systemd:domain=INET:name=x",
        ):
            words = self.failure(MemoryReactorClock(), Endpoint(description))
            self.assertIn(
                "systemd", words.removeprefix(f"cannot listen on {description}")
            )

    def test_stopped(self) -> None:
        """A listener can be stopped before it starts, and twice."""
        service = self.listener(MemoryReactorClock(), Address("127.0.0.1", 8080))
        for _ in range(2):
            self.successResultOf(service.stopService())
