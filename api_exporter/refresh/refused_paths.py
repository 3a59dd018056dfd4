"""The limit of refused requests to one server. Pure: time is an argument.

Note [Not a scanner]. A token with a weak role is refused most paths, and an old server
lacks many. A burst of refusals of different paths looks like a scan: CrowdSec, which
NetBird documents for its own server, blocks an address with more than ten in its
bucket, which loses one each ten seconds. So a path without a good answer is requested
only while this bucket, which is like CrowdSec's, has room for its refusal.
"""

from collections import deque
from math import inf

from api_exporter.ports import Attempt

MAX_REFUSED = 9
"""Different refused paths at once. One below the limit of CrowdSec remains free."""

LEAK_SECONDS = 10.0
"""Seconds after which the bucket loses the oldest path."""


_REFUSALS = frozenset(range(400, 500)) - {429}


class RefusedPaths:
    """The newest refused paths of one server, for all accounts that read it."""

    def __init__(self) -> None:
        self._paths: deque[str] = deque()
        self._leaks_at = 0.0

    def observe(self, attempt: Attempt, now: float) -> None:
        """Add the path of a refused attempt, unless it is in the bucket."""
        if attempt.status not in _REFUSALS:
            return
        self._leak(now)
        path = attempt.path.partition("?")[0]
        if path not in self._paths:
            if not self._paths:
                self._leaks_at = now + LEAK_SECONDS
            self._paths.append(path)

    def allowed_at(self, path: str, now: float) -> float:
        """Return when a path may be requested that may be refused; -inf for at once."""
        self._leak(now)
        excess = len(self._paths) - MAX_REFUSED
        if excess < 0 or path in self._paths:
            return -inf
        return self._leaks_at + excess * LEAK_SECONDS

    def _leak(self, now: float) -> None:
        while self._paths and self._leaks_at <= now:
            self._paths.popleft()
            self._leaks_at += LEAK_SECONDS
