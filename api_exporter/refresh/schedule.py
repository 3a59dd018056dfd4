"""The schedule of requests. Pure: time is an argument.

Note [The peers are the probe]. A server that is down answers on no path, so the
peers stand for all resources. While they fail, one other resource is requested in
each of their periods. Its answer tells whether only the peers' path fails; if so,
all other resources continue as usual. The first good answer of the peers makes
resources due that were missed or have failed. See docs/decisions/0008.
"""

from collections.abc import Callable

from api_exporter.netbird.resources import ACCESS_LOG
from api_exporter.ports import Jitter, Reason, UpstreamError
from api_exporter.refresh.budget import Budget
from api_exporter.refresh.fair_share import Share
from api_exporter.refresh.life import Lives, ResourceLife
from api_exporter.refresh.outage import NEVER, Outage
from api_exporter.upstream.backoff import FIRST_AGAIN, again, spread

REACH = "reach"
"""The connection test, once before all resources except the first."""

UNSUPPORTED_PERIOD = 3600.0
"""Seconds between requests of a path that the upstream lacks."""


class Schedule:
    """The due times of all resources of an account.

    The first resource, the peers, is due at once. All others are due when it was
    tried, one after the other, and then every period.

    Args:
        lives: in the order of the first refreshes.
        budget: of the token, which other accounts may share.
        changed: called when this account may send a request because of another one.
        reach: True if the connection test is due at the start.
    """

    def __init__(
        self,
        lives: Lives,
        *,
        now: float,
        jitter: Jitter,
        budget: Budget,
        changed: Callable[[], object] = lambda: None,
        reach: bool = False,
    ) -> None:
        self.first = next(iter(lives))
        self._lives = lives
        self._jitter = jitter
        self._budget = budget
        self._share = Share(budget, changed)
        self._reach = ResourceLife(period=0.0, due=now) if reach else None
        for life in lives.values():
            life.due, life.began, life.silent = now, None, False
            life.failures, life.absent, life.rests_until = 0, False, -NEVER
        self._first_began = -NEVER
        self._awaited: float | None = -NEVER
        """Since when others wait for the first (start or pause), or None."""
        self._outage: Outage | None = None
        self._recovered_at = -NEVER

    def take(self, now: float) -> str | None:
        """Return the resource whose refresh starts now, or None."""
        self._claim()
        peers = self._share.turn(now)
        if peers is None:
            return None
        if peers:
            name = self.first
            self._first_began = now
        else:
            others = self._others()
            # The access log comes after all other due resources.
            name = min(
                others, key=lambda n: (max(others[n], now), n == ACCESS_LOG, others[n])
            )
            if self._outage is not None:
                self._outage.others_at = now + self._lives[self.first].period
        life = self._life(name)
        life.due, life.began = None, now
        self._share.begin(now, peers=peers)
        return name

    def wake_at(self) -> float | None:
        """Return when a refresh may start; None before a running one ends."""
        self._claim()
        at = self._share.opens_at()
        return None if at == NEVER else at

    def pass_on(self, now: float) -> bool:
        return self._share.pass_on(now)

    def leave(self, now: float) -> None:
        """Start no more refreshes; running ones may finish."""
        self._share.leave()
        self._share.pass_on(now)

    def refreshed(self, name: str, now: float) -> None:
        """End a successful refresh: the next one is due a period after its start.

        After a refresh longer than half its period, the upstream rests half a period.
        """
        life = self._lives[name]
        began = self._end(name)
        rested = max(began + spread(life.period, self._jitter), now + 0.5 * life.period)
        self._answered(name, began, rested)
        life.absent = False
        if name == self.first:
            self._recovered(now)
        elif self._outage is not None:
            self._outage.read(began)

    def unsupported(self, name: str, now: float) -> None:
        """End a refresh of a path that the upstream lacks.

        The first such answer is retried soon: while a server starts, a gateway may give
        it for all paths.
        """
        life = self._lives[name]
        twice, life.absent = life.absent, True
        wait = spread(UNSUPPORTED_PERIOD if twice else FIRST_AGAIN, self._jitter)
        self._answered(name, self._end(name), now + wait)

    def failed(self, name: str, now: float, error: UpstreamError) -> None:
        """End a failed refresh, unless the reason was a rate limit."""
        life, began = self._lives[name], self._end(name)
        life.failures += 1
        wait = again(life.failures, life.period, self._jitter, error.retry_after)
        life.due = now + wait
        if error.unsent:
            self._budget.unsent(began)
        if name == self.first:
            if error.unsupported or error.reason == "forbidden":
                self._doubt()
            pace = self._fails(now, error.reason).paced(now, error, now - began)
            life.due = min(life.due, now + pace)
            self._tried(began)
        elif began <= self._recovered_at:  # it began in an outage that is over
            life.failures = 0
            life.due = now
        elif self._outage is not None:
            self._outage.failed(error.reason)

    def rate_limited(self, name: str, now: float, asked: float | None) -> float:
        """End a refresh that got a 429; return the seconds of the pause.

        Args:
            asked: the Retry-After of the response in seconds, or None.
        """
        life, began = self._lives[name], self._end(name)
        pause = self._budget.refused(began, now, asked)
        if self._awaited is None and pause and self._outage is None:
            self._awaited = now
        if name == self.first:
            life.due = now  # the pause delays it
            self._fails(now, "rate_limited")
        else:
            life.failures += 1
            life.due = now + again(life.failures, life.period, self._jitter)
            if life.failures == 1:  # it keeps its place in the queue
                life.due = min(self._others().values())
            self.make_due(self.first, now)
        return pause

    def patience(self, name: str, now: float) -> float:
        """Return the seconds that all attempts of a refresh may take together.

        In an outage there are no retries if the peers are requested again soon. Under
        contention there are none, either: they would use the requests of others.
        """
        outage = self._outage
        if outage is not None and (outage.pace < NEVER or self._budget.tight(now)):
            return 0.0
        return self._lives[name].period

    def over(self, name: str, now: float) -> None:
        """End a refresh without a result, if no other method has ended it."""
        life = self._life(name)
        if life.began is not None:
            began = self._end(name)
            if name != REACH:
                life.due = now + life.period
            if name == self.first:
                self._tried(began)

    def skipped(self, name: str, now: float) -> None:
        """End a refresh without a request, because its path is unknown or not due."""
        self._budget.unsent(self._end(name))
        life = self._lives[name]
        life.due = now + spread(life.period, self._jitter)

    def silent(self, name: str) -> None:
        """Note that a running refresh has no response header: another may start."""
        life = self._life(name)
        if life.began is not None and name != self.first:
            life.silent = True

    def make_due(self, name: str, now: float) -> None:
        """Make a resource due now, unless a refresh is running."""
        life = self._lives[name]
        if life.due is not None:
            life.due = min(life.due, now)

    def _life(self, name: str) -> ResourceLife:
        if name == REACH:
            assert self._reach is not None
            return self._reach
        return self._lives[name]

    def _claim(self) -> None:
        """Update the due times that all accounts of the token read."""
        share, peers = self._share, self._lives[self.first]
        share.peers_due = NEVER if peers.due is None else peers.due
        share.peers_began = self._first_began
        silent = any(life.silent for life in self._lives.values())
        if self._reach is not None:
            silent |= self._reach.silent
        share.others_at_once = 2 if silent and self._outage is None else 1
        others = self._others()
        share.last_due = others.pop(ACCESS_LOG, NEVER)
        due = min(others.values(), default=NEVER)
        share.others_due = share.pressing = due
        if REACH in others:
            share.pressing = NEVER
        elif self._awaited is not None:
            share.others_due = share.last_due = share.pressing = NEVER
        elif self._outage is not None and not self._outage.alone:
            share.others_due = max(due, self._outage.others_at)
            share.last_due = max(share.last_due, self._outage.others_at)
            share.pressing = NEVER

    def _others(self) -> dict[str, float]:
        """Return due times by resource; equal times in their first order."""
        if self._reach is not None and self._reach.due is not None:
            return {REACH: self._reach.due}
        return {
            name: max(life.due, life.rests_until)
            for name, life in self._lives.items()
            if name != self.first and life.due is not None
        }

    def _end(self, name: str) -> float:
        self._share.end(peers=name == self.first)
        life = self._life(name)
        began, life.began, life.silent = life.began, None, False
        assert began is not None
        return began

    def _answered(self, name: str, began: float, due: float) -> None:
        life = self._lives[name]
        life.failures, life.due = 0, due
        self._budget.answered(began)
        if name == self.first:
            self._tried(began)

    def _tried(self, began: float) -> None:
        if self._awaited is not None and began > self._awaited:
            self._awaited = None
        elif self._awaited is not None:
            self.make_due(self.first, self._awaited)

    def _fails(self, now: float, reason: Reason) -> Outage:
        if self._outage is None:
            self._outage = Outage(now, reason, others_at=now)
        self._outage.reason = reason
        return self._outage

    def _recovered(self, now: float) -> None:
        if self._outage is None:
            return
        self._outage = None
        self._recovered_at = now
        for name, life in self._lives.items():
            if life.failures:
                self.make_due(name, now)

    def _doubt(self) -> None:
        """Request absent resources again like others: their absence is in doubt."""
        for life in self._lives.values():
            if life.absent:
                life.failures, life.absent = 1, False
