"""Types that pure modules and modules with input or output share; no logic."""

from collections.abc import Awaitable, Callable, Container
from dataclasses import KW_ONLY, dataclass
from typing import Literal, ParamSpec, Protocol, TypeVar, get_args

from msgspec import Struct

Reason = Literal[
    "auth",
    "forbidden",
    "rate_limited",
    "not_found",
    "redirect",
    "http_4xx",
    "http_5xx",
    "timeout",
    "proxy",
    "proxy_auth",
    "dns",
    "connect",
    "tls",
    "decode",
    "too_large",
    "log_file",
    "internal",
]

Now = Callable[[], float]
"""Seconds since the epoch."""

Jitter = Callable[[], float]
"""A number from [0, 1), as `random.random` returns it."""

REASONS: tuple[Reason, ...] = get_args(Reason)
"""The reasons of failed refreshes: a closed set, because they become a label."""


@dataclass(eq=False)
class UpstreamError(Exception):
    """The failure of a request to the upstream; its text is for log and status page.

    Attributes:
        server_message: the upstream's own message in a refusal, or "".
        retryable: whether a retry within the same refresh may help.
        retry_after: the Retry-After of the response in seconds, or None.
        unsent: whether the request counts as one that the upstream never saw.
        unsupported: whether the upstream lacks the path.
        request_id: identifies the request in the upstream's log, or "".
        cure: what to do about it, "" if the advice of the reason fits.
    """

    reason: Reason
    message: str
    _: KW_ONLY
    retryable: bool = False
    retry_after: float | None = None
    unsent: bool = False
    unsupported: bool = False
    server_message: str = ""
    request_id: str = ""
    cure: str = ""

    def __str__(self) -> str:
        return self.message

    @property
    def text_with_request_id(self) -> str:
        return (
            f"{self} (request id {self.request_id})" if self.request_id else str(self)
        )


class ResponseBody(Struct, frozen=True):
    """The body of a response as it was received; see `netbird.bodies.unpack`.

    Attributes:
        packed: whether the data is gzip.
        limit: the maximum of bytes of unpacked data.
        close: called once when the data is decoded or dropped, to free its memory for
            other bodies.
        mask: replaces secrets in unpacked data: the server knows them.
    """

    data: bytes
    packed: bool = False
    limit: int = 0
    close: Callable[[], object] = lambda: None
    mask: Callable[[bytes], bytes] = bytes


Fetch = Callable[[str, float], Awaitable[ResponseBody]]
"""Returns the body for a path below the upstream's base URL, after retries if needed.

The seconds are those until the next refresh: no retry lasts longer.

Raises UpstreamError, and no other exception except CancelledError.
"""


P = ParamSpec("P")
T = TypeVar("T")


class DelayedCall(Protocol):
    """A call that Twisted makes later."""

    def active(self) -> bool: ...

    def cancel(self) -> None: ...

    def getTime(self) -> float: ...  # noqa: N802 - Twisted's name


class Clock(Protocol):
    """The part of Twisted's reactor that waits."""

    def seconds(self) -> float: ...

    def callLater(  # noqa: N802 - Twisted's name
        self, delay: float, call: Callable[..., object], /, *args: object
    ) -> DelayedCall: ...


class Compute(Protocol):
    """Computes without blocking the event loop; see `refresh.compute`.

    Arguments and result must be immutable: another thread reads them.
    """

    def __call__(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]:
        """Return the function's result or raise its exception."""


class Attempt(Struct, frozen=True, kw_only=True):
    """One request on the wire and its outcome.

    Attributes:
        started: seconds since the epoch.
        number: 1 for the first attempt of a refresh.
        status: the HTTP status, or None without a response.
        received: bytes of the body as sent, packed or not.
        seconds: from the look-up of the host to the end of the body, or to the failure.
        error: None for a successful request.
    """

    path: str
    number: int
    started: float
    status: int | None
    received: int
    seconds: float
    error: UpstreamError | None


Accounts = Container[str]
"""The accounts that a client may see. The default is none."""


class _EveryAccount:
    def __contains__(self, name: object) -> bool:
        return True


ALL_ACCOUNTS: Accounts = _EveryAccount()

NO_ACCOUNTS: Accounts = frozenset()
