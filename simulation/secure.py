"""Both sides of TLS in memory: a server for the exporter, and a client of its pages."""

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL
from OpenSSL.crypto import X509
from twisted.internet import tcp
from twisted.internet.error import ConnectionLost
from twisted.internet.interfaces import IProtocol
from twisted.protocols import tls
from twisted.python.failure import Failure

from simulation.faults import error
from simulation.link import LATENCY, Link, Server
from simulation.machine import MAX_CALLS_AT_ONCE, Client

if TYPE_CHECKING:
    from simulation.torture import FragileMachine
    from tests.authority import Issued

ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
"""TLS's alert handshake_failure."""

LOGIN = b64encode(b"user:password").decode()


class Sealed(bytes):
    """Bytes that are encrypted already."""

    __slots__ = ()


def server_context(known: "tuple[bytes, Issued, Issued]") -> SSL.Context:
    """Return the context of a server that requires a client certificate."""
    authority, server, _ = known
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.use_certificate(server.certificate)
    context.use_privatekey(load_pem_private_key(server.key, None))  # type: ignore[arg-type]
    store = context.get_cert_store()
    assert store is not None
    store.add_cert(X509.from_cryptography(x509.load_pem_x509_certificate(authority)))
    required = SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_verify(required, lambda *args: bool(args[-1]))
    return context


class _NoDelay:
    def setTcpNoDelay(self, _: object) -> None:  # noqa: N802 - Twisted's name
        """Do nothing: there is no network."""


class SecureLink(_NoDelay, Link):
    """A connection to a server with TLS."""

    def __init__(
        self, machine: "FragileMachine", server: Server, protocol: IProtocol
    ) -> None:
        self._tls = SSL.Connection(machine.contexts, None)
        self._tls.set_accept_state()
        self._faults = machine.faults
        self._has_begun = False
        self._path = ""
        super().__init__(machine, server, protocol)

    def write(self, data: bytes) -> None:
        if not self._open:
            return
        if not self._has_begun:
            self._has_begun = True
            if name := self._faults.failure("handshake", "with the NetBird API"):
                if name == "alert":
                    self._receive_later(LATENCY, Sealed(ALERT))
                    self._receive_later(LATENCY, ConnectionLost())
                else:
                    self._receive_later(LATENCY, ConnectionLost(error(name)))
                return
        self._tls.bio_write(data)
        try:
            while True:
                super().write(self._tls.recv(1 << 16))
        except (SSL.WantReadError, SSL.ZeroReturnError):
            pass
        self._send()

    def _send(self) -> None:
        if sealed := _pending(self._tls):
            self._receive_later(0.001, Sealed(sealed))

    def _request(self, head: str) -> None:
        self._path = head.split()[1].partition("?")[0]
        super()._request(head)

    def _deliver(self, data: bytes) -> None:
        if not isinstance(data, Sealed):
            if name := self._faults.failure("receive", self._path):
                self._close(ConnectionLost(error(name)))
                return
            self._tls.sendall(data)
            data = _pending(self._tls)
        super()._deliver(bytes(data))


def _pending(connection: SSL.Connection) -> bytes:
    found = b""
    try:
        while True:
            found += connection.bio_read(1 << 16)
    except SSL.WantReadError:
        return found


class _TcpClient(_NoDelay, Client):
    pass


class _Listening:
    """A listening socket with one client that waits."""

    def __init__(self, machine: "FragileMachine", client: Client) -> None:
        self._machine = machine
        self._waiting = [client]

    def accept(self) -> tuple[Client, tuple[str, int]]:
        if not self._waiting:
            raise BlockingIOError(11, "no client waits")
        self._machine.faults.check("accept", "listening port")
        return self._waiting.pop(), ("192.0.2.1", 1)


def _accepted(machine: "FragileMachine", client: Client) -> Any:
    """Return the protocol of a client that the exporter accepts in the end."""
    [(number, listening)] = machine.ports.items()
    protocols: list[IProtocol] = []

    def transport(socket: Client, protocol: IProtocol, *_: object) -> Client:
        protocols.append(protocol)
        return socket

    port: Any = tcp.Port(number, listening.factory, reactor=machine)
    port.socket, port.transport, port.numberAccepts = (
        _Listening(machine, client),
        transport,
        1,
    )
    for _ in range(3):
        port.doRead()
    return protocols[0]


def get(machine: "FragileMachine", path: str, encoding: str) -> tuple[int, bytes]:
    """Return status and body of a page. The status of an incomplete one is 0."""
    client = _TcpClient()
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    connection = SSL.Connection(context, None)
    connection.set_connect_state()
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    head += f"Authorization: Basic {LOGIN}\r\nAccept-Encoding: {encoding}\r\n\r\n"
    protocol = _accepted(machine, client)
    threads = (machine.compute_thread, machine.getThreadPool())
    for one in threads:
        one.quick = True  # type: ignore[attr-defined]
    received, sent = b"", False
    for _ in range(MAX_CALLS_AT_ONCE):
        if client.value():
            connection.bio_write(bytes(client.value()))
            client.clear()
        try:
            while True:
                if not sent:
                    connection.do_handshake()
                    if machine.faults.failure("handshake", "with a client"):
                        break
                    connection.send(head.encode())
                    sent = True
                received += connection.recv(1 << 16)
        except SSL.WantReadError:
            pass
        except (SSL.ZeroReturnError, SSL.Error):
            break
        else:
            break
        if data := _pending(connection):
            protocol.dataReceived(data)
        machine.run(machine.seconds())
        if not client.value() and machine.due_at() > machine.seconds():
            break
    for one in threads:
        one.quick = False  # type: ignore[attr-defined]
    protocol.connectionLost(Failure(ConnectionLost()))
    head_, _, body = received.partition(b"\r\n\r\n")
    is_complete = client.disconnecting
    return (int(head_.split()[1]) if is_complete and head_ else 0), body


def use_clock(machine: "FragileMachine") -> None:
    """Let Twisted's TLS write with the machine's timers."""
    tls._get_default_clock = lambda: machine
