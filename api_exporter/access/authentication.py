"""Authentication of each request before its page is rendered."""

from math import ceil

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolFactory, IReactorTime
from twisted.python.failure import Failure
from twisted.web.resource import IResource, Resource
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.access.authorization import PROBE_PATHS, Decision, authorize
from api_exporter.access.configuration import AccessControl
from api_exporter.access.credentials import Credentials, parse
from api_exporter.access.methods import Allowed, QueueFull, client_address
from api_exporter.access.rejections import Rejections
from api_exporter.serving.channel import BodilessRequest
from api_exporter.serving.page import ACCOUNT_NOT_FOUND, ErrorPage, forbid_caching
from api_exporter.serving.site import Frontend
from api_exporter.serving.visibility import ALL_ACCOUNTS
from api_exporter.telemetry.process import (
    register_reload_gauge,
    register_unauthorized_counter,
)


class ProtectedSite(Frontend):
    """The HTTP server with access control.

    The order is: response headers, rate limit, authentication, authorization.
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
        if access.encrypted:
            self.encrypt = self._encrypt
        self._clock = reactor
        self._rejections = Rejections(reactor)
        register_reload_gauge(registry, lambda: access.is_valid)
        self._count_rejection = register_unauthorized_counter(registry)

    def stopFactory(self) -> None:
        super().stopFactory()
        self._rejections.stop()

    def getResourceFor(self, request: Request) -> IResource:
        """Return the page or a refusal; a 503 of a full server comes first."""
        found = super().getResourceFor(request)
        self._set_headers(request)
        assert isinstance(request, BodilessRequest)
        return found if found is self.full_page else self._admit(request, found)

    def warn_exposed(self) -> None:
        if not self._access.protected:
            super().warn_exposed()

    def reload(self) -> None:
        self._access.reload()

    def record_rejection(self, address: str, why: str) -> None:
        self._rejections.add(address, why)
        self._count_rejection()

    def _encrypt(self, factory: IProtocolFactory) -> IProtocolFactory:
        from api_exporter.access.plain_http import encrypted  # noqa: PLC0415
        from api_exporter.access.tls_context import ConnectionCreator  # noqa: PLC0415

        assert self._access.web is not None
        creator = ConnectionCreator(self._access.web, self.record_rejection)
        return encrypted(creator, factory)

    def _set_headers(self, request: Request) -> None:
        """Set the headers of every response; a page may set stricter ones."""
        request.setHeader(b"Server", b"api-exporter")  # Twisted's names its version
        forbid_caching(request)
        if self._access.web is not None:
            for name, value in self._access.web().headers:
                request.setHeader(name, value)

    def _admit(self, request: BodilessRequest, page: IResource) -> IResource:
        if _path(request) not in PROBE_PATHS and (wait_seconds := self._take_token()):
            request.setHeader(b"Retry-After", b"%d" % max(1, ceil(wait_seconds)))
            return ErrorPage(429, "Too many requests: retry later.")
        if not any(
            method.is_required and not method.in_handshake
            for method in self._access.methods
        ):
            request.accounts = ALL_ACCOUNTS
            return page
        credentials = parse(request.requestHeaders.getRawHeaders(b"authorization"))
        allowed = self._authenticate(request, credentials)
        if not isinstance(allowed, Deferred):
            return self._respond(allowed, request, page, credentials)
        return _DeferredPage(
            allowed.addCallbacks(
                self._respond,
                self._refuse_busy,
                callbackArgs=(request, page, credentials),
                errbackArgs=(request, page),
            )
        )

    def _take_token(self) -> float:
        bucket = None if self._access.web is None else self._access.web().bucket
        return 0.0 if bucket is None else bucket.take(self._clock.seconds())

    def _authenticate(
        self, request: BodilessRequest, credentials: Credentials | None
    ) -> Allowed | Deferred[Allowed]:
        # A health probe must not wait behind guesses of passwords.
        may_wait = self._authorize(request, None) != "status_only"
        for method in self._access.methods:
            found = method.authenticate(request, credentials, may_wait=may_wait)
            if found is not None:
                return found
        return None

    def _authorize(self, request: BodilessRequest, allowed: Allowed) -> Decision:
        path, metrics_path = _path(request), self._access.metrics_path
        decision: Decision = "full"
        if any(method.is_open(path) for method in self._access.methods):
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

    def _respond(
        self,
        allowed: Allowed,
        request: BodilessRequest,
        page: IResource,
        credentials: Credentials | None,
    ) -> IResource:
        decision = self._authorize(request, allowed)
        if allowed is None and (credentials or decision == "unauthorized"):
            why = "wrong password or token" if credentials else "no password or token"
            self.record_rejection(client_address(request), why)
        match decision:
            case "status_only":
                return _StatusOnlyPage(page)
            case "unauthorized":
                offered = filter(None, (m.challenge for m in self._access.methods))
                headers = request.responseHeaders
                headers.setRawHeaders(b"WWW-Authenticate", list(offered))
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

    def _refuse_busy(
        self, failure: Failure, request: BodilessRequest, page: IResource
    ) -> IResource:
        failure.trap(QueueFull)
        if self._authorize(request, None) == "status_only":
            return _StatusOnlyPage(page)
        request.setHeader(b"Retry-After", b"5")
        return ErrorPage(503, "Too many passwords are being checked: retry later.")


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
