"""Asks everybody who comes what the door wants, before a page is shown."""

from collections.abc import Callable
from math import ceil
from secrets import token_bytes

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure
from twisted.web.resource import IResource, Resource
from twisted.web.server import NOT_DONE_YET, Request

from api_exporter.door.checks import Busy, Checks, Compare
from api_exporter.door.front import Front
from api_exporter.door.passwords import Attempt, Passwords
from api_exporter.door.rules import PULSE, Credential, Verdict
from api_exporter.door.shown import Bearer, Password, Shown, shown
from api_exporter.door.strangers import Strangers
from api_exporter.serving.authorization import ALL
from api_exporter.serving.channel import BodilessRequest
from api_exporter.serving.page import NO_ACCOUNT, Refusal

REALM = b'realm="api-exporter"'


class Guard:
    """The decisions about one request, in order: headers, limit, credential, rules.

    Args:
        compare: compares a password with a hash.
        count: is told of each request without a right credential, and of each
            connection with a client certificate that is not taken.
    """

    def __init__(
        self,
        front: Front,
        clock: IReactorTime,
        compare: Compare,
        count: Callable[[], None],
    ) -> None:
        self._front = front
        self._clock = clock
        self._count = count
        self._passwords = Passwords(token_bytes(32))
        self._checks = Checks(self._passwords, compare)
        self._strangers = Strangers(clock)

    def dress(self, request: Request) -> None:
        """Give an answer its headers; a page may have stricter ones of its own."""
        request.setHeader(b"Server", b"api-exporter")  # Twisted would tell its version
        if self._front.web is not None:
            for name, value in self._front.web().config.headers:
                request.setHeader(name, value)

    def admit(self, request: BodilessRequest, found: IResource) -> IResource:
        """What is shown in place of what was found, which may be just that."""
        if _path(request) not in PULSE and (wait := self._wait()):
            request.setHeader(b"Retry-After", b"%d" % max(1, ceil(wait)))
            return Refusal(429, "Too many requests: try again later.")
        if not self._asks():
            request.accounts = ALL
            return found
        given = shown(request.requestHeaders.getRawHeaders(b"authorization"))
        credential = self._credential(given)
        if not isinstance(credential, Attempt):
            return self._ruled(request, found, credential, given)
        if self._checks.busy and self._verdict(request, None) == "bare":
            return _Bare(found)  # a supervisor does not wait behind guesses
        page = self._checks.right(credential, _address(request)).addCallbacks(
            lambda right: self._ruled(
                request, found, _PASSWORD if right else None, given
            ),
            lambda failure: _busy(request, failure),
        )
        return _Waiting(page)

    def refused(self, address: str, why: str) -> None:
        """Count and tell of somebody who may not come in."""
        self._strangers.refused(address, why)
        self._count()

    def stop(self) -> None:
        """No more is asked."""
        self._strangers.stop()

    def _wait(self) -> float:
        limiter = None if self._front.web is None else self._front.web().limiter
        return 0.0 if limiter is None else limiter.wait(self._clock.seconds())

    def _asks(self) -> bool:
        web = self._front.web
        return self._front.tokens is not None or (
            web is not None and bool(web().config.users)
        )

    def _credential(self, given: Shown | None) -> Credential | Attempt | None:
        """What was shown, where it is right, or has to be compared."""
        if isinstance(given, Bearer) and self._front.tokens is not None:
            return self._front.tokens().whose(given.token)
        if not isinstance(given, Password) or self._front.web is None:
            return None
        config = self._front.web().config
        if not config.users:
            return None
        attempt = self._passwords.attempt(
            config.users, config.decoy, given.user, given.password
        )
        known = self._passwords.known(attempt)
        if known is None:
            return attempt
        return _PASSWORD if known else None

    def _verdict(
        self, request: BodilessRequest, credential: Credential | None
    ) -> Verdict:
        verdict: Verdict = "unauthorized"
        for account in (request.args or {}).get(b"account") or [None]:
            name = None if account is None else account.decode("latin-1")
            verdict = self._front.rules.may(credential, _path(request), name)
            if verdict != "whole":
                break
        return verdict

    def _ruled(
        self,
        request: BodilessRequest,
        found: IResource,
        credential: Credential | None,
        given: Shown | None,
    ) -> IResource:
        verdict = self._verdict(request, credential)
        if credential is None and (given is not None or verdict == "unauthorized"):
            why = "no password or token" if given is None else "a wrong one was shown"
            self.refused(_address(request), why)
        match verdict:
            case "bare":
                return _Bare(found)
            case "unauthorized":
                self._challenge(request)
                return Refusal(401, "A password or a token is needed.")
            case "forbidden":
                return Refusal(403, "This token is for single accounts.")
            case "not_found":
                return Refusal(404, NO_ACCOUNT)
            case "whole":
                # A stranger is shown a whole page where WEB_OPEN_PATHS names it.
                request.accounts = ALL if credential is None else credential.accounts
                return found

    def _challenge(self, request: Request) -> None:
        """Say which schemes there are (RFC 9110, 11.6.1)."""
        web, schemes = self._front.web, []
        if web is not None and web().config.users:
            schemes.append(b"Basic " + REALM + b', charset="UTF-8"')
        if self._front.tokens is not None:
            schemes.append(b"Bearer " + REALM)
        request.responseHeaders.setRawHeaders(b"WWW-Authenticate", schemes)


_PASSWORD = Credential(accounts=ALL)


def _path(request: Request) -> str:
    """Decoded, as the pages were looked up."""
    segments: list[bytes] = [*(request.prepath or ()), *(request.postpath or ())]
    return "/" + b"/".join(segments).decode("latin-1")


def _busy(request: Request, failure: Failure) -> IResource:
    failure.trap(Busy)
    request.setHeader(b"Retry-After", b"5")
    return Refusal(503, "Too many passwords are being checked: try again.")


def _address(request: Request) -> str:
    return str(getattr(request.getClientAddress(), "host", ""))


class _Waiting(Resource):
    """Another page, as soon as it is known which."""

    def __init__(self, page: Deferred[IResource]) -> None:
        super().__init__()
        self._page = page

    def render(self, request: Request) -> int:
        gone: list[object] = []
        request.notifyFinish().addErrback(gone.append)

        def answer(page: IResource) -> None:
            if not gone:
                request.render(page)

        def failed(failure: Failure) -> None:
            request.processingFailed(failure)  # it logs it

        self._page.addCallback(answer).addErrback(failed)
        return NOT_DONE_YET


class _Bare(Resource):
    """A page's status, and nothing that it says."""

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
