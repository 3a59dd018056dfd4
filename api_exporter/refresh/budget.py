"""What one token may ask for: slots, pauses, and an estimate of its quota.

All accounts with the token share it; what each of them may do is in `fair_share`.
Pure: time is an argument, in seconds of any clock. Facts: the upstream's limiter may
allow six requests a minute, and says in no header how many or when to come back.
"""

from collections import deque
from typing import Any

from api_exporter.ports import Attempt
from api_exporter.refresh.rate_limits import KEPT, KEPT_BURST, Limit
from api_exporter.telemetry.freshness import SQUEEZED_PERIOD

SLOTS = 4
"""Requests for peers that may be under way at once; and as many for anything else."""

SHORTEST_PAUSE = 15.0
LONGEST_PAUSE = 240.0
"""Seconds without any request after a 429 that asks for nothing; doubling from one to
the other while they follow each other. A longer pause is broken that often."""

SHORTEST_ASKED = 1.0
"""Seconds: whoever asks for less (Retry-After) asks for nothing."""

LATELY = 120.0
"""Seconds whose requests tell how many were too many."""

LEAST = 3.0
"""Requests a minute that are never undercut: the peers, and something beside them."""

QUICK_GROWTH = 1.0
GROWTH = 0.1
"""By how many requests a minute the estimate grows in a minute. The first estimate is
made of next to nothing: it also doubles with each good answer, until a request is
refused. The second one grows quickly, every later one slowly."""

MOST = 240.0
"""Requests a minute that are as good as no bound."""

SAVED = 10.0
"""Requests that may come at once after a time of few, once there is an estimate."""

PEERS_PART = 2 / 3
"""Of what is granted, that is for peers while anything else is overdue."""


class Budget:
    """Decides when a request may be made.

    Where the limit is known, requests come from a bucket of our own that holds less,
    so that none is refused: nine tenths of the rate, half of the burst. The rest is for
    what else uses the token, and for a start soon after another one.

    Args:
        limit: of the token, where it is known.

    Attributes:
        per_minute: requests that we allow ourselves; None until one was refused, where
            the limit is not known.
        shares: of the accounts that have the token; `fair_share` keeps and reads them.
    """

    def __init__(self, limit: Limit | None = None) -> None:
        self.per_minute: float | None = None
        self.shares: list[Any] = []
        self._free = {True: SLOTS, False: SLOTS}
        self._asked: deque[float] = deque()
        self._most, self._growth, self._later_growth = MOST, QUICK_GROWTH, GROWTH
        self._doubles = limit is None
        self._granted = False
        """Whether a request was granted since the newest pause."""
        self._saved, self._most_saved = 0.0, SAVED
        self._saved_at = self._full_at = 0.0
        if limit is not None:
            rate, burst = limit
            self.per_minute = self._most = KEPT * rate
            # All of it again within an hour.
            self._growth = self._later_growth = self._most / 60.0
            self._saved = self._most_saved = max(1.0, KEPT_BURST * burst)
        self._pause = SHORTEST_PAUSE
        self._paused_at = self._paused_until = self._broken_at = float("-inf")
        self._refused_began = float("-inf")
        """When the newest attempt was made that got a 429."""

    def room(self, *, peers: bool) -> bool:
        """Whether a slot is free. Half of them are for peers alone."""
        return self._free[peers] > 0

    def tight(self, at: float) -> bool:
        """Whether requests at a time have to be weighed against each other."""
        if self.per_minute is None:
            return False
        return self._most_saved <= SAVED or self._affordable_at(SAVED) > at

    @property
    def squeezed_period(self) -> float:
        """Seconds between two requests for an account's peers, at least, while it is
        tight and others are overdue: so there is something left for these.
        """
        needed = 60.0 / (PEERS_PART * (self.per_minute or MOST))
        return max(SQUEEZED_PERIOD, len(self.shares) * needed)

    def opens_at(self, *, peers: bool, reserved: float | None = None) -> float:
        """From when on a request may be made, if nothing happens until then.

        Args:
            reserved: when the next request for the peers has to be affordable, too.
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
        """A request is made; `end` must follow."""
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
        """Count what `begin` has not: further attempts of a request."""
        if attempt.status == 429:
            self._refused_began = now - attempt.seconds
        if attempt.number > 1 and not attempt.unsent:
            self.spend(now)

    def unsent(self, began: float) -> None:
        """A request has not reached the upstream: it does not count.

        Args:
            began: when it was made. Where the bucket was full since then, time has
                given the request back.
        """
        if self._asked:
            self._asked.pop()
        if self._full_at <= began:
            self._saved += 1
        if self._broken_at > self._paused_at:  # so the pause has not been broken
            self._broken_at = self._paused_at - LONGEST_PAUSE

    def answered(self, began: float) -> None:
        """A good answer came; to a request made in a pause, it ends the pause."""
        if began > self._paused_at:
            self._pause = SHORTEST_PAUSE
            self._paused_until = min(self._paused_until, began)
            if self.per_minute is not None:
                self._granted = True
                if self._doubles:
                    self.per_minute = min(self._most, 2.0 * self.per_minute)

    def refused(self, began: float, now: float, asked: float | None) -> float:
        """A 429 came; returns for how many seconds we are silent.

        Args:
            began: when the request was made. One that was under way when the pause
                began tells nothing new, but for a further attempt after it.
            asked: seconds that it asked for, if it said.
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
            # One request is affordable when the pause is over: that for the peers.
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
