"""How long to wait before asking again. Stateless; chance is an argument."""

from collections.abc import Callable

Jitter = Callable[[], float]
"""A number from [0, 1), as `random.random` gives it."""

FIRST = 0.5
"""Seconds: the longest pause after the first attempt; doubled with each further one."""

LONGEST = 10.0
"""Seconds: no pause of our own is longer."""

PATIENCE = 60.0
"""Seconds: an upstream that asks for more is not waited for within a round."""


def pause(failures: int, jitter: Jitter, asked: float | None = None) -> float | None:
    """Seconds to wait after so many failed attempts: exponential, with full jitter.

    Args:
        failures: attempts that have failed so far, at least 1.
        jitter: chance.
        asked: seconds that the upstream asked for (Retry-After): never undercut.

    Returns:
        None where the upstream asks for more than a round's patience.
    """
    if asked is not None and asked > PATIENCE:
        return None
    ceiling = min(LONGEST, FIRST * 2.0 ** min(failures - 1, 16))
    return max(jitter() * ceiling, asked or 0.0)


def spread(period: float, jitter: Jitter) -> float:
    """A period give or take a tenth, so that restarted exporters do not keep step."""
    return period * (0.9 + 0.2 * jitter())
