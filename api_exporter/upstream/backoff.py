"""Backoff: how long to wait before asking again. Stateless; chance is an argument."""

from api_exporter.ports import Jitter

FIRST = 0.5
"""Seconds: the longest pause after the first attempt; doubled with each further one."""

LONGEST = 5.0
"""The longest pause inside a refresh, in seconds: the refresh holds a slot meanwhile.
If the server asks for more, the refresh fails and the schedule waits instead.
"""


def pause(failures: int, jitter: Jitter, asked: float | None = None) -> float:
    """Seconds to wait after so many failed attempts: exponential, with full jitter.

    Args:
        failures: attempts that have failed so far, at least 1.
        jitter: chance.
        asked: seconds that the upstream asked for (Retry-After): never undercut.
    """
    ceiling = min(LONGEST, FIRST * 2.0 ** min(failures - 1, 16))
    return max(jitter() * ceiling, asked or 0.0)


FIRST_AGAIN = 30.0
"""Seconds from the end of a failed round to the next one; doubled with each further."""


def again(
    failures: int, period: float, jitter: Jitter, asked: float | None = None
) -> float:
    """Seconds from the end of a failed round to the next, after so many in a row.

    Args:
        period: seconds: what is usual between two rounds is never exceeded.
        asked: seconds that the server asked for (Retry-After). They replace the first
            wait; the later ones are never shorter.
    """
    if asked is not None and asked > LONGEST:
        later = again(failures - 1, period, jitter) if failures > 1 else 0.0
        return min(max(asked, later), period)
    wanted = FIRST_AGAIN * 2.0 ** min(failures - 1, 16)
    return min(spread(wanted, jitter), period)


def spread(period: float, jitter: Jitter) -> float:
    """A period give or take a tenth, so that restarted exporters do not keep step."""
    return period * (0.9 + 0.2 * jitter())
