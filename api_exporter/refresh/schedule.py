"""When to ask for what. Pure: time is an argument.

Note [The peers are the probe]. A server that is down answers nothing on any path:
asking for everything tells no more than asking for the peers. So while they fail, one
other resource is asked for at each of their periods, which tells whether it is their
path alone that is broken; then all others go on as usual. The first good answer makes
all due that was missed or has failed. See docs/decisions/0008.
"""

from collections.abc import Callable, Mapping

from api_exporter.netbird.resources import ACCESS_LOG
from api_exporter.ports import Reason, UpstreamError
from api_exporter.refresh.budget import Budget
from api_exporter.refresh.fair_share import Share
from api_exporter.refresh.outage import NEVER, Outage
from api_exporter.upstream.backoff import FIRST_AGAIN, Jitter, again, spread

REACH = "reach"
"""What is taken once, before all others: to see whether the upstream can be reached."""

UNSUPPORTED_PERIOD = 3600.0
"""Seconds until a path that the upstream did not have is asked for again."""


class Schedule:
    """The due times of all resources.

    The first resource, the peers, is due at once; all others when it has been tried,
    one after the other, and from then on every period.

    Args:
        periods: seconds by resource name, in the order in which they are first read.
        budget: of the token, which others may use as well.
        changed: called when it may be this account's turn, which another one has
            brought about.
        reach: whether REACH is to be taken.
    """

    def __init__(
        self,
        periods: Mapping[str, float],
        *,
        now: float,
        jitter: Jitter,
        budget: Budget,
        changed: Callable[[], object] = lambda: None,
        reach: bool = False,
    ) -> None:
        self.first = next(iter(periods))
        self._periods = periods
        self._jitter = jitter
        self._budget = budget
        self._share = Share(budget, changed)
        self._due = dict.fromkeys((*periods, REACH) if reach else periods, now)
        self._running: dict[str, float] = {}
        self._silent: set[str] = set()
        self._failures = dict.fromkeys(periods, 0)
        self._unsupported: set[str] = set()
        self._rests: dict[str, float] = {}
        self._first_began = -NEVER
        self._awaited: float | None = -NEVER
        """Since when all others wait for the first: from the start, after a pause."""
        self._outage: Outage | None = None
        self._recovered_at = -NEVER

    def take(self, now: float) -> str | None:
        """The resource to refresh now, if any; the first one before all others."""
        self._claim()
        peers = self._share.turn(now)
        if peers is None:
            return None
        if peers:
            name = self.first
            self._first_began = now
        else:
            others = self._others()
            # The access log comes after everything else that is due.
            name = min(
                others, key=lambda n: (max(others[n], now), n == ACCESS_LOG, others[n])
            )
            if self._outage is not None:
                self._outage.others_at = now + self._periods[self.first]
        del self._due[name]
        self._running[name] = now
        self._share.begin(now, peers=peers)
        return name

    def wake_at(self) -> float | None:
        """When there may be something to take; None before a running refresh ends."""
        self._claim()
        at = self._share.opens_at()
        return None if at == NEVER else at

    def pass_on(self, now: float) -> bool:
        """Whether it is another account's turn, which is told so."""
        return self._share.pass_on(now)

    def leave(self, now: float) -> None:
        """Nothing will be taken any more; what is under way may still end."""
        self._share.leave()
        self._share.pass_on(now)

    def refreshed(self, name: str, now: float) -> None:
        """A refresh ended well: the next one is a period after its start.

        After one that took longer than half its period the upstream gets half a
        period's rest.
        """
        period = self._periods[name]
        began = self._end(name)
        rested = max(began + spread(period, self._jitter), now + 0.5 * period)
        self._answered(name, began, rested)
        self._unsupported.discard(name)
        if name == self.first:
            self._recovered(now)
        elif self._outage is not None:
            self._outage.read(began)

    def unsupported(self, name: str, now: float) -> None:
        """The upstream does not have this resource, which it has to say twice.

        What answers for it while it starts says so of everything.
        """
        twice = name in self._unsupported
        self._unsupported.add(name)
        wait = spread(UNSUPPORTED_PERIOD if twice else FIRST_AGAIN, self._jitter)
        self._answered(name, self._end(name), now + wait)

    def failed(self, name: str, now: float, error: UpstreamError) -> None:
        """A refresh failed, for another reason than a limit."""
        began = self._end(name)
        self._failures[name] += 1
        period = self._periods[name]
        wait = again(self._failures[name], period, self._jitter, error.retry_after)
        self._due[name] = now + wait
        if error.unsent:
            self._budget.unsent(began)
        if name == self.first:
            if error.unsupported or error.reason == "forbidden":
                self._doubt()
            pace = self._fails(now, error.reason).paced(now, error, now - began)
            self._due[name] = min(self._due[name], now + pace)
            self._tried(began)
        elif began <= self._recovered_at:  # the outage is over, and this was of it
            self._failures[name] = 0
            self._due[name] = now
        elif self._outage is not None:
            self._outage.failed(error.reason)

    def rate_limited(self, name: str, now: float, asked: float | None) -> float:
        """The upstream wants to be left alone; returns for how many seconds it will be.

        Args:
            asked: seconds that it asked for, if it said.
        """
        began = self._end(name)
        pause = self._budget.refused(began, now, asked)
        if self._awaited is None and pause and self._outage is None:
            self._awaited = now
        if name == self.first:
            self._due[name] = now  # when the pause is over
            self._fails(now, "rate_limited")
        else:
            self._failures[name] += 1
            wait = again(self._failures[name], self._periods[name], self._jitter)
            self._due[name] = now + wait
            if self._failures[name] == 1:  # it keeps its place among those that wait
                self._due[name] = min(self._others().values())
            self.make_due(self.first, now)
        return pause

    def patience(self, name: str, now: float) -> float:
        """Seconds that a refresh may take for its attempts together.

        In an outage there are no retries while the peers come again soon anyhow. A
        tight budget has none left either: they would keep all others from being asked.
        """
        outage = self._outage
        if outage is not None and (outage.pace < NEVER or self._budget.tight(now)):
            return 0.0
        return self._periods[name]

    def over(self, name: str, now: float) -> None:
        """A refresh has ended, if none of the above has said how: for want of words."""
        if name in self._running:
            began = self._end(name)
            if name != REACH:
                self._due[name] = now + self._periods[name]
            if name == self.first:
                self._tried(began)

    def skipped(self, name: str, now: float) -> None:
        """Nothing was asked: what the path is made of is not known yet."""
        self._budget.unsent(self._end(name))
        self._due[name] = now + spread(self._periods[name], self._jitter)

    def silent(self, name: str) -> None:
        """A running refresh has no response header yet: another one may start."""
        if name in self._running and name != self.first:
            self._silent.add(name)

    def rest(self, name: str, until: float) -> None:
        """It is not asked for before, whatever happens: what it costs is too much."""
        self._rests[name] = until

    def waits(self, name: str) -> bool:
        """Whether it is not under way."""
        return name in self._due

    def make_due(self, name: str, now: float) -> None:
        """It is worth asking for now, unless it is under way."""
        if name in self._due:
            self._due[name] = min(self._due[name], now)

    def _claim(self) -> None:
        """Say what is due when, for all accounts of the token to know."""
        share = self._share
        share.peers_due = self._due.get(self.first, NEVER)
        share.peers_began = self._first_began
        share.others_at_once = 2 if self._silent and self._outage is None else 1
        others = self._others()
        share.last_due = others.pop(ACCESS_LOG, NEVER)
        due = min(others.values(), default=NEVER)
        share.others_due = share.pressing = due
        if REACH in self._due:
            share.pressing = NEVER
        elif self._awaited is not None:
            share.others_due = share.last_due = share.pressing = NEVER
        elif self._outage is not None and not self._outage.alone:
            share.others_due = max(due, self._outage.others_at)
            share.last_due = max(share.last_due, self._outage.others_at)
            share.pressing = NEVER

    def _others(self) -> dict[str, float]:
        """When they are due, those of equal times in their first order."""
        if REACH in self._due:
            return {REACH: self._due[REACH]}
        others = {name: self._due[name] for name in self._periods if name in self._due}
        others.pop(self.first, None)
        for name in self._rests.keys() & others.keys():
            others[name] = max(others[name], self._rests[name])
        return others

    def _end(self, name: str) -> float:
        self._share.end(peers=name == self.first)
        self._silent.discard(name)
        return self._running.pop(name)

    def _answered(self, name: str, began: float, due: float) -> None:
        self._failures[name] = 0
        self._due[name] = due
        self._budget.answered(began)
        if name == self.first:
            self._tried(began)

    def _tried(self, began: float) -> None:
        """The first has been tried; but one that began before the pause is too old."""
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
        for name, failures in self._failures.items():
            if failures:
                self.make_due(name, now)

    def _doubt(self) -> None:
        """What the upstream did not have it may have: to be asked again like others."""
        for name in self._unsupported:
            self._failures[name] = 1
        self._unsupported.clear()
