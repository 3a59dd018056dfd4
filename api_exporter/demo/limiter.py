"""The upstream's rate limit: a token bucket. Time is an argument."""


class Limiter:
    """Allows `burst` calls at once and `rate_per_minute` in the long run."""

    def __init__(self, rate_per_minute: float, burst: int) -> None:
        self._per_second = rate_per_minute / 60
        self._burst = burst
        self._left = float(burst)
        self._filled_at = 0.0

    def allow(self, at: float) -> bool:
        """Whether a call at this instant passes. One that does not costs nothing."""
        passed = max(0.0, at - self._filled_at)
        self._left = min(self._burst, self._left + passed * self._per_second)
        self._filled_at = at
        if self._left < 1:
            return False
        self._left -= 1
        return True
