"""The schedule of requests. Pure: time is an argument.

Note [The peers are the probe]. A server that is down answers on no path, so the
peers stand for all resources. While they fail, one other resource is requested in
each of their intervals. Its answer tells whether only the peers' path fails; if so,
all other resources continue as usual. The first good answer of the peers makes
resources due that were missed or have failed. See docs/develop/decisions.md.

Note [One backoff]. A failed resource is requested again after 3 s, then after waits
that grow up to its interval: of the peers slowly, of others twofold.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.netbird.resource_state import ResourceState
from api_exporter.netbird.resources import ACCESS_LOG, PEERS
from api_exporter.ports import Clock, Jitter, Reason, UpstreamError
from api_exporter.refresh.budget import FIRST, LAST, NEVER, Budget, Candidate
from api_exporter.refresh.states import States

CONNECTION_TEST = "reach"
"""The name of the connection test, which runs once, before all except the peers."""

MAX_SILENT = 3
"""The maximum of an account's refreshes without a response header beside another one.

They may be hung, or the server is slow on all paths: more would double its load.
"""

AWAITED_LEAD = 2.0
"""The intervals by which a list that findings wait for counts as later than it is."""

UNREAD_INTERVAL = 300.0
"""The interval, in seconds, by which a resource counts until its first good answer."""

FIRST_WAIT = 3.0
"""Seconds from a first failure to the next request."""

GROWTH, PEERS_GROWTH = 2.0, 1.05
"""The factors between two waits, of others and of the peers. After a minute the peers
wait 6 s: they show the end of an outage."""

LOGINS: frozenset[Reason] = frozenset({"auth", "proxy_auth"})
"""The peers repeat a refused login after their interval: quick ones may lock a user."""

FIRST_ABSENCE, ABSENCE = 30.0, 3600.0
"""Seconds until a path is requested again that the upstream lacks or refuses. Gateways
may answer so while a server starts."""


def with_jitter(interval: float, jitter: Jitter) -> float:
    """Change an interval by up to a tenth: exporters must not refresh in step."""
    return interval * (0.9 + 0.2 * jitter())


class Outage(Struct):
    """The time while the peers fail.

    Attributes:
        began: when the first failure ended.
        reason: of the newest failure of the peers.
        others_at: when one other resource may be requested.
        only_peers_fail: True if others succeed.
    """

    began: float
    reason: Reason
    others_at: float
    only_peers_fail: bool = False


class Schedule:
    """The due times of all resources of an account.

    The first resource, the peers, is due at once. All others are due when it was
    tried, one after the other, and then every interval.

    Args:
        states: in the order of the first refreshes.
        budget: of the token, which other accounts may share.
        on_start: called with the name of what starts: a resource or CONNECTION_TEST.
        allowed_at: returns when a resource without a good answer may be requested; see
            Note [Not a scanner].

    Attributes:
        awaited: lists that findings wait for, the most urgent first.
        first: resources that come before all others while they are due, in this order.
    """

    def __init__(
        self,
        states: States,
        *,
        clock: Clock,
        jitter: Jitter,
        budget: Budget,
        on_start: Callable[[str], object],
        allowed_at: Callable[[str], float] = lambda _: -NEVER,
        has_connection_test: bool,
    ) -> None:
        now = clock.seconds()
        self.awaited: tuple[str, ...] = ()
        self.first: Sequence[str] = ()
        self._states = states
        self._clock = clock
        self._jitter = jitter
        self._budget = budget
        self._on_start = on_start
        self._allowed_at = allowed_at
        self._connection_test = (
            ResourceState(interval=0.0, due=now) if has_connection_test else None
        )
        for name in states.every:
            self.forget(name)
            self._change(name, due=now)
        self._waiting_since: float | None = -NEVER
        """When others began to wait for the peers (start or pause), or None."""
        self._outage: Outage | None = None
        self._is_stopped = False
        self._recovered_at = -NEVER

    def forget(self, name: str) -> None:
        """Forget what earlier requests have shown: a failure is retried soon again."""
        self._change(name, backoff=0.0, is_absent=False, rests_until=-NEVER)

    def offer(self) -> None:
        if self._is_stopped:
            self._budget.withdraw(self, self._clock)
        else:
            self._budget.offer(self, self._clock)

    def candidates(self, now: float) -> Iterator[Candidate]:
        """Yield the request for the peers, and the most urgent one of all others."""
        if (due := self._state(PEERS).due) is not None:
            yield Candidate(PEERS, due, self._states.intervals[PEERS], peers=True)
        due_times = dict(self._due_times(now))
        late = [
            self._candidate(name, due) for name, due in due_times.items() if due <= now
        ]
        if late:
            yield max(late, key=lambda one: one.urgency(now))
        elif due_times:
            name = min(due_times, key=due_times.__getitem__)
            yield self._candidate(name, due_times[name])

    def _due_times(self, now: float) -> Iterator[tuple[str, float]]:
        """Yield when each request may start, except the one for the peers."""
        if self._is_busy():
            return
        test = self._connection_test
        if test is not None and test.due is not None:
            yield CONNECTION_TEST, test.due
            return
        if self._waiting_since is not None:
            return
        probe_at = -NEVER
        if self._outage is not None and not self._outage.only_peers_fail:
            probe_at = self._outage.others_at
        for name, state in self._states.every.items():
            if name != PEERS and state.due is not None:
                due = max(state.due, state.rests_until)
                if state.body is None:
                    due = max(due, self._allowed_at(name))
                if probe_at > now:
                    due = max(due, probe_at)
                yield name, due

    def _candidate(self, name: str, due: float) -> Candidate:
        if name == CONNECTION_TEST:
            return Candidate(name, due, 0.0)
        interval = self._states.intervals[name]
        if self._state(name).body is None:
            interval = min(interval, UNREAD_INTERVAL)
        return Candidate(name, due, interval, lead=self._lead(name))

    def _lead(self, name: str) -> float:
        if name in self.first:
            return FIRST - self.first.index(name)
        if name in self.awaited:
            return AWAITED_LEAD - self.awaited.index(name) / 100
        return LAST if name == ACCESS_LOG else 0.0

    def _is_busy(self) -> bool:
        """Return whether the request for another resource must end first."""
        running = [
            state
            for name, state in self._states.every.items()
            if state.began is not None and name != PEERS
        ]
        test = self._connection_test
        if test is not None and test.began is not None:
            running.append(test)
        silent = sum(one.is_silent for one in running)
        return silent < len(running) or silent > (0 if self._outage else MAX_SILENT)

    def start(self, name: str, now: float) -> None:
        if name != PEERS and self._outage is not None:
            self._outage.others_at = now + self._states.intervals[PEERS]
        self._change(name, due=None, began=now)
        self._on_start(name)

    def stop(self) -> None:
        """Start no more refreshes; running ones may finish."""
        self._is_stopped = True
        self.offer()

    def refreshed(self, name: str, now: float) -> None:
        """End a successful refresh: the next one is due an interval after its start.

        After a refresh longer than half its interval, the upstream rests half an
        interval.
        """
        interval, began = self._states.intervals[name], self._end_request(name)
        due = began + with_jitter(interval, self._jitter)
        self._record_answer(name, began, max(due, now + 0.5 * interval))
        self._change(name, is_absent=False)
        if name == PEERS:
            self._end_outage(now)
        elif self._outage is not None and began >= self._outage.began:
            if not self._outage.only_peers_fail:
                self.make_due(PEERS, now)
            self._outage.only_peers_fail = True

    def unsupported(self, name: str, now: float) -> None:
        """End a refresh of a path that the upstream lacks or refuses."""
        wait = ABSENCE if self._state(name).is_absent else FIRST_ABSENCE
        due = now + with_jitter(wait, self._jitter)
        self._record_answer(name, self._end_request(name), due)
        self._change(name, is_absent=True)

    def failed(self, name: str, now: float, error: UpstreamError) -> None:
        """End a failed refresh, unless the reason was a rate limit.

        The upstream rests for half as long as the refresh took.
        """
        began = self._end_request(name)
        if error.unsent:
            self._budget.refund(began)
        if name != PEERS and began < self._recovered_at:
            # It began in an outage that is over.
            self._change(name, backoff=0.0, due=now)
            return
        interval, backoff = self._states.intervals[name], self._next_backoff(name)
        least = max(error.retry_after or 0.0, 0.5 * (now - began))
        if name == PEERS and error.reason in LOGINS:
            least = interval
        due = now + min(interval, max(least, with_jitter(backoff, self._jitter)))
        self._change(name, backoff=backoff, due=due)
        if name == PEERS:
            if error.unsupported or error.reason == "forbidden":
                self._recheck_absent()
            self._record_outage(now, error.reason, others_at=due)
            self._peers_tried(began)
        elif self._outage is not None and error.reason == self._outage.reason:
            self._outage.only_peers_fail = False

    def _next_backoff(self, name: str) -> float:
        growth = PEERS_GROWTH if name == PEERS else GROWTH
        return max(FIRST_WAIT, growth * self._state(name).backoff)

    def rate_limited(self, name: str, now: float, retry_after: float | None) -> float:
        """End a refresh that got a 429; return the seconds of the pause.

        Another resource keeps its place in the queue after its first 429.
        """
        began = self._end_request(name)
        pause = self._budget.record_429(began, now, retry_after)
        if self._waiting_since is None and pause and self._outage is None:
            self._waiting_since = now
        if name == PEERS:
            self._change(name, due=now)  # the pause delays it
            self._record_outage(now, "rate_limited", others_at=now)
        else:
            backoff = self._next_backoff(name) if self._state(name).backoff else 0.0
            due = now + min(backoff, self._states.intervals[name])
            self._change(name, backoff=max(backoff, pause, FIRST_WAIT), due=due)
            self.make_due(PEERS, now)
        return pause

    def max_seconds(self, name: str) -> float:
        """Return the seconds that all attempts of a refresh may take together.

        There are no retries of what fails, nor in an outage: they would only be more.
        """
        fails = self._outage is not None or self._state(name).backoff
        return 0.0 if fails else self._states.intervals[name]

    def ended(self, name: str, now: float) -> None:
        """End a refresh without a result, if no other method has ended it."""
        if self._state(name).began is not None:
            began = self._end_request(name)
            if name != CONNECTION_TEST and not self._is_stopped:
                self._change(name, due=now + self._states.intervals[name])
            if name == PEERS:
                self._peers_tried(began)

    def skipped(self, name: str, now: float) -> None:
        """End a refresh without a request, because its path is unknown or not due."""
        self._budget.refund(self._end_request(name))
        wait = with_jitter(self._states.intervals[name], self._jitter)
        self._change(name, due=now + wait)

    def mark_silent(self, name: str) -> None:
        """Free the slot of a running refresh without a response header."""
        state = self._state(name)
        if state.began is not None and name != PEERS and not state.is_silent:
            self._change(name, is_silent=True)
            self._budget.end(peers=False)

    def make_due(self, name: str, now: float) -> None:
        """Make a resource due now, unless a refresh is running."""
        due = self._state(name).due
        if due is not None:
            self._change(name, due=min(due, now))

    def _state(self, name: str) -> ResourceState:
        if name == CONNECTION_TEST:
            assert self._connection_test is not None
            return self._connection_test
        return self._states.every[name]

    def _change(self, name: str, **changes: object) -> None:
        if name == CONNECTION_TEST:
            self._connection_test = replace(self._state(name), **changes)
        else:
            self._states.change(name, **changes)

    def _end_request(self, name: str) -> float:
        state = self._state(name)
        if not state.is_silent:
            self._budget.end(peers=name == PEERS)
        self._change(name, began=None, is_silent=False)
        assert state.began is not None
        return state.began

    def _record_answer(self, name: str, began: float, due: float) -> None:
        self._change(name, backoff=0.0, due=due)
        self._budget.record_answer(began)
        if name == PEERS:
            self._peers_tried(began)

    def _peers_tried(self, began: float) -> None:
        if self._waiting_since is not None and began > self._waiting_since:
            self._waiting_since = None
            self._forget_lateness(self._clock.seconds())
        elif self._waiting_since is not None:
            self.make_due(PEERS, self._waiting_since)

    def _record_outage(self, now: float, reason: Reason, others_at: float) -> None:
        if self._outage is None:
            self._outage = Outage(now, reason, others_at)
        self._outage.reason = reason

    def _end_outage(self, now: float) -> None:
        if self._outage is None:
            return
        self._outage = None
        self._recovered_at = now
        for name, state in self._states.every.items():
            if state.backoff:
                self.make_due(name, now)
        self._forget_lateness(now)

    def _forget_lateness(self, now: float) -> None:
        """Count from now on how late all are: no peers wait for what was missed."""
        for name, state in self._states.every.items():
            if state.due is not None:
                self._change(name, due=max(state.due, now))

    def _recheck_absent(self) -> None:
        for name, state in self._states.every.items():
            if state.is_absent:
                self._change(name, backoff=FIRST_WAIT, is_absent=False)
