"""The order in which accounts with one token send requests. Pure.

Note [Whose turn]. Requests for the peers of any account come before all others.
Among requests of one kind, the one that is overdue for the longest time is first.
Under contention, while another resource of any account is overdue, an account waits
longer between requests for its peers. Otherwise the peers of many accounts would
use up the budget.

An account that sets its alarm notifies the account that is next. So an account
needs no alarm while it waits for a slot or for another account.
"""

from collections.abc import Callable

from msgspec import Struct

from api_exporter.refresh.budget import Budget
from api_exporter.refresh.outage import NEVER


class Share:
    """The due requests of one account, and when it may send them.

    Its schedule sets the attributes.

    Args:
        changed: called when this account may send a request because of another one.

    Attributes:
        peers_due: when its peers are due; never while a request for them runs.
        peers_began: when the newest request for its peers began.
        others_due: the earliest due time of its other resources.
        last_due: the due time of its access log, which comes after all others.
        others_at_once: the maximum of its concurrent requests for other resources.
        pressing: since when, or from when on, a resource is overdue for which the
            peers of all accounts wait; never if it has to wait for the peers.
    """

    def __init__(self, budget: Budget, changed: Callable[[], object]) -> None:
        self.peers_due = self.others_due = self.last_due = self.pressing = NEVER
        self.peers_began = -NEVER
        self.changed = changed
        self._budget = budget
        self.others_at_once = 1
        self._running = {True: 0, False: 0}
        budget.shares.append(self)

    def leave(self) -> None:
        self._budget.shares.remove(self)

    def begin(self, now: float, *, peers: bool) -> None:
        """Count a request that is sent now. `end` must follow."""
        self._running[peers] += 1
        self._budget.begin(now, peers=peers)

    def end(self, *, peers: bool) -> None:
        self._running[peers] -= 1
        self._budget.end(peers=peers)

    def opens_at(self) -> float:
        opening = _opening(self._budget)
        return min(self.peers_at(opening), self.others_at(opening))

    def turn(self, now: float) -> bool | None:
        """Return True for a request for peers, False for another, None for none."""
        next_one = _next(self._budget, now)
        if next_one.share is not self or next_one.at > now:
            return None
        return next_one.peers

    def pass_on(self, now: float) -> bool:
        """Notify the account that is next; return whether that is another account."""
        if self._budget.shares == [self]:
            return False
        share = _next(self._budget, now).share
        if share is None or share is self:
            return False
        share.changed()
        return True

    def peers_at(self, opening: "_Opening") -> float:
        at = max(self.peers_due, opening.peers) if not self._running[True] else NEVER
        if opening.pressing <= at and self._budget.tight(at):
            return max(at, self.peers_began + opening.squeezed_period)
        return at

    def others_at(self, opening: "_Opening") -> float:
        if self._running[False] >= self.others_at_once:
            return NEVER
        return max(min(self.others_due, self.last_due), opening.others)


class _Opening(Struct, frozen=True):
    """The times at which the budget allows requests, the same for all accounts.

    Attributes:
        peers: when slots and budget allow a request for peers.
        others: when they allow another request and the next one for peers.
        pressing: since when, or from when on, another resource is overdue.
        squeezed_period: minimum seconds between requests for an account's peers then.
    """

    peers: float
    others: float
    pressing: float = NEVER
    squeezed_period: float = 0.0


def _opening(budget: Budget) -> _Opening:
    peers = budget.opens_at(peers=True) if budget.room(peers=True) else NEVER
    if budget.per_minute is None:
        others = budget.opens_at(peers=False) if budget.room(peers=False) else NEVER
        return _Opening(peers, others)
    period = budget.squeezed_period
    pressing, reserved = NEVER, NEVER
    shares: list[Share] = budget.shares
    for share in shares:
        pressing = min(pressing, share.pressing)
        needed = share.peers_began + period
        if share.peers_due != NEVER:
            needed = max(needed, share.peers_due)
        reserved = min(reserved, needed)
    others = NEVER
    if budget.room(peers=False):
        others = budget.opens_at(peers=False, reserved=reserved)
    return _Opening(peers, others, pressing, period)


class _Next(Struct, frozen=True):
    """The next request of a token; without a share if none may be sent."""

    at: float = NEVER
    share: Share | None = None
    peers: bool = False


def _next(budget: Budget, now: float) -> _Next:
    """Return the next request by Note [Whose turn]."""
    opening = _opening(budget)
    found = _Next()
    best: tuple[float, ...] = (NEVER,)
    shares: list[Share] = budget.shares
    for share in shares:
        at = share.peers_at(opening)
        rank = (max(at, now), 0, share.peers_due)
        if rank < best:
            found, best = _Next(at, share, peers=True), rank
        at = share.others_at(opening)
        last = share.others_due > now
        due = min(share.last_due, share.others_due) if last else share.others_due
        rank = (max(at, now), 1 + last, due)
        if rank < best:
            found, best = _Next(at, share), rank
    return found
