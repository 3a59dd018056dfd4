"""An outage: the time during which the peers fail. Pure: time is an argument."""

from msgspec import Struct

from api_exporter.ports import Reason, UpstreamError

NEVER = float("inf")

UNSENT_PACE = 5.0
"""Seconds between two requests that do not reach the upstream, so cost it nothing."""

HUNG_PACE = 14.0
"""Seconds from a timeout to the next request."""

PACES = ((60.0, 3.5), (300.0, 10.0))
"""Pairs of seconds: until that time of fast failures, the interval between requests."""

_AT_ONCE: frozenset[Reason] = frozenset(
    {
        *("http_5xx", "http_4xx", "connect", "auth", "forbidden", "not_found"),
        *("redirect", "decode"),
    }
)
"""Failures with which a server, or a gateway before it, answers while it starts.

A failed login at a proxy is not among them: many failed logins may lock its user.
"""


class Outage(Struct):
    """The interval between requests for the peers, and when others may be sent.

    Attributes:
        began: when the first failure ended.
        reason: of the newest failure of the peers.
        others_at: when one other resource may be requested, as a probe.
        alone: True if only the peers fail.
        pace: the maximum of seconds from a failure of the peers to their next request;
            never if the usual retry delay applies.
        failing_at_once: when the fast failures in a row began; None if there are none.
    """

    began: float
    reason: Reason
    others_at: float
    alone: bool = False
    pace: float = NEVER
    failing_at_once: float | None = None

    def paced(self, now: float, error: UpstreamError, seconds: float) -> float:
        """Return the pace after a failure; the server rests for as long as it took."""
        self.pace = NEVER
        if error.unsent or error.reason == "timeout":
            self.failing_at_once = None
            self.pace = UNSENT_PACE if error.unsent else HUNG_PACE
        elif error.reason in _AT_ONCE:
            if self.failing_at_once is None:
                self.failing_at_once = now
            lasting = now - self.failing_at_once
            paces = (pace for until, pace in PACES if lasting < until)
            self.pace = max(next(paces, NEVER), error.retry_after or 0.0, seconds)
        return self.pace

    def read(self, began: float) -> None:
        """Record a good answer for another resource, requested at `began`."""
        if began >= self.began:
            self.alone = True

    def failed(self, reason: Reason) -> None:
        if reason == self.reason:
            self.alone = False
