"""The budget of one token: slots, pauses, and an estimate of its rate limit. Pure.

All accounts with the token share a budget; `fair_share` divides it among them.
Times are arguments, in seconds of any clock. NetBird's limiter may allow only six
requests a minute. No response header states the limit or when to retry.
"""

from collections import deque
from typing import Any

from api_exporter.ports import Attempt
from api_exporter.refresh.rate_limits import KEPT, KEPT_BURST, Limit
from api_exporter.telemetry.freshness import SQUEEZED_PERIOD

SLOTS = 4
"""The maximum of concurrent requests for peers, and of all other requests."""

SHORTEST_PAUSE = 15.0
LONGEST_PAUSE = 240.0
"""Seconds without requests after a 429 without Retry-After.

The pause doubles with each further 429, from the shortest to the longest. During a
longer Retry-After, one request for the peers is sent in each `LONGEST_PAUSE`.
"""

SHORTEST_ASKED = 1.0
"""Seconds: a shorter Retry-After is ignored."""

LATELY = 120.0
"""Seconds before a 429 whose requests the new estimate is computed from."""

LEAST = 3.0
"""Requests a minute that the estimate never falls below: the peers and one other."""

QUICK_GROWTH = 1.0
GROWTH = 0.1
"""Requests a minute by which the estimate grows in each minute.

The first estimate rests on few requests, so it also doubles with each good answer
until the next 429. The second estimate grows quickly, all later ones slowly.
"""

MOST = 240.0
"""Requests a minute above which an estimate limits nothing."""

SAVED = 10.0
"""The maximum of unused requests that an estimated budget saves for a burst."""

PEERS_PART = 2 / 3
"""The part of the rate that is for peers while another resource is overdue."""


class Budget:
    """The requests that one token may send.

    If the limit is stated, a token bucket allows less than the limit, so that NetBird
    refuses no request: nine tenths of the rate, half of the burst. The rest is for
    other users of the token, and for a restart.

    Args:
        limit: the stated limit of the token; None if it is unknown.

    Attributes:
        per_minute: allowed requests a minute; None before the first 429 if the limit
            is unknown.
        shares: the shares of the accounts with the token; `fair_share` maintains them.
    """

    def __init__(self, limit: Limit | None = None) -> None:
        self.per_minute: float | None = None
        self.shares: list[Any] = []
        self._free = {True: SLOTS, False: SLOTS}
        self._asked: deque[float] = deque()
        self._most, self._growth, self._later_growth = MOST, QUICK_GROWTH, GROWTH
        self._doubles = limit is None
        self._granted = False
        """True if a good answer has come since the newest pause began."""
        self._saved, self._most_saved = 0.0, SAVED
        self._saved_at = self._full_at = 0.0
        if limit is not None:
            rate, burst = limit
            self.per_minute = self._most = KEPT * rate
            # After a 429 the estimate returns to the limit within an hour.
            self._growth = self._later_growth = self._most / 60.0
            self._saved = self._most_saved = max(1.0, KEPT_BURST * burst)
        self._pause = SHORTEST_PAUSE
        self._paused_at = self._paused_until = self._broken_at = float("-inf")
        self._refused_began = float("-inf")
        """When the newest attempt that got a 429 was sent."""

    def room(self, *, peers: bool) -> bool:
        """Return whether a slot is free. Half of the slots are for peers alone."""
        return self._free[peers] > 0

    def tight(self, at: float) -> bool:
        """Return whether requests are so scarce at a time that accounts compete."""
        if self.per_minute is None:
            return False
        return self._most_saved <= SAVED or self._affordable_at(SAVED) > at

    @property
    def squeezed_period(self) -> float:
        """Minimum seconds between two requests for an account's peers.

        It applies under contention, and leaves requests for overdue resources.
        """
        needed = 60.0 / (PEERS_PART * (self.per_minute or MOST))
        return max(SQUEEZED_PERIOD, len(self.shares) * needed)

    def opens_at(self, *, peers: bool, reserved: float | None = None) -> float:
        """Return the earliest time of a request, if no other one is sent before it.

        Args:
            reserved: when the budget must also allow a request for peers.
        """
        opens = self._affordable_at(1.0)
        both = min(2.0, self._most_saved)
        if reserved is not None and self._affordable_at(both) > reserved:
            opens = self._affordable_at(both)
        paused = self._paused_until
        if peers:
            paused = min(paused, self._broken_at + LONGEST_PAUSE)
        return max(opens, paused)

    def begin(self, now: float, *, peers: bool) -> None:
        """Count a request that is sent now. `end` must follow."""
        self._free[peers] -= 1
        if peers and now < self._paused_until:
            self._broken_at = now
        self.spend(now)

    def end(self, *, peers: bool) -> None:
        self._free[peers] += 1

    def spend(self, now: float) -> None:
        self._asked.append(now)
        while self._asked[0] <= now - LATELY:
            self._asked.popleft()
        self._save(now)
        self._saved -= 1

    def observe(self, attempt: Attempt, now: float) -> None:
        """Count a retry, which `begin` has not counted."""
        if attempt.status == 429:
            self._refused_began = now - attempt.seconds
        if attempt.number > 1 and not attempt.unsent:
            self.spend(now)

    def unsent(self, began: float) -> None:
        """Take back a request that did not reach the upstream.

        Args:
            began: when it was counted. If the bucket was full since then, the request
                is not added to it again.
        """
        if self._asked:
            self._asked.pop()
        if self._full_at <= began:
            self._saved += 1
        if self._broken_at > self._paused_at:  # so the pause has not been broken
            self._broken_at = self._paused_at - LONGEST_PAUSE

    def answered(self, began: float) -> None:
        """Record a good answer. It ends the pause in which its request was sent."""
        if began > self._paused_at:
            self._pause = SHORTEST_PAUSE
            self._paused_until = min(self._paused_until, began)
            if self.per_minute is not None:
                self._granted = True
                if self._doubles:
                    self.per_minute = min(self._most, 2.0 * self.per_minute)

    def refused(self, began: float, now: float, asked: float | None) -> float:
        """Record a 429, and return the remaining seconds of the pause.

        Args:
            began: when the request was sent. A request from before the pause starts no
                new pause, unless a retry of it was sent in the pause.
            asked: the Retry-After of the response in seconds, or None.
        """
        if max(began, self._refused_began) > self._paused_at:
            if asked is None or asked < SHORTEST_ASKED:
                asked = self._pause
                self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._paused_at = self._broken_at = now
            self._paused_until = now + asked
            self._save(now)
            if self._granted:
                if not self._doubles:
                    self._growth = self._later_growth
                    self._most_saved = max(1.0, min(self._most_saved, SAVED) / 2)
                self._doubles = False
            self._granted = False
            lately = 60.0 / LATELY * sum(at > now - LATELY for at in self._asked)
            known, granted = self.per_minute, min(lately, self.per_minute or lately)
            self.per_minute = min(self._most, max(LEAST, granted / 2))
            self._most_saved = min(self._most_saved, SAVED)
            # At the end of the pause one request is allowed, for the peers.
            left = 1.0 - min(asked, LONGEST_PAUSE) / 60.0 * self.per_minute
            self._saved = left if known is None else min(self._saved, left)
        return max(0.0, self._paused_until - now)

    def _save(self, now: float) -> None:
        passed = max(0.0, now - self._saved_at)
        self._saved_at = now
        if self.per_minute is not None:
            grown = self._saved + passed / 60.0 * self.per_minute
            if grown >= self._most_saved:
                grown, self._full_at = self._most_saved, now
            self._saved = grown
            more = passed / 60.0 * self._growth
            self.per_minute = min(self._most, self.per_minute + more)

    def _affordable_at(self, requests: float) -> float:
        if self.per_minute is None:
            return float("-inf")
        return self._saved_at + (requests - self._saved) / self.per_minute * 60.0
