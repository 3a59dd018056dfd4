"""The budget of one token: slots, pauses, and an estimate of its rate limit. Pure.

All accounts with the token share a budget; `fair_share` divides it among them.
Times are arguments, in seconds of any clock. NetBird's limiter may allow only six
requests a minute. No response header states the limit or when to retry.
"""

from collections import deque
from typing import Any

from api_exporter.ports import Attempt
from api_exporter.refresh.rate_limits import BURST_FRACTION, RATE_FRACTION, RateLimit
from api_exporter.telemetry.freshness import CONTENDED_PERIOD

SLOTS = 4
"""The maximum of concurrent requests for peers, and the same for all others."""

MIN_PAUSE = 15.0
MAX_PAUSE = 240.0
"""Seconds without requests after a 429 without Retry-After.

The pause doubles with each further 429, from the shortest to the longest. During a
longer Retry-After, one request for the peers is sent in each `MAX_PAUSE`.
"""

MIN_RETRY_AFTER = 1.0
"""Seconds: a shorter Retry-After is ignored."""

ESTIMATE_WINDOW = 120.0
"""A new estimate counts the requests in so many seconds before a 429."""

MIN_RATE = 3.0
"""Requests a minute that the estimate never falls below: the peers and one other."""

QUICK_GROWTH = 1.0
GROWTH = 0.1
"""Requests a minute by which the estimate grows in each minute.

The first estimate rests on few requests, so it also doubles with each good answer
until the next 429. The second estimate grows quickly, all later ones slowly.
"""

MAX_RATE = 240.0
"""Requests a minute above which an estimate limits nothing."""

MAX_SAVED = 10.0
"""The maximum of unused requests that an estimated budget saves for a burst."""

PEERS_FRACTION = 2 / 3
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

    def __init__(self, limit: RateLimit | None = None) -> None:
        self.limit = limit
        self.per_minute: float | None = None
        self.shares: list[Any] = []
        self._free_slots = {True: SLOTS, False: SLOTS}
        self._sent_at: deque[float] = deque()
        self._max_rate = MAX_RATE
        self._growth, self._later_growth = QUICK_GROWTH, GROWTH
        self._is_doubling = limit is None
        self._answered_since_pause = False
        """True if a good answer has come since the newest pause began."""
        self._saved, self._max_saved = 0.0, MAX_SAVED
        self._saved_at = self._full_at = 0.0
        if limit is not None:
            rate, burst = limit
            self.per_minute = self._max_rate = RATE_FRACTION * rate
            # After a 429 the estimate returns to the limit within an hour.
            self._growth = self._later_growth = self._max_rate / 60.0
            self._saved = self._max_saved = max(1.0, BURST_FRACTION * burst)
        self._next_pause = MIN_PAUSE
        self._paused_at = self._paused_until = self._probed_at = float("-inf")
        self._refused_attempt_at = float("-inf")
        """When the newest attempt that got a 429 was sent."""

    def has_free_slot(self, *, peers: bool) -> bool:
        """Return whether a slot is free. Half of the slots are for peers alone."""
        return self._free_slots[peers] > 0

    def is_contended(self, at: float) -> bool:
        """Return whether requests are so scarce at a time that accounts compete."""
        if self.per_minute is None:
            return False
        return self._max_saved <= MAX_SAVED or self._affordable_at(MAX_SAVED) > at

    @property
    def contended_period(self) -> float:
        """Minimum seconds between requests for an account's peers under contention."""
        needed = 60.0 / (PEERS_FRACTION * (self.per_minute or MAX_RATE))
        return max(CONTENDED_PERIOD, len(self.shares) * needed)

    def allowed_at(self, *, peers: bool, reserved: float | None = None) -> float:
        """Return the earliest time of a request, if no other one is sent before it.

        Args:
            reserved: a time at which a request for peers must still be possible.
        """
        allowed_at = self._affordable_at(1.0)
        both = min(2.0, self._max_saved)  # this request, and one for peers
        if reserved is not None and self._affordable_at(both) > reserved:
            allowed_at = self._affordable_at(both)
        paused = self._paused_until
        if peers:
            paused = min(paused, self._probed_at + MAX_PAUSE)
        return max(allowed_at, paused)

    def begin(self, now: float, *, peers: bool) -> None:
        """Count a request that is sent now. `end` must follow."""
        self._free_slots[peers] -= 1
        if peers:
            self._probed_at = now
        self.spend(now)

    def end(self, *, peers: bool) -> None:
        self._free_slots[peers] += 1

    def spend(self, now: float) -> None:
        self._sent_at.append(now)
        while self._sent_at[0] <= now - ESTIMATE_WINDOW:
            self._sent_at.popleft()
        self._refill(now)
        self._saved -= 1

    def observe(self, attempt: Attempt, now: float) -> None:
        """Count a retry, which `begin` has not counted."""
        if attempt.status == 429:
            self._refused_attempt_at = now - attempt.seconds
        if attempt.number > 1 and not attempt.unsent:
            self.spend(now)

    def refund(self, began: float) -> None:
        """Take back a request that did not reach the upstream.

        Args:
            began: when it was counted. If the bucket was full since then, nothing is
                given back to it.
        """
        if self._sent_at:
            self._sent_at.pop()
        if self._full_at <= began:
            self._saved += 1
        if self._probed_at > self._paused_at:  # the probe was not sent
            self._probed_at = self._paused_at - MAX_PAUSE

    def record_answer(self, began: float) -> None:
        """Record a good answer. It ends the pause in which its request was sent."""
        if began > self._paused_at:
            self._next_pause = MIN_PAUSE
            self._paused_until = min(self._paused_until, began)
            if self.per_minute is not None:
                self._answered_since_pause = True
                if self._is_doubling:
                    self.per_minute = min(self._max_rate, 2.0 * self.per_minute)

    def record_429(self, began: float, now: float, retry_after: float | None) -> float:
        """Record a 429, and return the remaining seconds of the pause.

        Args:
            began: when the request was sent. A request from before the pause starts no
                new pause, unless a retry of it was sent in the pause.
            retry_after: the Retry-After of the response in seconds, or None.
        """
        if max(began, self._refused_attempt_at) > self._paused_at:
            if retry_after is None or retry_after < MIN_RETRY_AFTER:
                retry_after = self._next_pause
                self._next_pause = min(2 * self._next_pause, MAX_PAUSE)
            self._paused_at = self._probed_at = now
            self._paused_until = now + retry_after
            self._refill(now)
            if self._answered_since_pause:
                if not self._is_doubling:
                    self._growth = self._later_growth
                    self._max_saved = max(1.0, min(self._max_saved, MAX_SAVED) / 2)
                self._is_doubling = False
            self._answered_since_pause = False
            recent = sum(at > now - ESTIMATE_WINDOW for at in self._sent_at)
            rate, known = 60.0 / ESTIMATE_WINDOW * recent, self.per_minute
            half = min(rate, known or rate) / 2
            self.per_minute = min(self._max_rate, max(MIN_RATE, half))
            self._max_saved = min(self._max_saved, MAX_SAVED)
            # At the end of the pause one request is allowed, for the peers.
            left = 1.0 - min(retry_after, MAX_PAUSE) / 60.0 * self.per_minute
            self._saved = left if known is None else min(self._saved, left)
        return max(0.0, self._paused_until - now)

    def _refill(self, now: float) -> None:
        passed = max(0.0, now - self._saved_at)
        self._saved_at = now
        if self.per_minute is not None:
            grown = self._saved + passed / 60.0 * self.per_minute
            if grown >= self._max_saved:
                grown, self._full_at = self._max_saved, now
            self._saved = grown
            more = passed / 60.0 * self._growth
            self.per_minute = min(self._max_rate, self.per_minute + more)

    def _affordable_at(self, requests: float) -> float:
        if self.per_minute is None:
            return float("-inf")
        return self._saved_at + (requests - self._saved) / self.per_minute * 60.0
