"""A token bucket: a limit of requests. Time is an argument."""


class TokenBucket:
    """So many requests at once, then one each interval.

    Args:
        interval: seconds in which one request more is granted.
        burst: what may come at once; with 0 nothing ever may.
    """

    def __init__(self, interval: float, burst: int) -> None:
        self._interval = interval
        self._burst = burst
        self._left = float(burst)
        self._at: float | None = None

    def wait(self, now: float) -> float:
        """0 where a request is granted, else seconds until one may be."""
        if self._at is not None and now > self._at:
            gained = (now - self._at) / self._interval
            self._left = min(float(self._burst), self._left + gained)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return self._interval * (1 - self._left)
