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
    """The due requests of one account, as its schedule sets them.

    Args:
        on_available: called when a request becomes possible because of another account.

    Attributes:
        peers_due: when its peers are due; never while a request for them runs.
        peers_began: when the newest request for its peers began.
        others_due: the earliest due time of its other resources.
        access_log_due: the due time of its access log, which comes after all others.
        max_running_others: the maximum of its concurrent requests for other resources.
        others_overdue_at: when another resource is overdue, so that the peers of all
            accounts wait; never while it must wait for the peers itself.
    """

    def __init__(self, budget: Budget, on_available: Callable[[], object]) -> None:
        self.peers_due = self.others_due = NEVER
        self.access_log_due = self.others_overdue_at = NEVER
        self.peers_began = -NEVER
        self.on_available = on_available
        self._budget = budget
        self.max_running_others = 1
        self._running = {True: 0, False: 0}
        budget.shares.append(self)

    def remove(self) -> None:
        self._budget.shares.remove(self)

    def begin(self, now: float, *, peers: bool) -> None:
        self._running[peers] += 1
        self._budget.begin(now, peers=peers)

    def end(self, *, peers: bool) -> None:
        self._running[peers] -= 1
        self._budget.end(peers=peers)

    def allowed_at(self) -> float:
        earliest = _earliest(self._budget)
        return min(self.peers_at(earliest), self.others_at(earliest))

    def next_is_for_peers(self, now: float) -> bool | None:
        """Return True for a request for peers, False for another, None for none."""
        request = _next_request(self._budget, now)
        if request.share is not self or request.at > now:
            return None
        return request.peers

    def notify_next(self, now: float) -> bool:
        """Notify the account that is next; return whether that is another account."""
        if self._budget.shares == [self]:
            return False
        share = _next_request(self._budget, now).share
        if share is None or share is self:
            return False
        share.on_available()
        return True

    def peers_at(self, earliest: "_Earliest") -> float:
        at = max(self.peers_due, earliest.peers) if not self._running[True] else NEVER
        if earliest.others_overdue_at <= at and self._budget.is_contended(at):
            return max(at, self.peers_began + earliest.contended_period)
        return at

    def others_at(self, earliest: "_Earliest") -> float:
        if self._running[False] >= self.max_running_others:
            return NEVER
        return max(min(self.others_due, self.access_log_due), earliest.others)


class _Earliest(Struct, frozen=True):
    """The times at which the budget allows requests, the same for all accounts.

    Attributes:
        peers: when slots and budget allow a request for peers.
        others: when they allow another request, and after it one for peers in time.
        others_overdue_at: when the first other resource is overdue.
        contended_period: seconds between an account's requests for peers from then on.
    """

    peers: float
    others: float
    others_overdue_at: float = NEVER
    contended_period: float = 0.0


def _earliest(budget: Budget) -> _Earliest:
    peers = others = NEVER
    if budget.has_free_slot(peers=True):
        peers = budget.allowed_at(peers=True)
    if budget.per_minute is None:
        if budget.has_free_slot(peers=False):
            others = budget.allowed_at(peers=False)
        return _Earliest(peers, others)
    period = budget.contended_period
    others_overdue_at, reserved = NEVER, NEVER
    shares: list[Share] = budget.shares
    for share in shares:
        others_overdue_at = min(others_overdue_at, share.others_overdue_at)
        needed = share.peers_began + period
        if share.peers_due != NEVER:
            needed = max(needed, share.peers_due)
        reserved = min(reserved, needed)
    if budget.has_free_slot(peers=False):
        others = budget.allowed_at(peers=False, reserved=reserved)
    return _Earliest(peers, others, others_overdue_at, period)


class _NextRequest(Struct, frozen=True):
    """The next request of a token; without a share if none may be sent."""

    at: float = NEVER
    share: Share | None = None
    peers: bool = False


def _next_request(budget: Budget, now: float) -> _NextRequest:
    """Return the next request by Note [Whose turn]."""
    earliest = _earliest(budget)
    best = _NextRequest()
    best_rank: tuple[float, ...] = (NEVER,)
    shares: list[Share] = budget.shares
    for share in shares:
        at = share.peers_at(earliest)
        rank = (max(at, now), 0, share.peers_due)
        if rank < best_rank:
            best, best_rank = _NextRequest(at, share, peers=True), rank
        at = share.others_at(earliest)
        is_low_priority = share.others_due > now  # at most the access log is due
        due = share.others_due
        if is_low_priority:
            due = min(share.access_log_due, due)
        rank = (max(at, now), 1 + is_low_priority, due)
        if rank < best_rank:
            best, best_rank = _NextRequest(at, share), rank
    return best
