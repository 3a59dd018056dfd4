"""The HTTP server: a subclass of Twisted's, with limits and a graceful stop."""

import resource as system
from collections.abc import Callable
from math import ceil

from twisted.internet.interfaces import IAddress, IProtocolFactory, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.web import http
from twisted.web.resource import IResource
from twisted.web.server import Request, Site

from api_exporter.ports import ALL_ACCOUNTS
from api_exporter.serving.channel import BodilessRequest, Channel, client_host
from api_exporter.serving.page import ErrorPage

STOP_GRACE = 5.0
"""Seconds for which a stop waits for requests under way."""

DRAIN_INTERVAL = 0.02
"""Seconds between two looks at what is still to be sent."""

RESERVED_CONNECTIONS = 16
"""Connections above the limit that still get a response: 503, or `/health`."""

ADDRESS_SHARE = 0.75
"""The part of the limit that connections from one address may use: a machine that
leaves idle connections open cannot keep out all others."""

REQUEST_TIMEOUT = 60
"""Seconds in which a request must be complete, or the next one must begin."""

HEALTH_PATH = b"/health"
"""The page that is served even if there are too many connections."""

OTHER_FILES = 192
"""Open files besides the clients' connections: logs, connections to the NetBird API,
the event loop's, and connections that are being closed."""

FILES_PER_ACCOUNT = 6
"""Connections of each account after the first: two requests, three without an answer so
far, one connection attempt.
"""

log = Logger()


def connection_limit(wanted: int, accounts: int) -> int:
    """Return the given limit of connections, or a lower one that open files allow.

    With several accounts, this raises the limit of open files as far as allowed.
    """
    soft, hard = system.getrlimit(system.RLIMIT_NOFILE)
    other_files = OTHER_FILES + FILES_PER_ACCOUNT * max(0, accounts - 1)
    if accounts > 1 and soft < other_files + wanted:
        soft = min(other_files + wanted, hard)
        system.setrlimit(system.RLIMIT_NOFILE, (soft, hard))
    room = max(1, soft - other_files)
    if wanted <= room:
        return wanted
    log.warn(
        "MAX_CONNECTIONS is {max_connections}, but {open_files} open files allow"
        " only {allowed}",
        max_connections=wanted,
        open_files=soft,
        allowed=room,
    )
    return room


class BoundedSite(Site):
    """An HTTP server that limits connections and their time.

    Above `max_connections`, every request but `/health` gets 503. RESERVED_CONNECTIONS
    above that, a connection is closed without a response. An idle one is closed after
    REQUEST_TIMEOUT. A connection beyond the share of its address is closed, too. It
    shows no account unless a subclass allows it.

    Attributes:
        encrypt: puts TLS in front of network ports; None without TLS.
        max_connections: a change applies from the next connection on.
    """

    noisy = False  # no log line about the start
    protocol = Channel  # type: ignore[assignment]  # HTTP/1 alone
    encrypt: Callable[[IProtocolFactory], IProtocolFactory] | None = None

    def __init__(
        self, resource: IResource, reactor: IReactorTime, max_connections: int = 512
    ) -> None:
        super().__init__(resource, requestFactory=BodilessRequest, reactor=reactor)
        self.timeOut = REQUEST_TIMEOUT
        self.connections: set[Channel] = set()
        self.running_requests: set[Request] = set()
        self.max_connections = max_connections
        self.full_page: IResource = ErrorPage(503, "Too many connections: retry later.")

    def startFactory(self) -> None:
        """Do nothing: Twisted would start a timer for the times of its access log."""

    def buildProtocol(self, addr: IAddress) -> Channel:  # type: ignore[override]
        """Return a channel. With None, Twisted's TLS would leave a connection open."""
        max_connections = self.max_connections + RESERVED_CONNECTIONS
        channel: Channel = super().buildProtocol(addr)
        channel.connections = self.connections
        channel.address = getattr(addr, "host", "")
        is_full = len(self.connections) >= max_connections
        channel.is_refused = is_full or not self._has_share(channel.address)
        return channel

    def _has_share(self, address: str) -> bool:
        share = ceil(ADDRESS_SHARE * self.max_connections)
        if not address or len(self.connections) < share:
            return True
        return sum(one.address == address for one in self.connections) < share

    def acceptableProtocols(self) -> list[bytes]:
        """Return TLS's protocols: HTTP/1 alone, even if Twisted could speak HTTP/2."""
        return [b"http/1.1"]

    def getResourceFor(self, request: Request) -> IResource:
        """Count the request, and return its page. Called once for each request."""
        self.running_requests.add(request)
        assert isinstance(request.channel, Channel)
        request.notifyFinish().addBoth(lambda _: self.running_requests.discard(request))
        is_full = len(self.connections) > self.max_connections
        if is_full and request.path != HEALTH_PATH:
            request.setHeader(b"Connection", b"close")
            request.channel.persistent = False
            request.setHeader(b"Retry-After", b"10")
            return self.full_page
        found: IResource = super().getResourceFor(request)
        return found

    def log(self, request: http.Request) -> None:
        """Log the request for debugging, instead of Twisted's access log."""
        log.debug(
            "{method} {path}",
            method=request.method.decode("latin-1"),
            path=request.path.decode("latin-1"),
            status=request.code,
            client=client_host(request),
            bytes=request.sentLength,
        )

    async def drain(self, clock: IReactorTime) -> None:
        """Return when all is sent, or after STOP_GRACE."""
        end = clock.seconds() + STOP_GRACE
        is_sent = not self.connections
        while not is_sent and clock.seconds() < end:
            # Twisted finishes a request before the client has received the response,
            # and buffers the end of a response with TLS until the next turn.
            await deferLater(clock, DRAIN_INTERVAL)
            is_sent = not self.running_requests and not any(
                connection.unsent_bytes() for connection in self.connections
            )


def warn_exposed() -> None:
    log.warn(
        "Metrics are readable by anyone who can connect: no password, token or"
        " client certificate is required (see WEB_CONFIG_FILE)"
    )


class OpenSite(BoundedSite):
    """A server without authentication."""

    def getResourceFor(self, request: Request) -> IResource:
        assert isinstance(request, BodilessRequest)
        request.accounts = ALL_ACCOUNTS
        return super().getResourceFor(request)
