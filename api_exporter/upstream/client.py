"""The upstream's client as the settings want it, and its life with the program."""

from collections.abc import Callable

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, gatherResults
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.client import Agent, HTTPConnectionPool

from api_exporter.ports import Attempt
from api_exporter.settings.credential import Rereading, Source
from api_exporter.settings.values import AccountSettings
from api_exporter.telemetry.log import log_of
from api_exporter.upstream.backoff import Jitter
from api_exporter.upstream.connection import Endpoints
from api_exporter.upstream.contexts import KeptContexts
from api_exporter.upstream.fetching import Upstream
from api_exporter.upstream.large import LargeBodies

IDLE_CONNECTION = 50
"""Seconds for which an idle connection to the upstream is kept: proxies grant 60."""

log = Logger()


class Client(Service):
    """Says at the start whether the upstream can be reached; leaves nothing behind.

    Args:
        observe: told of every attempt as it ends.
        large: where bodies of all clients of the process wait for each other.

    Attributes:
        upstream: may be used without starting the service, if that is stopped after it.
        token: gives the token to use now.
    """

    def __init__(
        self,
        settings: AccountSettings,
        reactor: PosixReactorBase,
        *,
        now: Callable[[], float],
        jitter: Jitter,
        observe: Callable[[Attempt], None],
        contexts: KeptContexts | None = None,
        large: LargeBodies | None = None,
    ) -> None:
        self._pool = HTTPConnectionPool(reactor)
        self._pool.cachedConnectionTimeout = IDLE_CONNECTION
        # Only where a kept connection ends without a single byte: the upstream closed
        # it at the moment of its reuse, which is nobody's failure and counts nowhere.
        self._pool.retryAutomatically = True
        endpoints = Endpoints(
            reactor,
            KeptContexts() if contexts is None else contexts,
            settings.http_timeout,
        )
        self._probing: Deferred[None] | None = None
        self.token = token_source(settings, log_of(settings.name, log))
        self.upstream = Upstream(
            agent=Agent.usingEndpointFactory(reactor, endpoints, self._pool),
            url=settings.upstream_api_url,
            token=self.token,
            timeout=settings.http_timeout,
            attempts=settings.api_retry_attempts,
            clock=reactor,
            now=now,
            jitter=jitter,
            observe=observe,
            account=settings.upstream_account,
            name=settings.name,
            large=large,
        )

    def startService(self) -> None:
        super().startService()
        self._probing = self.upstream.probe().addErrback(_cancelled)

    def stopService(self) -> Deferred[list[None]]:
        """Fires when no connection is open but those that carry a request."""
        super().stopService()
        ending = [self._pool.closeCachedConnections()]
        if self._probing is not None:
            self._probing.cancel()
            ending.append(self._probing)
        return gatherResults(ending)


def _cancelled(failure: Failure) -> None:
    failure.trap(CancelledError)


def token_source(settings: AccountSettings, log: Logger) -> Source:
    """Where the token comes from; says so where it cannot be right."""
    file = settings.upstream_api_token_file
    if file is not None:
        source: Source = Rereading(
            file, lambda why: log.warn("the token file cannot be read: {why}", why=why)
        )
    else:
        token = settings.upstream_api_token
        assert token is not None  # one of the two is set
        source = lambda: token  # noqa: E731
    if source().mistyped():
        log.warn("the token looks like NetBird's but its checksum is wrong: mistyped?")
    return source
