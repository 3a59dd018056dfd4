"""One account's share of its token's budget, and whose turn it is. Pure.

Note [Whose turn]. The peers of all accounts come before everything else of any, and of
the same kind the one that is overdue for the longest time. While requests have to be
weighed against each other and anything else is overdue, an account's peers come again
only after a while: else the peers of many accounts would leave nothing.

Whoever goes to sleep tells the account whose turn it is, or will be next. So one that
has to wait, for a slot or for another account, needs no alarm.
"""

from collections.abc import Callable

from msgspec import Struct

from api_exporter.refresh.budget import Budget
from api_exporter.refresh.outage import NEVER


class Share:
    """What an account wants, as its schedule says, and what of it may be done now.

    Args:
        changed: called when it may be its turn, which another account has brought
            about.

    Attributes:
        peers_due: when its peers are due; never while they are asked for.
        peers_began: when they were asked for last.
        others_due: when anything else may be asked for at the earliest.
        last_due: the same of the access log, which comes after everything else.
        others_at_once: requests for anything but the peers that may be under way.
        pressing: from when on the peers of all make room for that; never where it has
            to wait for the peers anyhow.
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
        """A request is made; `end` must follow."""
        self._running[peers] += 1
        self._budget.begin(now, peers=peers)

    def end(self, *, peers: bool) -> None:
        self._running[peers] -= 1
        self._budget.end(peers=peers)

    def opens_at(self) -> float:
        """When anything may be asked for, if no other account goes first."""
        opening = _opening(self._budget)
        return min(self.peers_at(opening), self.others_at(opening))

    def turn(self, now: float) -> bool | None:
        """Whether its peers may be asked for, or anything else; None for nothing."""
        next_one = _next(self._budget, now)
        if next_one.share is not self or next_one.at > now:
            return None
        return next_one.peers

    def pass_on(self, now: float) -> bool:
        """Whether it is another account's turn, or will be next, which is told so."""
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
    """What holds for all accounts of a token alike.

    Attributes:
        peers: when slots and budget allow a request for peers.
        others: when they allow any other one, with the next one for peers in reserve.
        pressing: since when anything else is overdue, or from when on it will be.
        squeezed_period: seconds between requests for an account's peers while it is.
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
    """Who may go next, when, and with what; nobody, never, where all are under way."""

    at: float = NEVER
    share: Share | None = None
    peers: bool = False


def _next(budget: Budget, now: float) -> _Next:
    """Of those who may go now, see Note [Whose turn]; else the earliest."""
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
