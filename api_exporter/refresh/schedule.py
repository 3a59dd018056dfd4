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
from api_exporter.upstream.backoff import FIRST_RETRY_DELAY, retry_delay, with_jitter

CONNECTION_TEST = "reach"
"""The name of the connection test, which runs once, before all except the peers."""

MAX_SILENT = 3
"""The maximum of an account's refreshes without a response header beside another one.

They may be hung, or the server is slow on all paths: more would double its load.
"""

UNSUPPORTED_PERIOD = 3600.0
"""Seconds between requests of a path that the upstream lacks."""


class Schedule:
    """The due times of all resources of an account.

    The first resource, the peers, is due at once. All others are due when it was
    tried, one after the other, and then every period. A resource that was refreshed by
    an earlier schedule keeps its due time.

    Args:
        lives: in the order of the first refreshes.
        budget: of the token, which other accounts may share.
        allowed_at: returns when a resource without a good answer may be requested; see
            Note [Not a scanner].
    """

    def __init__(
        self,
        lives: Lives,
        *,
        now: float,
        jitter: Jitter,
        budget: Budget,
        on_available: Callable[[], object] = lambda: None,
        allowed_at: Callable[[str], float] = lambda _: -NEVER,
        has_connection_test: bool = False,
    ) -> None:
        self.peers_name = next(iter(lives))
        self._lives = lives
        self._jitter = jitter
        self._budget = budget
        self._allowed_at = allowed_at
        self._share = Share(budget, on_available)
        self._connection_test = (
            ResourceLife(period=0.0, due=now) if has_connection_test else None
        )
        for life in lives.values():
            life.due = now if life.due is None else life.due
        lives[self.peers_name].due = now
        self._peers_began = -NEVER
        self._waiting_since: float | None = -NEVER
        """When others began to wait for the peers (start or pause), or None."""
        self._outage: Outage | None = None
        self._is_stopped = False
        self._recovered_at = -NEVER

    def start_next(self, now: float) -> str | None:
        """Return the resource or CONNECTION_TEST that starts now, or None."""
        self._update_share()
        peers = self._share.next_is_for_peers(now)
        if peers is None:
            return None
        if peers:
            name = self.peers_name
            self._peers_began = now
        else:
            others = self._others_due()
            # The access log comes after all other due resources.
            name = min(
                others,
                key=lambda n: (max(others[n], now), n == ACCESS_LOG, self._life(n).due),
            )
            if self._outage is not None:
                self._outage.others_at = now + self._lives[self.peers_name].period
        life = self._life(name)
        life.due, life.began = None, now
        self._share.begin(now, peers=peers)
        return name

    def wake_at(self) -> float | None:
        """Return when a refresh may start; None if a running one must end first."""
        self._update_share()
        at = self._share.allowed_at()
        return None if at == NEVER else at

    def notify_next(self, now: float) -> bool:
        return self._share.notify_next(now)

    def stop(self, now: float) -> None:
        """Start no more refreshes; running ones may finish."""
        self._is_stopped = True
        self._share.remove()
        self._share.notify_next(now)

    def refreshed(self, name: str, now: float) -> None:
        """End a successful refresh: the next one is due a period after its start.

        After a refresh longer than half its period, the upstream rests half a period.
        """
        life = self._lives[name]
        began = self._end_request(name)
        due = began + with_jitter(life.period, self._jitter)
        self._record_answer(name, began, max(due, now + 0.5 * life.period))
        life.is_absent = False
        if name == self.peers_name:
            self._end_outage(now)
        elif self._outage is not None:
            self._outage.other_succeeded(began)

    def unsupported(self, name: str, now: float) -> None:
        """End a refresh of a path that the upstream lacks.

        The first such answer is retried soon: while a server starts, a gateway may give
        it for all paths.
        """
        life = self._lives[name]
        was_absent, life.is_absent = life.is_absent, True
        wait = with_jitter(
            UNSUPPORTED_PERIOD if was_absent else FIRST_RETRY_DELAY, self._jitter
        )
        self._record_answer(name, self._end_request(name), now + wait)

    def failed(self, name: str, now: float, error: UpstreamError) -> None:
        """End a failed refresh, unless the reason was a rate limit."""
        life, began = self._lives[name], self._end_request(name)
        life.failures += 1
        wait = retry_delay(life.failures, life.period, self._jitter, error.retry_after)
        life.due = now + wait
        if error.unsent:
            self._budget.refund(began)
        if name == self.peers_name:
            if error.unsupported or error.reason == "forbidden":
                self._recheck_absent()
            outage = self._record_outage(now, error.reason)
            interval = outage.next_interval(now, error, now - began)
            life.due = min(life.due, now + interval)
            self._peers_tried(began)
        elif began <= self._recovered_at:  # it began in an outage that is over
            life.failures = 0
            life.due = now
        elif self._outage is not None:
            self._outage.other_failed(error.reason)

    def rate_limited(self, name: str, now: float, retry_after: float | None) -> float:
        """End a refresh that got a 429; return the seconds of the pause.

        Args:
            retry_after: the Retry-After of the response in seconds, or None.
        """
        life, began = self._lives[name], self._end_request(name)
        pause = self._budget.record_429(began, now, retry_after)
        if self._waiting_since is None and pause and self._outage is None:
            self._waiting_since = now
        if name == self.peers_name:
            life.due = now  # the pause delays it
            self._record_outage(now, "rate_limited")
        else:
            life.failures += 1
            life.due = now + retry_delay(life.failures, life.period, self._jitter)
            if life.failures == 1:  # it keeps its place in the queue
                life.due = min(self._others_due().values())
            self.make_due(self.peers_name, now)
        return pause

    def max_seconds(self, name: str, now: float) -> float:
        """Return the seconds that all attempts of a refresh may take together.

        In an outage there are no retries if the peers are requested again soon, or if
        accounts compete: retries would use the requests of others.
        """
        outage = self._outage
        contended = self._budget.is_contended(now)
        if outage is not None and (contended or outage.interval < NEVER):
            return 0.0
        return self._lives[name].period

    def ended(self, name: str, now: float) -> None:
        """End a refresh without a result, if no other method has ended it."""
        life = self._life(name)
        if life.began is not None:
            began = self._end_request(name)
            if name != CONNECTION_TEST and not self._is_stopped:
                life.due = now + life.period
            if name == self.peers_name:
                self._peers_tried(began)

    def skipped(self, name: str, now: float) -> None:
        """End a refresh without a request, because its path is unknown or not due."""
        self._budget.refund(self._end_request(name))
        life = self._lives[name]
        life.due = now + with_jitter(life.period, self._jitter)

    def mark_silent(self, name: str) -> None:
        """Free the slot of a running refresh without a response header."""
        life = self._life(name)
        if life.began is not None and name != self.peers_name and not life.is_silent:
            life.is_silent = True
            self._share.end(peers=False)

    def make_due(self, name: str, now: float) -> None:
        """Make a resource due now, unless a refresh is running."""
        life = self._lives[name]
        if life.due is not None:
            life.due = min(life.due, now)

    def _life(self, name: str) -> ResourceLife:
        if name == CONNECTION_TEST:
            assert self._connection_test is not None
            return self._connection_test
        return self._lives[name]

    def _update_share(self) -> None:
        share, peers = self._share, self._lives[self.peers_name]
        share.peers_due = NEVER if peers.due is None else peers.due
        share.peers_began = self._peers_began
        silent = sum(life.is_silent for life in self._lives.values())
        if self._connection_test is not None:
            silent += self._connection_test.is_silent
        max_silent = MAX_SILENT if self._outage is None else 0
        share.max_running_others = int(silent <= max_silent)
        others = self._others_due()
        share.access_log_due = others.pop(ACCESS_LOG, NEVER)
        due = min(others.values(), default=NEVER)
        share.others_due = share.others_overdue_at = due
        if CONNECTION_TEST in others:
            share.others_overdue_at = NEVER
        elif self._waiting_since is not None:
            share.others_due = share.access_log_due = share.others_overdue_at = NEVER
        elif self._outage is not None and not self._outage.only_peers_fail:
            share.others_due = max(due, self._outage.others_at)
            share.access_log_due = max(share.access_log_due, self._outage.others_at)
            share.others_overdue_at = NEVER

    def _others_due(self) -> dict[str, float]:
        """Return due times by resource; equal times in their first order."""
        if self._connection_test is not None and self._connection_test.due is not None:
            return {CONNECTION_TEST: self._connection_test.due}
        return {
            name: max(
                life.due,
                life.rests_until,
                self._allowed_at(name) if life.body is None else -NEVER,
            )
            for name, life in self._lives.items()
            if name != self.peers_name and life.due is not None
        }

    def _end_request(self, name: str) -> float:
        life = self._life(name)
        if not life.is_silent:
            self._share.end(peers=name == self.peers_name)
        began, life.began, life.is_silent = life.began, None, False
        assert began is not None
        return began

    def _record_answer(self, name: str, began: float, due: float) -> None:
        life = self._lives[name]
        life.failures, life.due = 0, due
        self._budget.record_answer(began)
        if name == self.peers_name:
            self._peers_tried(began)

    def _peers_tried(self, began: float) -> None:
        if self._waiting_since is not None and began > self._waiting_since:
            self._waiting_since = None
        elif self._waiting_since is not None:
            self.make_due(self.peers_name, self._waiting_since)

    def _record_outage(self, now: float, reason: Reason) -> Outage:
        if self._outage is None:
            # A refused token would be refused on any path.
            wait = self._lives[self.peers_name].period if reason == "auth" else 0.0
            self._outage = Outage(now, reason, others_at=now + wait)
        self._outage.reason = reason
        return self._outage

    def _end_outage(self, now: float) -> None:
        if self._outage is None:
            return
        self._outage = None
        self._recovered_at = now
        for name, life in self._lives.items():
            if life.failures:
                self.make_due(name, now)

    def _recheck_absent(self) -> None:
        for life in self._lives.values():
            if life.is_absent:
                life.failures, life.is_absent = 1, False
