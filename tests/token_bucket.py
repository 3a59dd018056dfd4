"""A token bucket: a rate limit of requests. Its caller passes the time."""


class TokenBucket:
    """A rate limit with a burst.

    Args:
        interval: seconds after which one more request is granted.
        burst: requests that are granted at once; with 0, none is ever granted.
    """

    def __init__(self, interval: float, burst: int) -> None:
        self._interval = interval
        self._burst = burst
        self._tokens = float(burst)
        self._updated_at: float | None = None

    def take(self, now: float) -> float:
        """Take a token and return 0; without one, return the seconds until the next."""
        if self._updated_at is not None and now > self._updated_at:
            new_tokens = (now - self._updated_at) / self._interval
            self._tokens = min(float(self._burst), self._tokens + new_tokens)
        self._updated_at = now
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return self._interval * (1 - self._tokens)
