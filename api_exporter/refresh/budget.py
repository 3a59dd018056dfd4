"""The budget of one token: slots, pauses and a token bucket. Pure: time is an argument.

All accounts with the token share a budget, which starts their requests. NetBird's
limiter may allow only six requests a minute. No response header states the limit or
when to retry.

Note [Whose turn]. Of the requests that are due, the one that is late by the most of its
intervals is first. So intervals that do not fit into the budget grow by about the same
factor. Peers are ahead by one interval, and an access log comes last.

Note [Not a scanner]. A token with a weak role is refused most paths, and an old server
lacks many. A burst of refusals of different paths looks like a scan: CrowdSec, which
NetBird documents for its own server, blocks an address with more than ten in its
bucket, which loses one each ten seconds. So a path without a good answer is requested
only while this bucket, which is like CrowdSec's, has room for its refusal.
"""

from collections import deque
from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from api_exporter.netbird.resource_state import CONTENDED_INTERVAL
from api_exporter.ports import Attempt, Clock, DelayedCall

NEVER = float("inf")

RateLimit = tuple[int, int]
"""The allowed requests a minute, and the allowed burst of requests."""

RATE_FRACTION = 0.9
"""The fraction of the stated rate for all requests."""

BURST_FRACTION = 0.5
"""The fraction of the stated burst that one start may use; a restart uses the rest."""

STRICTEST = 6.0
"""Requests a minute that NetBird allows where its limiter is on and not configured."""

SLOTS = 4
"""The maximum of concurrent requests for peers, and the same for all others."""

MIN_PAUSE, MAX_PAUSE = 15.0, 240.0
"""Seconds without requests after a 429 without Retry-After; each further one doubles
them. During a longer Retry-After, the peers are requested once in each `MAX_PAUSE`."""

MIN_RETRY_AFTER = 1.0
"""Seconds: a shorter Retry-After is ignored."""

MIN_RATE, MAX_RATE = 3.0, 240.0
"""Limits of an estimate, in requests a minute. The first estimate is STRICTEST."""

DECREASE = 0.75
"""The part of an estimate that is left by a 429 after good answers."""

QUICK_GROWTH, GROWTH = 1.0, 0.05
"""Requests a minute by which an estimate grows each minute, before and after that."""

SAVED = 10.0
"""The maximum of unused requests that an estimated budget saves for a burst."""

PEERS_LEAD, PEERS_WEIGHT = 1.0, 4.0
"""Peers count as later than they are: by one interval, and each one counts fourfold."""

FIRST, LAST = 1e9, -1e9
"""The leads of requests that come before or after all others."""


class Candidate(Struct, frozen=True):
    """A request that an account may send from a time on.

    Attributes:
        interval: the interval of its resource, in seconds; 0 without one.
        lead: the intervals by which it counts as later than it is.
    """

    name: str
    due: float
    interval: float
    peers: bool = False
    lead: float = 0.0

    def urgency(self, now: float) -> float:
        """Return the intervals of its resource by which it is late.

        Peers count as later, and some requests come before or after all others.
        """
        lead, weight = self.lead, 1.0 / (self.interval or 1.0)
        if self.peers:
            lead = PEERS_LEAD
            weight = PEERS_WEIGHT / max(self.interval, CONTENDED_INTERVAL)
        return lead + weight * (now - self.due)


class Requester(Protocol):
    """An account that sends requests with the token."""

    def candidates(self, now: float) -> Iterator[Candidate]:
        """Yield the requests that may be sent when they are due: at most two."""

    def start(self, name: str, now: float) -> None:
        """Start a request; `Budget.end` follows."""


class Budget:
    """The requests that one token may send.

    If the limit is stated, a token bucket allows less than the limit, so that NetBird
    refuses no request. The rest is for other users of the token, and for a restart.

    Attributes:
        per_minute: allowed requests a minute; None before the first 429 if the limit
            is unknown.
    """

    def __init__(self, limit: RateLimit | None = None) -> None:
        self.limit = limit
        self.per_minute: float | None = None
        self._offers: dict[Requester, tuple[Candidate, ...]] = {}
        """The requests of each account with the token, in the order of the accounts."""
        self._free_slots = {True: SLOTS, False: SLOTS}
        self._saved = self._max_saved = SAVED
        self._growth = QUICK_GROWTH
        self._answered = False
        """True if a good answer has come since the newest pause began."""
        if limit is not None:
            self.per_minute = RATE_FRACTION * limit[0]
            self._saved = self._max_saved = max(1.0, BURST_FRACTION * limit[1])
            self._growth = 0.0
        self._saved_at = 0.0
        self._settled_at = -NEVER
        """When the bucket was last full, or emptied by a 429."""
        self._next_pause = MIN_PAUSE
        self._paused_at = self._paused_until = self._probed_at = -NEVER
        self._refused_at = -NEVER
        self._alarm: DelayedCall | None = None

    def offer(self, requester: Requester, clock: Clock) -> None:
        """Start the requests of a requester in their turn, instead of its former ones.

        A request does not start at once: inside the answer of the one before it would
        open another connection.
        """
        now = clock.seconds()
        self._offers[requester] = tuple(requester.candidates(now))
        self._wake(now, clock)

    def withdraw(self, requester: Requester, clock: Clock) -> None:
        self._offers.pop(requester, None)
        self._wake(clock.seconds(), clock)

    def _wake(self, at: float, clock: Clock) -> None:
        if self._alarm is not None and self._alarm.active():
            if self._alarm.getTime() <= at:
                return
            self._alarm.cancel()
        if at < NEVER and self._offers:
            delay = max(0.0, at - clock.seconds())
            self._alarm = clock.callLater(delay, self._start_due, clock)

    def _start_due(self, clock: Clock) -> None:
        now = clock.seconds()
        while self.start_next(now):
            pass
        self._wake(self.next_at(now), clock)

    def next_at(self, now: float) -> float:
        """Return when the next request may start; NEVER if one must end first."""
        return self._next(now)[0]

    def start_next(self, now: float) -> bool:
        """Start the request whose turn it is; return False without one."""
        while (best := self._next(now)[1]) is not None:
            requester, one = best
            self._offers[requester] = offers = tuple(requester.candidates(now))
            if one in offers:  # otherwise something has changed since it was offered
                self._begin(one, now)
                requester.start(one.name, now)
                self._offers[requester] = tuple(requester.candidates(now))
                return True
        return False

    def _begin(self, one: Candidate, now: float) -> None:
        self._free_slots[one.peers] -= 1
        if one.peers:
            self._probed_at = now
        self._spend(now)

    def _next(self, now: float) -> tuple[float, tuple[Requester, Candidate] | None]:
        """Return when a request may start, and the one that starts if that is now."""
        allowed = {peers: self._allowed_at(peers=peers) for peers in (True, False)}
        soonest, best, most = NEVER, None, -NEVER
        for requester, offers in self._offers.items():
            for one in offers:
                due, at = one.due, allowed[one.peers]
                if due > now or at > now:
                    if due < soonest and at < soonest:
                        soonest = max(due, at)
                elif (urgency := one.urgency(now)) > most:
                    best, most = (requester, one), urgency
        if best is None:
            return soonest, None
        affordable_at = self._affordable_at()
        return affordable_at, best if affordable_at <= now else None

    def end(self, *, peers: bool) -> None:
        self._free_slots[peers] += 1

    def refund(self, began: float) -> None:
        """Take back a request that did not reach the upstream.

        A bucket that was full since it began, or emptied by a 429, does not miss it.
        """
        if began >= self._settled_at:
            self._saved += 1
        if self._probed_at > self._paused_at:  # the probe was not sent
            self._probed_at = self._paused_at - MAX_PAUSE

    def observe(self, attempt: Attempt, now: float) -> None:
        """Count a retry, and note a refusal, which ends the refresh later."""
        if attempt.status == 429:
            self._refused_at = now - attempt.seconds
        if attempt.number > 1 and not (attempt.error and attempt.error.unsent):
            self._spend(now)

    def record_answer(self, began: float) -> None:
        """Record a good answer. It ends the pause in which its request was sent."""
        if began > self._paused_at:
            self._next_pause = MIN_PAUSE
            self._paused_until = min(self._paused_until, began)
            self._answered = True

    def record_429(self, began: float, now: float, retry_after: float | None) -> float:
        """Record a 429, and return the remaining seconds of the pause.

        Args:
            began: when the request was sent. A request from before the pause starts no
                new pause, unless a retry of it was sent in the pause.
        """
        if max(began, self._refused_at) > self._paused_at:
            if retry_after is None or retry_after < MIN_RETRY_AFTER:
                retry_after = self._next_pause
                self._next_pause = min(2 * self._next_pause, MAX_PAUSE)
            until = now + retry_after
            if began <= self._paused_at:  # of a retry that was sent in the pause
                until = max(until, self._paused_until)
            self._paused_at = self._probed_at = now
            self._paused_until = until
            self._refill(now)
            if self.limit is None and self.per_minute is not None and self._answered:
                self.per_minute = max(MIN_RATE, DECREASE * self.per_minute)
                self._growth = GROWTH
            self._answered = False
            self.per_minute = self.per_minute or STRICTEST
            # At the end of the pause one request is allowed, for the peers.
            self._saved = 1.0 - min(retry_after, MAX_PAUSE) / 60.0 * self.per_minute
            self._settled_at = now
        return max(0.0, self._paused_until - now)

    def _allowed_at(self, *, peers: bool) -> float:
        if not self._free_slots[peers]:
            return NEVER
        if peers:
            return min(self._paused_until, self._probed_at + MAX_PAUSE)
        return self._paused_until

    def _affordable_at(self) -> float:
        if self.per_minute is None:
            return -NEVER
        return self._saved_at + (1.0 - self._saved) / self.per_minute * 60.0

    def _spend(self, now: float) -> None:
        self._refill(now)
        self._saved -= 1

    def _refill(self, now: float) -> None:
        self._saved = self._saved_by(now)
        if self._saved == self._max_saved:
            self._settled_at = now
        if self.per_minute is not None:
            grown = self._growth * max(0.0, now - self._saved_at) / 60.0
            self.per_minute = min(MAX_RATE, self.per_minute + grown)
        self._saved_at = max(now, self._saved_at)

    def _saved_by(self, now: float) -> float:
        if self.per_minute is None:
            return self._max_saved
        passed = max(0.0, now - self._saved_at)
        return min(self._max_saved, self._saved + passed / 60.0 * self.per_minute)


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
        """Return when a path that may be refused may be requested."""
        self._leak(now)
        excess = len(self._paths) - MAX_REFUSED
        if excess < 0 or path in self._paths:
            return -NEVER
        return self._leaks_at + excess * LEAK_SECONDS

    def _leak(self, now: float) -> None:
        while self._paths and self._leaks_at <= now:
            self._paths.popleft()
            self._leaks_at += LEAK_SECONDS
