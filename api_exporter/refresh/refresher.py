"""Starts refreshes when resources are due, and withdraws expired metrics."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence, Set
from copy import copy
from math import inf
from typing import Any

from msgspec.structs import replace
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from api_exporter.clocks import Clocks, log_of
from api_exporter.netbird.resource_state import (
    OVERDUE_INTERVALS,
    LastBody,
    NotRead,
    max_age,
)
from api_exporter.netbird.resources import (
    ACCOUNT_LIST,
    CURRENT_USER,
    PEERS,
    PROBE_PATH,
    USER_LIST,
    Resource,
)
from api_exporter.ports import UpstreamError
from api_exporter.refresh.budget import RefusedPaths
from api_exporter.refresh.pipeline import Pipeline
from api_exporter.refresh.request_plans import RequestPlan
from api_exporter.refresh.schedule import CONNECTION_TEST, Schedule
from api_exporter.refresh.states import Owner, States, owner_of
from api_exporter.refresh.transitions import (
    Event,
    Expired,
    Failed,
    Forgotten,
    Read,
    Requested,
    Unread,
)

Work = Coroutine[Deferred[object], object, None]


EARLY_INTERVAL = 60.0
"""Minimum seconds between two early refreshes of a list that findings wait for."""

WITHDRAWAL_RETRY = 30.0
"""Seconds from a failed withdrawal to its retry."""


class Refresher(Service):
    """Refreshes resources when they are due, and withdraws expired ones.

    Args:
        on_refreshed: called with a resource's name after a refresh or withdrawal.
    """

    log = Logger()

    def __init__(
        self,
        *,
        states: States,
        plan: RequestPlan,
        metrics_max_age: float | None,
        pipeline: Pipeline,
        clocks: Clocks,
        refused_paths: RefusedPaths,
        on_refreshed: Callable[[str], Work],
        test_connection: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self.log = log_of(clocks.account, self.log)
        self._resources = {r.name: r for r in plan.selection.resources}
        self._states = states
        self._max_ages = {
            name: max_age(interval, metrics_max_age)
            for name, interval in states.intervals.items()
        }
        self._pipeline = pipeline
        self._budget = plan.budget
        self._refused_paths = refused_paths
        self._clock, self._now, self._jitter = clocks.clock, clocks.now, clocks.jitter
        self._on_refreshed = on_refreshed
        self._test_connection = test_connection
        self._tasks: set[Deferred[None]] = set()
        self._alarm: IDelayedCall | None = None
        self._held: tuple[LastBody, float] | None = None
        self._awaited_until = inf
        self._former: Owner | None = None
        """Whose token the former one was, until the new one's owner is known."""

    def startService(self) -> None:
        super().startService()
        self._schedule = Schedule(
            self._states,
            clock=self._clock,
            jitter=self._jitter,
            budget=self._budget,
            on_start=self._start_refresh,
            allowed_at=self._allowed_at,
            has_connection_test=self._test_connection is not None,
        )
        self._update_paths(self._clock.seconds())
        self._start_due()

    def _allowed_at(self, name: str) -> float:
        path = self._resources[name].path
        return self._refused_paths.allowed_at(path, self._clock.seconds())

    def begin_with(self, before: "Refresher", names: Set[str]) -> None:
        """Keep what a refresher that has stopped has read. All is due at once.

        Of resources that are read in another way, only what the log says of them stays.
        """
        now, self._former = self._clock.seconds(), before._former
        for name in names:
            state, expires = before._states.every[name], inf
            if state.expires < inf:
                more = self._max_ages[name] - before._max_age(name, state.interval)
                expires = min(
                    state.expires + max(0.0, more), now + self._max_ages[name]
                )
            is_known = name in self._pipeline.inventory.records
            state = replace(
                state,
                interval=self._states.intervals[name],
                expires=expires,
                body=state.body if is_known else None,
                refreshes=0,
                failed_refreshes=0,
            )
            self._states.put(name, state)
        for name in (self._states.every.keys() & before._states.every.keys()) - names:
            is_logged = before._states.every[name].failure_logged
            self._states.change(name, failure_logged=is_logged)

    def begin_again(self) -> None:
        """Forget all resources without records: they were of another account.

        Without a path, they are due at the end of this refresh, or of their own.
        """
        self._held, self._former, event = None, None, Forgotten()
        for name in self._states.every.keys() - self._pipeline.inventory.records.keys():
            if name != PEERS or self._states[PEERS].error is None:
                self._states.record(name, event)
            self._states.change(name, path=None, expires=inf, window_ends=inf)
            self._schedule.forget(name)
        self._set_first()

    def on_token_changed(self) -> None:
        """Find out at once whether a new token is of the same user and account."""
        names = {CURRENT_USER, ACCOUNT_LIST} & self._states.every.keys()
        self._former = self._former or owner_of(self._pipeline.inventory, self._states)
        self._pipeline.untried = set(names)
        self._pipeline.held = None
        held, self._held = self._held, None
        if not self.running:  # all is due at the start
            return
        for name in names if held is None else {*names, PEERS}:
            self._schedule.make_due(name, self._clock.seconds())
        self._set_first()
        self._set_alarm()

    def _set_first(self) -> None:
        """Request first what peers wait for."""
        untried = self._pipeline.untried
        self._schedule.first = [n for n in (CURRENT_USER, ACCOUNT_LIST) if n in untried]

    async def _compare_owners(self) -> None:
        """Remove what belongs to the former token's owner, once both are known.

        Of another user, only a list of accounts shows that the account is the same.
        """
        former, states = self._former, self._states.every
        names = {CURRENT_USER, ACCOUNT_LIST} & states.keys()
        if former is None or any(states[name].error is not None for name in names):
            return
        owner = owner_of(self._pipeline.inventory, self._states)
        if owner.is_other_user(former):
            same = owner.has_same_account(former)
            await self._pipeline.replace_user(same_account=same)
            now = self._clock.seconds()
            if USER_LIST in states:  # the list may mark another user as the current one
                self._schedule.make_due(USER_LIST, now)
            self._update_paths(now)
        if not self._pipeline.untried:  # else the token has changed again
            self._former = None

    def _max_age(self, name: str, interval: float) -> float:
        return max(self._max_ages[name], OVERDUE_INTERVALS * interval)

    def stopService(self) -> Deferred[list[tuple[bool, None]]]:
        if self.running:
            self._schedule.stop()
        super().stopService()
        self._cancel_alarm()
        for task in list(self._tasks):
            task.cancel()
        return DeferredList(list(self._tasks))

    def await_lists(self, names: Sequence[str], until: float) -> None:
        """Refresh lists early for findings that wait: see Note [Found again].

        Args:
            names: the most urgent first.
            until: when `on_refreshed` is called with the peers in any case.
        """
        if not self.running:
            return
        now = self._clock.seconds()
        self._schedule.awaited, self._awaited_until = tuple(names), until
        for name in names:
            state = self._states.every[name]
            if state.error is None:
                self._schedule.make_due(name, max(now, state.early_at + EARLY_INTERVAL))
        self._set_alarm()

    def mark_silent(self, path: str) -> None:
        """Note that a request has no response header yet, so that another may start."""
        if not self.running:
            return
        if path == PROBE_PATH:
            self._schedule.mark_silent(CONNECTION_TEST)
        for name, state in self._states.every.items():
            if state.path and f"{path}?".startswith(f"{state.path}?"):
                self._schedule.mark_silent(name)
        self._set_alarm()

    def _start_due(self) -> None:
        self._alarm = None
        now = self._clock.seconds()
        for name, state in self._states.every.items():
            if state.expires <= now:
                self._states.change(name, expires=inf, body=None)
                work = self._withdraw(name)
                self._start(work, f"removing expired metrics of {name}", name)
            if state.window_ends <= now:
                self._states.change(name, window_ends=inf)
                work = self._end_window(self._resources[name])
                self._start(work, f"ending windows of {name}", name)
        if self._awaited_until <= now:
            self._awaited_until = inf
            self._follow_up(PEERS)
        self._set_alarm()

    def _start_refresh(self, name: str) -> None:
        if name == CONNECTION_TEST:
            self._start(self._run_connection_test(), "probing the NetBird API")
            return
        work = self._refresh(self._resources[name])
        self._start(work, f"refreshing {name}", name)

    def _follow_up(self, name: str) -> None:
        """Start what follows a refresh, without delaying the next one."""
        if self.running:
            self._start(self._on_refreshed(name), "handling a refresh")

    def _start(self, work: Work, words: str, name: str | None = None) -> None:
        task = Deferred.fromCoroutine(work)
        self._tasks.add(task)
        if name is not None:
            task.addCallback(lambda _: self._follow_up(name))
        task.addBoth(self._ended, task, words)

    def _ended(self, result: Failure | None, task: Deferred[None], words: str) -> None:
        self._tasks.discard(task)
        if isinstance(result, Failure) and not result.check(CancelledError):
            self.log.failure(
                "internal error while {activity}", failure=result, activity=words
            )
        self._set_alarm()

    def _set_alarm(self) -> None:
        self._schedule.offer()
        if not self.running:
            return
        self._cancel_alarm()
        states = self._states.every.values()
        soonest = min(min(one.expires, one.window_ends) for one in states)
        soonest = min(soonest, self._awaited_until)
        if soonest < inf:
            delay = max(0.0, soonest - self._clock.seconds())
            self._alarm = self._clock.callLater(delay, self._start_due)

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    async def _withdraw(self, name: str) -> None:
        try:
            try:
                peers_fail = name != PEERS and self._states[PEERS].error is not None
                seconds = self._max_age(name, self._states.every[name].interval)
                self._states.record(name, Expired(seconds, peers_fail))
            finally:
                await self._pipeline.withdraw(name)
            self._reset_withdrawn()
        except Exception:  # a reload cancels it, and continues with this state
            if self._states.every[name].expires == inf:
                retry_at = self._clock.seconds() + WITHDRAWAL_RETRY
                self._states.change(name, expires=retry_at)
            raise

    async def _run_connection_test(self) -> None:
        assert self._test_connection is not None  # otherwise no test is due
        try:
            await self._test_connection()
        finally:
            self._schedule.ended(CONNECTION_TEST, self._clock.seconds())

    async def _refresh(self, resource: Resource[Any]) -> None:
        name, untried = resource.name, self._pipeline.untried
        try:
            await self._try_refresh(resource)
        finally:
            self._schedule.ended(name, self._clock.seconds())
        if not self.running or name not in {CURRENT_USER, ACCOUNT_LIST}:
            return
        if untried is not self._pipeline.untried:  # perhaps the former token's answer
            self._schedule.make_due(name, self._clock.seconds())
            return
        was_untried = name in untried
        untried.discard(name)
        self._set_first()
        if not untried:
            try:
                await self._compare_owners()
            except MemoryError:  # peers stay held until the former records are removed
                untried.add(name)
                self._set_first()
                retry_at = self._clock.seconds() + WITHDRAWAL_RETRY
                self._schedule.make_due(name, retry_at)
                return
        if was_untried and not self._pipeline.untried:
            await self._release_peers()

    async def _release_peers(self) -> None:
        held, self._held = self._held, None
        are_newest = self._states[PEERS].error is None
        try:
            await self._pipeline.release_peers(are_newest=are_newest)
        except (MemoryError, UpstreamError):  # the peers' next refresh reports it
            self._schedule.make_due(PEERS, self._clock.seconds())
            return
        if held is not None and are_newest:
            self._record_success(PEERS, *held)
            self._follow_up(PEERS)

    async def _try_refresh(self, resource: Resource[Any]) -> None:
        name, begin = resource.name, self._clock.seconds()
        path = self._pipeline.request_path(resource)
        self._states.change(name, path=path)
        self._update_need(resource, path)
        if path is None or not self._pipeline.is_due(name):
            self._schedule.skipped(name, begin)
            return
        if name in self._schedule.awaited:
            self._states.change(name, early_at=begin)
        try:
            max_seconds = self._schedule.max_seconds(name)
            body = await self._pipeline.read(resource, path, max_seconds)
        except CancelledError:
            if self.running:  # a defect: only the stop of the service cancels
                self._fail(name, UpstreamError("internal", "cancelled"), begin)
        except UpstreamError as error:
            self._on_error(resource, error, begin)
            if not error.unsent:
                self._rest_after_failure(resource, begin)
        except MemoryError:
            self._fail(name, UpstreamError("internal", "not enough memory"), begin)
        except Exception:  # noqa: BLE001 - a defect must not end the refreshes
            self._on_defect(name, begin)
        else:
            now = self._clock.seconds()
            delay = self._delay(resource, begin, body.records)
            interval = self._pipeline.next_interval(name, delay)
            expires = now + self._max_age(name, interval)
            self._states.change(name, expires=expires, interval=interval)
            self._record_success(name, body, now - begin)
            self._schedule.refreshed(name, now)
            self._set_window_end(resource)
            self._update_paths(now)

    def _record_success(self, name: str, body: LastBody, seconds: float) -> None:
        event: Event = Read(body, seconds, self._now(), self._clock.seconds())
        if name == PEERS and self._pipeline.held is not None:
            self._held = body, seconds
            event = replace(event, body=self._states.every[PEERS].body)
        elif name not in self._pipeline.inventory.records:
            event = Forgotten()  # it was the answer to a former account or user
            self._states.change(name, expires=inf)
        if name in self._pipeline.inventory.withheld:
            event = Unread(NotRead.RESTRICTED, seconds, self._now())
        self._states.record(name, event)

    def _update_need(self, resource: Resource[Any], path: str | None) -> None:
        name, inventory = resource.name, self._pipeline.inventory
        if path is not None:
            self._states.record(name, Requested())
        elif name in inventory.withheld and not inventory.dormant(name):
            self._states.record(name, Unread(NotRead.RESTRICTED))
        elif resource.has_no_records(inventory):
            self._states.record(name, Unread(NotRead.HAS_NO_RECORDS))

    def _delay(self, resource: Resource[Any], begin: float, records: int) -> float:
        """Delay the next request by this one's cost; return the seconds until it."""
        name, seconds = resource.name, self._clock.seconds() - begin
        usual = self._states.intervals[name]
        interval = resource.min_interval(records, usual, seconds)
        if interval > usual:
            self._states.change(name, rests_until=begin + interval)
        return interval

    def _rest_after_failure(self, resource: Resource[Any], begin: float) -> None:
        """Delay the next request by an interval at most: its metrics may expire."""
        cost = resource.cost * (self._clock.seconds() - begin)
        rest = min(cost, self._states.intervals[resource.name])
        self._states.change(resource.name, rests_until=begin + rest)

    def _set_window_end(self, resource: Resource[Any]) -> None:
        now = self._now()
        end = resource.ends and resource.ends(self._pipeline.inventory, now)
        ends = inf if end is None else self._clock.seconds() + max(0.0, end - now)
        self._states.change(resource.name, window_ends=ends)

    async def _end_window(self, resource: Resource[Any]) -> None:
        await self._pipeline.republish(resource.name)
        self._set_window_end(resource)

    def _update_paths(self, now: float) -> None:
        """Make resources due whose path has changed or has become known.

        A resource that has become dormant is removed. One that is withheld or no longer
        withheld is due, too.
        """
        self._reset_withdrawn()
        dormant = self._pipeline.inventory.dormant
        withheld = self._pipeline.inventory.withheld
        for name, state in self._states.every.items():
            located = self._pipeline.request_path(self._resources[name])
            is_dormant = state.not_read is NotRead.DORMANT
            if dormant(name) and not is_dormant and state.due is not None:
                self._states.record(name, Unread(NotRead.DORMANT))
            elif located not in {None, state.path} or (
                not is_dormant and state.restricted != (name in withheld)
            ):
                if is_dormant:
                    self._states.record(name, Requested())
                self._schedule.make_due(name, now)

    def _reset_withdrawn(self) -> None:
        known = self._pipeline.inventory.records
        for name, state in self._states.every.items():
            # The peers stay up while they are withheld.
            if state.up and name != PEERS and name not in known:
                self._states.record(name, Forgotten())

    def _on_error(
        self, resource: Resource[Any], error: UpstreamError, begin: float
    ) -> None:
        name, now = resource.name, self._clock.seconds()
        is_credible = self._is_credible(name)
        if is_credible and resource.refused(error):
            why = NotRead.REFUSED
        elif is_credible and resource.absent(error):
            why = NotRead.ABSENT
        else:
            self._fail(name, error, begin)
            return
        is_expected = name == CURRENT_USER
        self._states.record(name, Unread(why, now - begin, self._now(), is_expected))
        self._schedule.unsupported(name, now)

    def _on_defect(self, name: str, begin: float) -> None:
        before = self._states[name].error
        if before is None or before.reason != "internal":
            self.log.failure(
                "internal error while refreshing {resource}", resource=name
            )
        self._fail(
            name, UpstreamError("internal", "internal error, see the log"), begin
        )

    def _fail(self, name: str, error: UpstreamError, begin: float) -> None:
        now, peers = self._clock.seconds(), self._states[PEERS].error
        as_peers = name != PEERS and peers is not None and peers.reason == error.reason
        error = copy(error)  # without the traceback, which would keep bodies in memory
        self._states.record(name, Failed(error, now - begin, self._now(), as_peers))
        if error.reason == "rate_limited":
            pause = self._schedule.rate_limited(name, now, error.retry_after)
            self.log.debug("pausing all requests for {seconds:.0f} s", seconds=pause)
        else:
            self._schedule.failed(name, now, error)

    def _is_credible(self, name: str) -> bool:
        """Return whether a resource is really missing or refused, as the response says.

        A misrouted proxy may give this response to every path for a moment, and a
        blocked user is refused everything. Then the peers fail too, or the resource was
        known before, with the same token. A response that confirms the known state is
        always credible.
        """
        if self._states[name].supported is False:
            return True
        is_new = self._former is not None and name in {CURRENT_USER, ACCOUNT_LIST}
        is_known = self._states.every[name].body is not None and not is_new
        return self._states[PEERS].error is None and not is_known
