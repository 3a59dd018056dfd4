"""One function turns an event into the next state of a resource and lines for the log.

Pure: times are arguments.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.netbird.resource_state import (
    LastBody,
    NotRead,
    ReportedRejections,
    ResourceState,
)
from api_exporter.netbird.unknown import NOTHING_UNKNOWN
from api_exporter.plurals import with_noun
from api_exporter.ports import UpstreamError

REPORT_PERIOD = 3600.0
"""Minimum seconds between two reports of a resource's rejected records."""


class Succeeded(Struct, frozen=True):
    """A body was read and published.

    Attributes:
        at: seconds since the epoch, as in all events.
        clock: seconds of the clock, for the pace of the log.
    """

    body: LastBody
    seconds: float
    at: float
    clock: float


class Held(Struct, frozen=True):
    """A body was read that is not published yet."""

    seconds: float
    at: float


class AttemptFailed(Struct, frozen=True):
    """A request has failed. The refresh may fail much later, because it retries it."""

    error: UpstreamError
    at: float


class Failed(Struct, frozen=True):
    """A refresh has failed; `as_peers` if the peers fail for the same reason."""

    error: UpstreamError
    seconds: float
    at: float
    as_peers: bool = False


class Unread(Struct, frozen=True):
    """A resource cannot be read, or need not be. That is no failure.

    Attributes:
        at: None if it was not requested.
        is_expected: True if that is not worth a line.
    """

    why: NotRead
    seconds: float = 0.0
    at: float | None = None
    is_expected: bool = False


class Requested(Struct, frozen=True):
    """A resource is requested, possibly again."""


class Forgotten(Struct, frozen=True):
    """The records of a resource were removed because of another one."""


class Expired(Struct, frozen=True):
    """Metrics have expired; `peers_fail` if nothing else is requested therefore."""

    max_age: float
    peers_fail: bool


Event = (
    Succeeded | Held | AttemptFailed | Failed | Unread | Requested | Forgotten | Expired
)


class LogLine(Struct, frozen=True):
    """A line of the log, whose text names the resource as `{resource}`."""

    level: Literal["debug", "info", "warn"]
    text: str
    fields: Mapping[str, object] = {}


def next_state(
    state: ResourceState, event: Event
) -> tuple[ResourceState, tuple[LogLine, ...]]:
    match event:
        case Succeeded():
            return _succeeded(state, event)
        case Held(seconds, at):
            after = _emptied(state, ended_at=at, seconds=seconds, failure_logged=False)
            return after, (*_recovery(state),)
        case AttemptFailed(error, at):
            since = at if state.failing_since is None else state.failing_since
            return replace(state, error=error, failing_since=since), ()
        case Failed():
            return _failed(state, event)
        case Unread():
            return _unread(state, event)
        case Requested() if not _is_unrequested(state):
            return state, ()
        case Requested() | Forgotten():
            return _emptied(state), ()
        case Expired(max_age, peers_fail):
            text = (
                "metrics of {resource} have expired: no successful refresh for"
                " {seconds:g} s"
            )
            after = replace(
                state,
                withdrawn=True,
                rejections=None,
                failure_logged=state.failure_logged or not peers_fail,
            )
            line = LogLine("warn", text, {"seconds": max_age})
            return after, () if peers_fail else (line,)


def _is_unrequested(state: ResourceState) -> bool:
    if state.restricted:
        return state.ended_at is None
    return state.not_read in {NotRead.HAS_NO_RECORDS, NotRead.DORMANT}


def _emptied(state: ResourceState, **changes: Any) -> ResourceState:
    """Return the state of a resource of which nothing is known."""
    nothing: dict[str, Any] = {
        "ended_at": None,
        "seconds": 0.0,
        "error": None,
        "failures": 0,
        "failing_since": None,
        "withdrawn": False,
        "not_read": None,
        "last_success": None,
        "records": 0,
        "rejected": 0,
        "unknown": NOTHING_UNKNOWN,
    }
    return replace(state, **{**nothing, **changes})


def _succeeded(
    state: ResourceState, event: Succeeded
) -> tuple[ResourceState, tuple[LogLine, ...]]:
    body, rejections = event.body, state.rejections
    kinds = frozenset(words.partition("]: ")[2] for words in body.errors)
    lines: tuple[LogLine, ...] = ()
    if kinds and _is_new(kinds, rejections, event.clock):
        rejections = ReportedRejections(kinds, event.clock)
        lines = (*_left_out(body),)
    elif not kinds and rejections is not None:  # equal errors will be new ones
        rejections = replace(rejections, kinds=frozenset())
    after = _emptied(
        state,
        ended_at=event.at,
        seconds=event.seconds,
        last_success=event.at,
        records=body.records,
        rejected=body.rejected,
        unknown=body.unknown,
        refreshes=state.refreshes + 1,
        failure_logged=False,
        rejections=rejections,
    )
    refreshed = LogLine(
        "debug",
        "refreshed {resource}",
        {
            "records": body.records,
            "rejected": body.rejected,
            "milliseconds": round(1000 * event.seconds),
        },
    )
    return after, (refreshed, *lines, *_recovery(state))


def _is_new(
    kinds: frozenset[str], before: ReportedRejections | None, now: float
) -> bool:
    """Return whether errors of records are worth lines: not if only places differ."""
    if before is None:
        return True
    return kinds != before.kinds and now >= before.at + REPORT_PERIOD


def _left_out(body: LastBody) -> Iterator[LogLine]:
    for error in body.errors:
        yield LogLine(
            "warn", "a record is left out: {resource}{error}", {"error": error}
        )
    if more := body.rejected - len(body.errors):
        count = with_noun(more, "more record")
        yield LogLine("warn", "{count} of {resource} left out", {"count": count})


def _recovery(state: ResourceState) -> Iterator[LogLine]:
    """Yield the line for the end of a failure, if its begin was logged."""
    if state.failure_logged:
        failures = state.failures
        after = f" after {with_noun(failures, 'failure')}" if failures else ""
        yield LogLine("info", "{resource} can be refreshed again" + after)


def _failed(
    state: ResourceState, event: Failed
) -> tuple[ResourceState, tuple[LogLine, ...]]:
    error, is_silent = event.error, state.failure_logged or event.as_peers
    after = replace(
        state,
        ended_at=event.at,
        seconds=event.seconds,
        error=error,
        failures=state.failures + 1,
        failing_since=event.at if state.error is None else state.failing_since,
        refreshes=state.refreshes + 1,
        failed_refreshes=state.failed_refreshes + 1,
        failure_logged=state.failure_logged or not is_silent,
    )
    fields = {"error": str(error), "reason": error.reason}
    if error.request_id:
        fields["request_id"] = error.request_id
    line = LogLine("warn", "cannot refresh {resource}: {error}", fields)
    return after, () if is_silent else (line,)


def _unread(
    state: ResourceState, event: Unread
) -> tuple[ResourceState, tuple[LogLine, ...]]:
    """Its line is repeated if it ends a failure."""
    why, is_same = event.why, state.not_read is event.why
    if event.at is None and is_same and state.error is None:
        return state, ()
    after = _emptied(
        state,
        not_read=why,
        ended_at=event.at,
        seconds=event.seconds,
        failure_logged=False,
    )
    if event.at is None:
        after = replace(after, expires=inf, window_ends=inf, path=None, body=None)
    else:
        after = replace(after, refreshes=after.refreshes + 1)
    is_silent = is_same or event.is_expected or why is NotRead.DORMANT
    line = LogLine("info", why.value)
    return after, () if is_silent and not state.failure_logged else (line,)
