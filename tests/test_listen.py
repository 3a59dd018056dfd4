"""Where we listen, and what is said where we cannot."""

import errno
import socket
from collections.abc import Callable

from twisted.internet import defer
from twisted.internet.error import CannotListenError
from twisted.internet.testing import MemoryReactor
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource
from twisted.web.server import Site

from api_exporter.listen import CannotServe, Listener, interfaces
from api_exporter.settings import Address


class Refusing(MemoryReactor):
    """A reactor that cannot listen."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._error = OSError(number, "Refused for a test")

    def listenTCP(
        self, port: int, *_: object, interface: str = "", **__: object
    ) -> None:
        raise CannotListenError(interface, port, self._error)


def listener(
    reactor: MemoryReactor, address: Address, ready: Callable[[str], object] = str
) -> Listener:
    return Listener(
        address=address, site=Site(Resource()), reactor=reactor, ready=ready
    )


class InterfacesTests(SynchronousTestCase):
    def test_addresses(self) -> None:
        """An address is itself, a name its address."""
        for host, expected in (
            ("127.0.0.1", ["127.0.0.1"]),
            ("::1", ["::1"]),
            ("localhost", ["127.0.0.1"]),
        ):
            self.assertEqual(expected, list(interfaces(host)))

    def test_unresolvable(self) -> None:
        """A name without an address is an error of the system's."""
        with self.assertRaises(OSError):
            interfaces("no-such-host.invalid")

    def test_all(self) -> None:
        """No host is every interface of both families, as far as there are any."""
        self.assertIn(list(interfaces("")), (["::"], ["::", "0.0.0.0"], ["0.0.0.0"]))

    def test_no_ipv6(self) -> None:
        """A machine without IPv6 listens on IPv4."""

        def no_ipv6(*_: object) -> None:
            raise OSError(errno.EAFNOSUPPORT, "not on this machine")

        self.patch(socket, "socket", no_ipv6)
        self.assertEqual(["0.0.0.0"], list(interfaces("")))


class ListenerTests(SynchronousTestCase):
    def test_ready(self) -> None:
        """As soon as we listen, it is told where."""
        for address, expected in (
            (Address("127.0.0.1", 8080), "http://127.0.0.1:"),
            (Address("::1", 8080), "http://[::1]:"),
            (Address("", 8080), "http://localhost:"),
        ):
            told: list[str] = []
            reactor = MemoryReactor()
            service = listener(reactor, address, told.append)
            service.privilegedStartService()
            self.assertEqual(8080, reactor.tcpServers[0][0])
            [url] = told
            self.assertTrue(url.startswith(expected), url)
            self.successResultOf(defer.maybeDeferred(service.stopService))

    def test_refused(self) -> None:
        """Why we cannot listen is one line, with a hint where there is one."""
        for number, expected in (
            (errno.EADDRINUSE, "cannot listen on 127.0.0.1:80: Refused for a test"),
            (
                errno.EACCES,
                "cannot listen on 127.0.0.1:80: Refused for a test;"
                " ports below 1024 need a privilege",
            ),
        ):
            service = listener(Refusing(number), Address("127.0.0.1", 80))
            with self.assertRaises(CannotServe) as raised:
                service.privilegedStartService()
            self.assertEqual(expected, str(raised.exception))
