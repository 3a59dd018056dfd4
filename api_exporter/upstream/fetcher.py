"""The fetcher of response bodies: attempts, deadlines, retries and the token.

It does not decode the bodies.
"""

from collections.abc import Callable
from copy import copy
from functools import partial
from http.cookiejar import CookieJar
from typing import Any, cast

from hyperlink import EncodedURL
from treq.client import HTTPClient
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.web.client import ResponseFailed
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IResponse

from api_exporter.clocks import Clocks, log_of
from api_exporter.netbird.bodies import unpack
from api_exporter.netbird.resources import PROBE_PATH
from api_exporter.ports import Attempt, Jitter, ResponseBody, UpstreamError
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.token import Token, TokenSource
from api_exporter.subjects.table import MAX_BODY_BYTES
from api_exporter.upstream import failures
from api_exporter.upstream.body import (
    LONGEST_BODY_BYTES,
    BodyMemory,
    BodyReceiver,
    GzipAgent,
)
from api_exporter.upstream.headers import date
from api_exporter.upstream.masking import mask_records
from api_exporter.upstream.refusal import response_error
from api_exporter.version import this_build

_MAX_ERROR_BYTES = 64 * 1024
"""Bytes of an error's body that are read; a longer body is ignored."""

MAX_CLOCK_DIFFERENCE = 1.0
"""Seconds by which clocks may differ before a warning is logged."""

SILENT_SECONDS = 5.0
"""Seconds without a response header, after which `on_silent` is called."""

MIN_RETRY_SHARE = 0.1
"""The part of the timeout that must be left for a retry."""

MAX_FIRST_DELAY = 0.5
"""The longest wait after the first failed attempt, in seconds; then it doubles."""

MAX_ATTEMPT_DELAY = 5.0
"""The longest wait inside a refresh, in seconds: the refresh occupies a slot meanwhile.
If the server requires more, the refresh fails and the schedule waits instead."""

_USER_AGENT = f"api-exporter/{this_build().version}".encode("ascii")


def attempt_delay(
    failures: int, jitter: Jitter, retry_after: float | None = None
) -> float:
    """Return the seconds before the next attempt: exponential, with full jitter.

    Args:
        failures: attempts that have failed so far, at least 1.
        retry_after: the server's Retry-After in seconds, a lower limit of the wait.
    """
    ceiling = min(MAX_ATTEMPT_DELAY, MAX_FIRST_DELAY * 2.0 ** min(failures - 1, 16))
    return max(jitter() * ceiling, retry_after or 0.0)


class _Address(EncodedURL):
    """An address that is sent unchanged.

    hyperlink rejects a host that is an IPv6 address or has a `_`. And it would parse
    and build the address at each request.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def to_uri(self) -> EncodedURL:
        return self

    def to_text(self, with_password: bool = False) -> str:  # noqa: ARG002 - hyperlink's
        return self._text


class _NoCookies(CookieJar):
    """A cookie jar that stays empty: a cookie may hold bytes that are not text.

    Its type in newer versions of treq, `IndexableCookieJar`, is missing in 24.9.
    """

    def extract_cookies(self, response: object, request: object) -> None:
        """Ignore cookies; see CookieJar."""


class Fetcher:
    """Fetches bodies. It follows no redirect: the token must not reach another host.

    Args:
        agent: repeats a request only if its kept connection had been closed.
        token: called at each attempt; it may return a new token.
        longest_body: bytes, both packed and unpacked.
        body_memory: shared by all clients of the process.
        on_silent: called with the path of a request that has no response header yet.
    """

    log = Logger()

    def __init__(
        self,
        *,
        agent: IAgent,
        token: TokenSource,
        settings: AccountSettings,
        clocks: Clocks,
        on_attempt: Callable[[Attempt], None],
        longest_body: int = LONGEST_BODY_BYTES,
        body_memory: BodyMemory | None = None,
        on_silent: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._clocks_differ = False
        self.log = log_of(clocks.account, self.log)
        self._http = HTTPClient(GzipAgent(agent), cast("Any", _NoCookies()))
        self._token = token
        self._settings = settings
        self._longest_body = longest_body
        self._clock, self._now, self._jitter = clocks.clock, clocks.now, clocks.jitter
        self._on_attempt = on_attempt
        self._body_memory = body_memory or BodyMemory()
        self._on_silent = on_silent

    def fetch(self, path: str, retry_seconds: float) -> Deferred[ResponseBody]:
        """Fetch a body; see `ports.Fetch`. Cancelling the result leaves no timer."""
        return Deferred.fromCoroutine(self._fetch(path, retry_seconds))

    async def _fetch(self, path: str, retry_seconds: float) -> ResponseBody:
        retry_until = self._clock.seconds() + retry_seconds
        deadline = timeout = self._settings.http_timeout
        number, was_sent = 1, False
        token = self._token()
        while True:
            try:
                body = BodyReceiver(self._body_memory)
                data = await self._attempt(path, number, token, deadline, body)
                release = self._body_memory.reserve(len(data))
                mask = partial(mask_records, self._secrets(token))
                return ResponseBody(data, body.packed, body.limit, release, mask)
            except UpstreamError as error:
                was_sent |= not error.unsent
                error.unsent = not was_sent
                used_token, token = token, self._token()
                retryable = error.retryable
                max_attempts = self._settings.api_retry_attempts
                if error.reason == "auth" and used_token.reveal() != token.reveal():
                    # A new token justifies a second attempt.
                    retryable, max_attempts = True, max(2, max_attempts)
                if not retryable or number >= max_attempts:
                    raise
                wait = attempt_delay(number, self._jitter, error.retry_after)
                seconds_left = retry_until - self._clock.seconds() - wait
                deadline = min(timeout, seconds_left)
                if wait > MAX_ATTEMPT_DELAY or deadline < MIN_RETRY_SHARE * timeout:
                    raise
            await deferLater(self._clock, wait)
            number += 1

    async def log_reachability(self) -> None:
        body, problem = BodyReceiver(self._body_memory), ""
        timeout = self._settings.http_timeout
        try:
            await self._attempt(PROBE_PATH, 1, self._token(), timeout, body)
        except UpstreamError as error:
            if body.status is None or error.reason == "proxy_auth":
                problem = str(error)
        url, route = self._settings.upstream_api_url, self._settings.proxy_selection
        if problem:
            text = "cannot reach the NetBird API at {url}, {route}: {error}"
            self.log.warn(text, url=url, route=route, error=problem)
        else:
            text = "reached the NetBird API at {url}, {route}"
            self.log.info(text, url=url, route=route)

    async def _attempt(
        self, path: str, number: int, token: Token, deadline: float, body: BodyReceiver
    ) -> bytes:
        started, begin = self._now(), self._clock.seconds()
        failed = None
        try:
            return await (
                Deferred.fromCoroutine(self._exchange(path, token, body))
                .addTimeout(deadline, self._clock, failures.raise_timeout)
                .addErrback(failures.raise_upstream_error)
            )
        except UpstreamError as error:
            failed = error
            raise
        finally:
            attempt = Attempt(
                path=path,
                number=number,
                started=started,
                status=body.status,
                received=body.received,
                seconds=self._clock.seconds() - begin,
                error=copy(failed),  # without a traceback, and as it is now
            )
            self._on_attempt(attempt)
            self.log.debug(
                "requested {path}",
                path=path,
                attempt=number,
                status=attempt.status,
                bytes=attempt.received,
                duration_seconds=round(attempt.seconds, 3),
                error=failed or "",
            )

    async def _exchange(self, path: str, token: Token, body: BodyReceiver) -> bytes:
        account, sent_at = self._settings.upstream_account or "", self._now()
        query = account and f"{'&' if '?' in path else '?'}account={account}"
        address = f"{self._settings.upstream_api_url}/{path}{query}"
        silence = self._clock.callLater(SILENT_SECONDS, self._on_silent, path)
        try:
            response = await self._http.get(
                _Address(address),
                headers=Headers(
                    {
                        b"Authorization": [b"Bearer " + token.reveal().encode("ascii")],
                        b"User-Agent": [_USER_AGENT],
                        b"Accept": [b"application/json"],
                    }
                ),
                allow_redirects=False,
                unbuffered=True,
                reactor=self._clock,  # type: ignore[arg-type]
            )
        finally:
            if silence.active():
                silence.cancel()
        body.status = response.code
        if response.code != 200:
            raise response_error(
                response.code,
                response.headers,
                await _error_body(response, body),
                url=address,
                now=self._now(),
                secrets=self._secrets(token),
            )
        self._check_clock(date(response.headers), sent_at, self._now())
        limit = min(self._longest_body, MAX_BODY_BYTES.get(path, self._longest_body))
        problem = failures.headers_error(response.headers) if response.length else None
        return await body.receive(response, limit, problem)

    def _secrets(self, token: Token) -> tuple[str, ...]:
        proxy = self._settings.proxy_selection.proxy
        secrets = (token, *(proxy.secrets if proxy else ()))
        return tuple(secret.reveal() for secret in secrets)

    def _check_clock(self, dated_at: float | None, sent_at: float, now: float) -> None:
        """Log once that the clocks differ: this machine's decides when a day ends.

        It is logged again after a response has shown that they agree. The Date of a
        response is in whole seconds.
        """
        if dated_at is None:
            return
        least, most = dated_at - now, dated_at + 1 - sent_at
        ahead = max(least, 0.0) + min(most, 0.0)
        if max(-least, most) <= MAX_CLOCK_DIFFERENCE:
            self._clocks_differ = False
        elif abs(ahead) > MAX_CLOCK_DIFFERENCE and not self._clocks_differ:
            self._clocks_differ = True
            self.log.warn(
                "the clock of the NetBird API is {seconds:.0f} s {direction} this"
                " machine's: the exporter uses this machine's clock",
                seconds=abs(ahead),
                direction="ahead of" if ahead > 0 else "behind",
            )


async def _error_body(response: IResponse, body: BodyReceiver) -> bytes | None:
    """Return the body of an error; None if it cannot be read."""
    try:
        data = await body.receive(response, _MAX_ERROR_BYTES)
        return unpack(ResponseBody(data, body.packed, body.limit))
    except (ResponseFailed, UpstreamError):
        return None
