"""An outage: the time during which the peers fail. Pure: time is an argument."""

from msgspec import Struct

from api_exporter.ports import Reason, UpstreamError

NEVER = float("inf")

UNSENT_INTERVAL = 5.0
"""Seconds between two requests that do not reach the upstream, so cost it nothing."""

HUNG_INTERVAL = 14.0
"""Seconds from a timeout to the next request."""

FAST_INTERVALS = ((60.0, 3.5), (300.0, 10.0))
"""Seconds of fast failures, and the interval between requests until then."""

_FAST_REASONS: frozenset[Reason] = frozenset(
    {
        *("http_5xx", "http_4xx", "connect", "forbidden", "not_found"),
        *("redirect", "decode"),
    }
)
"""Reasons of failures while a server, or a gateway before it, starts.

NetBird's refusal of the token is not among them: it knows its tokens from its start
on. Nor is a failed login at a proxy: many failed logins may lock its user.
"""


class Outage(Struct):
    """The interval between requests for the peers, and when others may be sent.

    Attributes:
        began: when the first failure ended.
        reason: of the newest failure of the peers.
        others_at: when one other resource may be requested, as a probe.
        only_peers_fail: True if others succeed.
        interval: maximum seconds from a failure of the peers to their next request;
            never if the usual retry delay applies.
        fast_failures_since: when fast failures in a row began, or None.
    """

    began: float
    reason: Reason
    others_at: float
    only_peers_fail: bool = False
    interval: float = NEVER
    fast_failures_since: float | None = None

    def next_interval(self, now: float, error: UpstreamError, seconds: float) -> float:
        """Return the interval after a request that failed after `seconds`."""
        self.interval = NEVER
        if error.unsent or error.reason == "timeout":
            self.fast_failures_since = None
            self.interval = UNSENT_INTERVAL if error.unsent else HUNG_INTERVAL
        elif error.reason in _FAST_REASONS:
            if self.fast_failures_since is None:
                self.fast_failures_since = now
            lasting = now - self.fast_failures_since
            fast = (each for until, each in FAST_INTERVALS if lasting < until)
            self.interval = max(next(fast, NEVER), error.retry_after or 0.0, seconds)
        return self.interval

    def other_succeeded(self, began: float) -> None:
        """Record a good answer for another resource, requested at `began`."""
        if began >= self.began:
            self.only_peers_fail = True

    def other_failed(self, reason: Reason) -> None:
        if reason == self.reason:
            self.only_peers_fail = False
