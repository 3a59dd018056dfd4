"""The client of an account: a service with its HTTP agent, token and TLS settings."""

from collections.abc import Callable

from OpenSSL.crypto import X509
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.posixbase import PosixReactorBase
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from api_exporter.clocks import Clocks, log_of
from api_exporter.ports import Attempt
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.token import TokenReader, TokenSource
from api_exporter.upstream.agent import UpstreamAgent
from api_exporter.upstream.body import BodyMemory
from api_exporter.upstream.fetcher import Fetcher
from api_exporter.upstream.tls_policy import (
    MakePolicy,
    TlsPolicy,
    UpstreamCertificate,
    read_certificate,
)

log = Logger()

RELOAD_INTERVAL = 60.0
"""Seconds between two checks of the client certificate and its key."""


class Client(Service):
    """The client of one account. It logs warnings about proxy, token and certificate.

    Args:
        clocks: its clock is the reactor, which also connects.

    Attributes:
        fetcher: usable without starting the service, if the service is stopped
            afterwards.
    """

    def __init__(
        self,
        settings: AccountSettings,
        reactor: PosixReactorBase,
        *,
        clocks: Clocks,
        on_attempt: Callable[[Attempt], None],
        make_policy: MakePolicy = TlsPolicy,
        body_memory: BodyMemory | None = None,
        on_silent: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._log = log_of(clocks.account, log)
        self._url = settings.upstream_api_url
        self.proxy_selection = settings.proxy_selection
        self.tls_policy = make_policy(
            settings.upstream_ca_file, settings.client_certificate, clocks.now
        )
        self.server_certificate: UpstreamCertificate | None = None
        self._agent = UpstreamAgent(
            reactor,
            proxy=settings.proxy_selection.proxy,
            policy=self.tls_policy,
            timeout=settings.http_timeout,
            on_certificate=self._on_certificate,
        )
        self._reloading: LoopingCall | None = None
        if settings.client_certificate is not None:
            self._reloading = LoopingCall(self.reload)
            self._reloading.clock = clocks.clock
        self._problem = ""
        self.token = token_source(settings, self._log)
        self.fetcher = Fetcher(
            agent=self._agent,
            token=self.token,
            settings=settings,
            clocks=clocks,
            on_attempt=on_attempt,
            body_memory=body_memory,
            on_silent=on_silent,
        )

    def startService(self) -> None:
        super().startService()
        proxy = self.proxy_selection.proxy
        if proxy is not None and self._url.startswith("http:"):
            self._log.warn(
                "the proxy {proxy} can read the token: UPSTREAM_API_URL is not https",
                proxy=str(proxy),
            )
        if self._reloading is not None:
            self._reloading.start(RELOAD_INTERVAL)

    def stopService(self) -> Deferred[None]:
        """Stop the service. The result fires when all idle connections are closed."""
        super().stopService()
        if self._reloading is not None and self._reloading.running:
            self._reloading.stop()
        return self._agent.close()

    def reload(self) -> None:
        """Check the client certificate; log once why it is not valid."""
        previous, self._problem = self._problem, self.tls_policy.reload()
        if self._problem not in {"", previous}:
            self._log.warn(
                "the client certificate is not valid: {error}", error=self._problem
            )

    def _on_certificate(self, certificate: X509) -> None:
        try:
            self.server_certificate = read_certificate(certificate)
        except Exception:  # noqa: BLE001 - OpenSSL accepts what another parser rejects
            self.server_certificate = None


def token_source(settings: AccountSettings, log: Logger) -> TokenSource:
    """Return the source of the token; log a warning if this may be no token."""
    file = settings.upstream_api_token_file
    if file is not None:
        source: TokenSource = TokenReader(
            file,
            lambda error: log.warn(
                "the token file cannot be read: {error}", error=error
            ),
        )
    else:
        token = settings.upstream_api_token
        assert token is not None  # one of the two is set
        source = lambda: token  # noqa: E731
    if doubt := source().doubt():
        log.warn("{text}", text=doubt)
    return source
