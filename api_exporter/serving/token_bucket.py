"""A token bucket: a rate limit of requests. Time is an argument."""


class TokenBucket:
    """A rate limit with a burst.

    Args:
        interval: seconds after which one more request is granted.
        burst: requests that are granted at once; with 0, none is ever granted.
    """

    def __init__(self, interval: float, burst: int) -> None:
        self._interval = interval
        self._burst = burst
        self._left = float(burst)
        self._at: float | None = None

    def wait(self, now: float) -> float:
        """Return 0 if a request is granted, else the seconds until one may be."""
        if self._at is not None and now > self._at:
            gained = (now - self._at) / self._interval
            self._left = min(float(self._burst), self._left + gained)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return self._interval * (1 - self._left)
