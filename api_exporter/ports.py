"""The seams between the pure half and the world: what crosses them, and no logic."""

from collections.abc import Awaitable, Callable
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
"""Why a refresh can fail: a closed set, because it becomes a label."""


class UpstreamError(Exception):
    """Why the upstream's answer cannot be used, in words for a person.

    Attributes:
        reason: the same in one word of a closed set.
        retryable: whether asking again within the same round may help.
        retry_after: seconds that the upstream asked us to wait, if it did.
        unsent: whether the upstream never saw the request.
        unsupported: this upstream does not have the path at all.
        said: the upstream's own words, where it refused the request.
        request_id: by which the upstream's own log has the request; "" where it has
            not told one.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        unsent: bool = False,
        unsupported: bool = False,
        said: str = "",
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.retryable = retryable
        self.retry_after = retry_after
        self.unsent = unsent
        self.unsupported = unsupported
        self.said = said
        self.request_id = request_id

    @property
    def traced(self) -> str:
        """The message, with what finds the request in the upstream's log."""
        return (
            f"{self} (request id {self.request_id})" if self.request_id else str(self)
        )

    def kept(self) -> "UpstreamError":
        """The same as a state to keep: a traceback would keep bodies alive."""
        self.__context__ = None
        return self.with_traceback(None)


class Body(Struct, frozen=True):
    """The body of a response as it was received; see `netbird.unpacking`.

    Attributes:
        packed: whether the data is gzip.
        limit: bytes that packed data may have when it is unpacked.
        close: called once when the data is decoded or dropped: other bodies may wait
            for its memory.
    """

    data: bytes
    packed: bool = False
    limit: int = 0
    close: Callable[[], object] = lambda: None


Fetch = Callable[[str, float], Awaitable[Body]]
"""Given a path below the upstream's base URL, its body; retries included.

The seconds are those until it will be asked for again: no retry lasts longer.

Raises UpstreamError, and nothing else but the cancellation of what awaits it."""


P = ParamSpec("P")
T = TypeVar("T")


class Compute(Protocol):
    """Computes without blocking the event loop; see `refresh.compute`.

    Arguments and result must be immutable: another thread reads them.
    """

    def __call__(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]:
        """Return or raise what the function does."""
        ...


class Attempt(Struct, frozen=True, kw_only=True):
    """One request on the wire, as it went.

    Attributes:
        started: seconds since the epoch.
        number: 1 for the first of a round.
        status: the HTTP status, or None where no answer came.
        received: bytes of the body as sent, packed or not.
        seconds: from looking up the host to the end of the body, or to the failure.
        error: what was wrong with it, "" if nothing.
        reason: the same as one of a closed set; None where the request went well.
        unsent: whether the upstream never saw it.
        request_id: by which the upstream's log has it, where it failed and told one.
    """

    path: str
    number: int
    started: float
    status: int | None
    received: int
    seconds: float
    error: str = ""
    reason: Reason | None = None
    unsent: bool = False
    request_id: str = ""
