"""The simulated API over HTTP, on a loopback port of the exporter's process."""

import socket
from zlib import crc32

from msgspec.structs import replace
from twisted.application.internet import StreamServerEndpointService
from twisted.application.service import Service
from twisted.internet.endpoints import AdoptedStreamServerEndpoint
from twisted.internet.interfaces import IReactorSocket, IReactorTime
from twisted.web.http import Request
from twisted.web.server import Site

from api_exporter.demo.api import DemoApi
from api_exporter.demo.network import RecordedNetwork
from api_exporter.ports import Now
from api_exporter.settings.definitions import ACCOUNT_SETTINGS, Settings
from api_exporter.settings.token import Token, base62

DEMO_TOKEN = "nbp_demodemodemodemodemodemodemo003rILHJ"  # noqa: S105 - opens nothing real
"""The token of a simulated API with a single account."""

MIN_PEERS = 15
"""Minimum peers of a network; a smaller one does not have all kinds of peers."""


def bind() -> socket.socket:
    """Return a listening socket, whose port is known before the server starts."""
    return socket.create_server(("127.0.0.1", 0))


def demo_environment(listening: socket.socket) -> dict[str, str]:
    """Return the settings with which an exporter reads the simulation."""
    port = listening.getsockname()[1]
    no_files = {setting.name: "" for setting in ACCOUNT_SETTINGS if setting.is_path}
    return {
        **no_files,  # they hold real tokens and events
        "UPSTREAM_API_URL": f"http://127.0.0.1:{port}",
        "UPSTREAM_API_TOKEN": DEMO_TOKEN,
        "UPSTREAM_PROXY": "none",
        "UPSTREAM_ACCOUNT": "",
        "ACCESS_LOG_METRICS": "true",
        "ACCOUNTS_DIR": "",
        "SHARD": "",
    }


class _QuietSite(Site):
    noisy = False

    def log(self, _request: Request) -> None:
        """Do nothing: the exporter logs its requests itself."""


def tokens(count: int) -> dict[str, str]:
    """Return well-formed tokens by customer name."""
    secrets = {number: f"demo{number:026d}" for number in range(1, count + 1)}
    return {
        f"customer-{number:03d}": f"nbp_{secret}{base62(crc32(secret.encode()))}"
        for number, secret in secrets.items()
    }


def customers(count: int, peers: int) -> dict[str, RecordedNetwork]:
    """Return networks of different sizes, up to `peers` peers, by token.

    Two customers, the second and the last, have no network: their tokens are invalid.
    """
    extra_peers = max(0, peers - MIN_PEERS)
    return {
        token: RecordedNetwork(MIN_PEERS + extra_peers * number // count, seed=number)
        for number, token in enumerate(tokens(count).values(), 1)
        if number not in {2, count}
    }


def with_demo_accounts(settings: Settings) -> Settings:
    """Return the settings with DEMO_ACCOUNTS accounts, if that is set."""
    count = settings.demo_accounts
    if count is None:
        return settings
    (only,) = settings.accounts.values()
    accounts = {
        name: replace(only, name=name, upstream_api_token=Token(token))
        for name, token in tokens(count).items()
    }
    return replace(settings, accounts=accounts)


def server(
    listening: socket.socket, *, settings: Settings, reactor: IReactorSocket, now: Now
) -> Service:
    peers, count = settings.demo_peers, settings.demo_accounts
    networks = (
        customers(count, peers)
        if count
        else {DEMO_TOKEN: RecordedNetwork(peers, seed=0)}
    )
    api = DemoApi(networks, now=now, fault=settings.demo_fault)
    endpoint = AdoptedStreamServerEndpoint(reactor, listening.detach(), socket.AF_INET)
    return StreamServerEndpointService(
        endpoint, _QuietSite(api, reactor=IReactorTime(reactor))
    )
