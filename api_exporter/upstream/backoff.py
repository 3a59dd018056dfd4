"""Backoff: the wait before a retry. Pure: random numbers are an argument."""

from api_exporter.ports import Jitter

MAX_FIRST_DELAY = 0.5
"""The longest wait after the first failed attempt, in seconds; then it doubles."""

MAX_ATTEMPT_DELAY = 5.0
"""The longest wait inside a refresh, in seconds: the refresh occupies a slot meanwhile.
If the server requires more, the refresh fails and the schedule waits instead."""


def attempt_delay(
    failures: int, jitter: Jitter, retry_after: float | None = None
) -> float:
    """Return the seconds before the next attempt: exponential, with full jitter.

    Args:
        failures: attempts that have failed so far, at least 1.
        retry_after: the server's Retry-After in seconds, a lower limit of the wait.
    """
    ceiling = min(MAX_ATTEMPT_DELAY, MAX_FIRST_DELAY * 2.0 ** min(failures - 1, 16))
    return max(jitter() * ceiling, retry_after or 0.0)


def with_jitter(period: float, jitter: Jitter) -> float:
    """Return a period changed by up to a tenth: exporters must not refresh in step."""
    return period * (0.9 + 0.2 * jitter())
