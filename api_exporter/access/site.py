"""Authentication and authorization of each request before its page is rendered."""

from collections import Counter

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IProtocolFactory, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.resource import IResource, Resource
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.access.authorization import Decision, authorize
from api_exporter.access.control import AccessControl
from api_exporter.access.passwords import QueueFull
from api_exporter.ports import ALL_ACCOUNTS, Accounts
from api_exporter.serving.channel import BodilessRequest, client_host
from api_exporter.serving.page import ACCOUNT_NOT_FOUND, ErrorPage, forbid_caching
from api_exporter.serving.site import BoundedSite
from api_exporter.telemetry.process import register_access_metrics

COUNT_INTERVAL = 60.0

MAX_CLIENTS = 50
"""The maximum number of addresses with log lines of their own."""

_log = Logger()


class Rejections:
    """A log of rejections: the first in a minute at once, their number at its end."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self._timer: IDelayedCall | None = None

    def add(self, address: str, error: str) -> None:
        if address not in self._counts and len(self._counts) >= MAX_CLIENTS:
            address = "other addresses"
        if not self._counts[address]:
            _log.warn(
                "rejected {client}: {error}", client=address or "a client", error=error
            )
        self._counts[address] += 1
        if self._timer is None:
            self._timer = self._clock.callLater(COUNT_INTERVAL, self._log_counts)

    def _log_counts(self) -> None:
        self._timer = None
        counts, self._counts = self._counts, Counter()
        for address, count in counts.items():
            if count > 1:
                _log.warn(
                    "rejected {client}: {count} times in one minute",
                    client=address or "a client",
                    count=count,
                )

    def stop(self) -> None:
        """Log the counts that are not logged yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._log_counts()


class ProtectedSite(BoundedSite):
    """The HTTP server with access control.

    The order is: response headers, authentication, authorization.
    """

    def __init__(
        self,
        resource: IResource,
        reactor: IReactorTime,
        access: AccessControl,
        *,
        max_connections: int,
        registry: CollectorRegistry,
    ) -> None:
        super().__init__(resource, reactor, max_connections)
        self._access = access
        if access.tls is not None:
            self.encrypt = self._encrypt
        self._rejections = Rejections(reactor)
        self._count_rejection = register_access_metrics(
            registry,
            is_valid=lambda: access.is_valid,
            loaded_at=lambda: access.loaded_at,
        )

    def stopFactory(self) -> None:
        super().stopFactory()
        self._rejections.stop()

    def getResourceFor(self, request: Request) -> IResource:
        """Return the page or a refusal; a 503 of a full server comes first."""
        found = super().getResourceFor(request)
        self._set_headers(request)
        assert isinstance(request, BodilessRequest)
        if found is self.full_page:
            return found
        if not self._access.challenges:
            request.accounts = ALL_ACCOUNTS
            return found
        return _DeferredPage(Deferred.fromCoroutine(self._admit(request, found)))

    def record_rejection(self, address: str, why: str) -> None:
        self._rejections.add(address, why)
        self._count_rejection()

    def _encrypt(self, factory: IProtocolFactory) -> IProtocolFactory:
        from api_exporter.access.tls import ConnectionCreator, encrypted  # noqa: PLC0415

        assert self._access.web is not None
        creator = ConnectionCreator(self._access.web, self.record_rejection)
        return encrypted(creator, factory)

    def _set_headers(self, request: Request) -> None:
        """Set the headers of every response; a page may set stricter ones."""
        request.setHeader(b"Server", b"api-exporter")  # Twisted's names its version
        forbid_caching(request)
        if self._access.web is not None:
            for name, value in self._access.web().headers.items():
                request.setHeader(name, value)

    async def _admit(self, request: BodilessRequest, page: IResource) -> IResource:
        # A health probe must not wait behind guesses of passwords.
        is_probe = self._authorize(request, None) == "status_only"
        try:
            allowed = await self._access.authenticate(request, may_wait=not is_probe)
        except QueueFull:
            if is_probe:
                return _StatusOnlyPage(page)
            request.setHeader(b"Retry-After", b"5")
            return ErrorPage(503, "Too many passwords are being checked: retry later.")
        decision = self._authorize(request, allowed)
        given = request.requestHeaders.hasHeader(b"authorization")
        if allowed is None and (given or decision == "unauthorized"):
            why = "wrong password or token" if given else "no password or token"
            self.record_rejection(client_host(request), why)
        match decision:
            case "status_only":
                return _StatusOnlyPage(page)
            case "unauthorized":
                headers = request.responseHeaders
                headers.setRawHeaders(b"WWW-Authenticate", self._access.challenges)
                return ErrorPage(401, "This page requires a password or a token.")
            case "forbidden":
                return ErrorPage(
                    403, "This token gives access to single accounts only."
                )
            case "not_found":
                return ErrorPage(404, ACCOUNT_NOT_FOUND)
            case "full":
                # WEB_OPEN_PATHS shows its pages in full without authentication.
                request.accounts = ALL_ACCOUNTS if allowed is None else allowed
                return page

    def _authorize(self, request: Request, allowed: Accounts | None) -> Decision:
        path, metrics_path = _path(request), self._access.metrics_path
        decision: Decision = "full"
        if path in self._access.open_paths:
            return decision
        arguments = request.args or {}
        for account in arguments.get(b"account") or [None]:
            decision = authorize(
                allowed,
                path,
                None if account is None else account.decode("latin-1"),
                metrics_path=metrics_path,
                has_group=b"group" in arguments,
            )
            if decision != "full":
                break
        return decision


def _path(request: Request) -> str:
    segments: list[bytes] = [*(request.prepath or ()), *(request.postpath or ())]
    return "/" + b"/".join(segments).decode("latin-1")


class _DeferredPage(Resource):
    """A page that is known only after a password comparison."""

    def __init__(self, page: Deferred[IResource]) -> None:
        super().__init__()
        self._page = page

    def render(self, request: Request) -> int:
        disconnects: list[object] = []
        request.notifyFinish().addErrback(disconnects.append)

        def answer(page: IResource) -> None:
            if not disconnects:
                request.render(page)

        def fail(failure: Failure) -> None:
            request.processingFailed(failure)  # this logs it

        self._page.addCallback(answer).addErrback(fail)
        return NOT_DONE_YET


class _StatusOnlyPage(Resource):
    def __init__(self, page: IResource) -> None:
        super().__init__()
        self._page = page

    def render(self, request: Request) -> bytes | int:
        rendered: bytes | int = self._page.render(request)
        if request.code not in {200, 503}:
            return rendered
        assert isinstance(rendered, bytes)
        return b'{"status": "%s"}\n' % (
            b"ok" if request.code == 200 else b"unavailable"
        )
