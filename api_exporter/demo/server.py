"""The simulated API on a loopback port, over real HTTP, in our own process."""

import socket
from collections.abc import Callable

from msgspec.structs import replace
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IListeningPort, IReactorSocket
from twisted.web.http import Request
from twisted.web.resource import Resource
from twisted.web.server import Site

from api_exporter.demo import customers
from api_exporter.demo.api import DemoApi
from api_exporter.demo.customers import Customers
from api_exporter.demo.limiter import Limiter
from api_exporter.demo.network import Network
from api_exporter.settings.credential import Token
from api_exporter.settings.definitions import Settings

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
        "UPSTREAM_CLIENT_CERT_FILE": "",
        "UPSTREAM_CLIENT_KEY_FILE": "",
        "UPSTREAM_CA_FILE": "",
        "UPSTREAM_ACCOUNT": "",
        "EVENTS_FILE": "",  # where real ones are
        "EVENTS_CURSOR_FILE": "",
        "ACCOUNTS_DIR": "",
        "SHARD": "",
    }


class _Quiet(Site):
    noisy = False

    def log(self, _request: Request) -> None:
        """Nothing: the exporter tells of its requests itself."""


def simulated(settings: Settings) -> Settings:
    """The same with DEMO_ACCOUNTS accounts, where that is set."""
    count = settings.demo_accounts
    if count is None:
        return settings
    (only,) = settings.accounts.values()
    accounts = {
        name: replace(
            only, name=name, upstream_api_token=Token(customers.token(number))
        )
        for number, name in enumerate(customers.names(count), 1)
    }
    return replace(settings, accounts=accounts)


class DemoServer(Service):
    """Serves what the settings want of a simulation on a socket that already listens.

    Args:
        now: seconds since the epoch.
    """

    def __init__(
        self,
        listening: socket.socket,
        *,
        settings: Settings,
        reactor: IReactorSocket,
        now: Callable[[], float],
    ) -> None:
        self._listening = listening
        self._settings = settings
        self._reactor = reactor
        self._now = now
        self._port: IListeningPort | None = None

    def startService(self) -> None:
        super().startService()
        self._port = self._reactor.adoptStreamPort(
            self._listening.fileno(),
            socket.AF_INET,
            _Quiet(self._api()),  # type: ignore[arg-type]
        )
        self._listening.close()

    def _api(self) -> Resource:
        peers, limit = self._settings.demo_peers, self._settings.demo_rate_limit
        count = self._settings.demo_accounts
        if count is not None:
            return Customers(count, peers=peers, limit=limit, now=self._now)
        return DemoApi(
            network=Network(peers),
            token=TOKEN,
            now=self._now,
            limiter=None if limit is None else Limiter(*limit),
        )

    def stopService(self) -> Deferred[None] | None:
        super().stopService()
        return self._port.stopListening() if self._port is not None else None
