"""The simulated API on a loopback port, over real HTTP, in our own process."""

import socket
from collections.abc import Callable

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IListeningPort, IReactorSocket
from twisted.web.http import Request
from twisted.web.server import Site

from api_exporter.demo.api import DemoApi
from api_exporter.demo.limiter import Limiter
from api_exporter.demo.network import Network

TOKEN = "nbp_demodemodemodemodemodemodemo003rILHJ"  # noqa: S105 - opens nothing real
"""What the simulated API wants to see."""


def bind() -> socket.socket:
    """A listening socket whose port is known before anything is served."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)  # the reactor that adopts it must never wait in accept
    return listening


def environ(listening: socket.socket) -> dict[str, str]:
    """The settings with which an exporter reads the simulation."""
    port = listening.getsockname()[1]
    return {
        "UPSTREAM_API_URL": f"http://127.0.0.1:{port}",
        "UPSTREAM_API_TOKEN": TOKEN,
        "UPSTREAM_API_TOKEN_FILE": "",
        "UPSTREAM_PROXY": "none",
    }


class _Quiet(Site):
    noisy = False

    def log(self, _request: Request) -> None:
        """Nothing: the exporter tells of its requests itself."""


class DemoServer(Service):
    """Serves a simulated network on a socket that already listens.

    Args:
        rate_limit: requests a minute and burst, as NetBird's limiter has them.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        listening: socket.socket,
        *,
        peers: int,
        rate_limit: tuple[int, int] | None,
        reactor: IReactorSocket,
        now: Callable[[], float],
    ) -> None:
        self._listening = listening
        self._peers = peers
        self._limiter = Limiter(*rate_limit) if rate_limit is not None else None
        self._reactor = reactor
        self._now = now
        self._port: IListeningPort | None = None

    def startService(self) -> None:
        super().startService()
        api = DemoApi(
            network=Network(self._peers),
            token=TOKEN,
            now=self._now,
            limiter=self._limiter,
        )
        self._port = self._reactor.adoptStreamPort(
            self._listening.fileno(),
            socket.AF_INET,
            _Quiet(api),  # type: ignore[arg-type]
        )
        self._listening.close()

    def stopService(self) -> Deferred[None] | None:
        super().stopService()
        return self._port.stopListening() if self._port is not None else None
