"""The time for which the peers fail. Pure: time is an argument."""

from msgspec import Struct

from api_exporter.ports import Reason, UpstreamError

NEVER = float("inf")

UNSENT_PACE = 5.0
"""Seconds between two requests that cost the upstream nothing: it never sees them."""

HUNG_PACE = 14.0
"""Seconds after a request that was given up."""

PACES = ((60.0, 3.5), (300.0, 10.0))
"""Of requests that fail at once: until so many seconds, those between two of them."""

_AT_ONCE: frozenset[Reason] = frozenset(
    {
        *("http_5xx", "http_4xx", "connect", "auth", "forbidden", "not_found"),
        *("redirect", "decode"),
    }
)
"""What a server, or a gateway before it, answers at once while it starts. A proxy's
login is not among them: many refusals in a row may lock its user out.
"""


class Outage(Struct):
    """How soon the peers are asked for again, and whether anything else may be.

    Attributes:
        began: when the first failure ended.
        reason: of the newest failure of the peers.
        others_at: when one of the others may be asked for, as a probe.
        alone: whether it is the peers' path alone that is broken.
        pace: seconds from the newest failure of the peers to their next request, at
            most; never where the usual ones will do.
        failing_at_once: since when they fail so, if they do.
    """

    began: float
    reason: Reason
    others_at: float
    alone: bool = False
    pace: float = NEVER
    failing_at_once: float | None = None

    def paced(self, now: float, error: UpstreamError, seconds: float) -> float:
        """The pace after a failure of the peers.

        Args:
            seconds: duration of the failed refresh: the server rests as long.
        """
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
        """Another resource could be read, which was asked for at such a time."""
        if began >= self.began:
            self.alone = True

    def failed(self, reason: Reason) -> None:
        if reason == self.reason:
            self.alone = False
