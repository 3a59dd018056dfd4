"""The `rate_limit` of requests: a token bucket, and Go's durations."""

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_PART = r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)"


class TokenBucket:
    """One bucket for everybody: so many requests at once, then one each interval.

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


def parse_duration(text: str) -> float:
    """Seconds from `1m30s` or `0`, as Go writes them; raises ValueError."""
    if text == "0":
        return 0.0
    if not re.fullmatch(f"({_PART})+", text, re.ASCII):
        raise ValueError
    return sum(
        float(number) * _UNITS[re.sub("[µμ]", "u", unit)]
        for number, unit in re.findall(_PART, text)
    )
