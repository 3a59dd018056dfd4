"""One function turns an event into the next state of a resource and lines for the log.

Pure: times are arguments.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.formatting import with_noun
from api_exporter.netbird.resource_state import LastBody, NotRead, ResourceState
from api_exporter.ports import UpstreamError

REPORT_INTERVAL = 3600.0
"""Minimum seconds between two reports of a resource's rejected records."""


class Read(Struct, frozen=True):
    """A good body, or None for one that is not published yet."""

    body: LastBody | None
    seconds: float
    at: float
    clock: float


class Failed(Struct, frozen=True):
    """A failed refresh; with `seconds` None a failed request, which may be retried.

    Attributes:
        as_peers: True if the peers fail for the same reason.
    """

    error: UpstreamError
    seconds: float | None
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


Event = Read | Failed | Unread | Requested | Forgotten | Expired


class LogLine(Struct, frozen=True):
    """A line of the log, whose text names the resource as `{resource}`."""

    level: Literal["debug", "info", "warn"]
    text: str
    fields: Mapping[str, object] = {}


Next = tuple[ResourceState, tuple[LogLine, ...]]


def next_state(state: ResourceState, event: Event) -> Next:
    match event:
        case Read():
            return _read(state, event)
        case Failed():
            return _failed(state, event)
        case Unread():
            return _unread(state, event)
        case Requested() if not _is_unrequested(state):
            return state, ()
        case Requested() | Forgotten():
            return _emptied(state), ()
    return _expired(state, event)


def _expired(state: ResourceState, event: Expired) -> Next:
    after = replace(
        state,
        withdrawn=True,
        reported_at=-inf,
        failure_logged=state.failure_logged or not event.peers_fail,
    )
    text = "metrics of {resource} have expired: no successful refresh for {seconds:g} s"
    line = LogLine("warn", text, {"seconds": event.max_age})
    return after, () if event.peers_fail else (line,)


def _is_unrequested(state: ResourceState) -> bool:
    if state.restricted:
        return state.ended_at is None
    return state.not_read in {NotRead.HAS_NO_RECORDS, NotRead.DORMANT}


def _emptied(state: ResourceState, **changes: Any) -> ResourceState:
    """Return the state of a resource of which nothing is known."""
    return replace(state, **{**_NOTHING, **changes})


_NOTHING: Mapping[str, Any] = {
    name: getattr(ResourceState(interval=0.0), name)
    for name in (
        "ended_at",
        "seconds",
        "error",
        "failures",
        "failing_since",
        "withdrawn",
        "not_read",
        "last_success",
        "records",
        "rejected",
        "unknown",
    )
}


def _read(state: ResourceState, event: Read) -> Next:
    body, seconds, at = event.body, event.seconds, event.at
    after = _emptied(state, ended_at=at, seconds=seconds, failure_logged=False)
    if body is None:
        return after, (*_recovery(state),)
    kinds = frozenset(words.partition("]: ")[2] for words in body.errors)
    is_due = event.clock >= state.reported_at + REPORT_INTERVAL
    is_reported = bool(kinds - state.reported) and is_due
    after = replace(
        after,
        last_success=at,
        records=body.records,
        rejected=body.rejected,
        unknown=body.unknown,
        refreshes=state.refreshes + 1,
        # Without errors now, equal ones will be new.
        reported=kinds if is_reported else state.reported and state.reported & kinds,
        reported_at=event.clock if is_reported else state.reported_at,
    )
    counts = {
        "records": body.records,
        "rejected": body.rejected,
        "duration_seconds": round(seconds, 3),
    }
    line = LogLine("debug", "refreshed {resource}", counts)
    left_out = _left_out(body) if is_reported else ()
    return after, (line, *left_out, *_recovery(state))


def _left_out(body: LastBody) -> Iterator[LogLine]:
    for error in body.errors:
        text = "a record is left out: {resource}{error}"
        yield LogLine("warn", text, {"error": error})
    if more := body.rejected - len(body.errors):
        count = with_noun(more, "more record")
        yield LogLine("warn", "{count} of {resource} left out", {"count": count})


def _recovery(state: ResourceState) -> Iterator[LogLine]:
    """Yield the line for the end of a failure, if its begin was logged."""
    if state.failure_logged:
        failures = state.failures
        after = f" after {with_noun(failures, 'failure')}" if failures else ""
        yield LogLine("info", "{resource} can be refreshed again" + after)


def _failed(state: ResourceState, event: Failed) -> Next:
    error = event.error
    since = event.at if state.failing_since is None else state.failing_since
    if event.seconds is None:
        return replace(state, error=error, failing_since=since), ()
    is_silent = state.failure_logged or event.as_peers
    after = replace(
        state,
        error=error,
        failing_since=since,
        ended_at=event.at,
        seconds=event.seconds,
        failures=state.failures + 1,
        refreshes=state.refreshes + 1,
        failed_refreshes=state.failed_refreshes + 1,
        failure_logged=state.failure_logged or not is_silent,
    )
    fields = {"error": str(error), "reason": error.reason}
    if error.request_id:
        fields["request_id"] = error.request_id
    line = LogLine("warn", "cannot refresh {resource}: {error}", fields)
    return after, () if is_silent else (line,)


def _unread(state: ResourceState, event: Unread) -> Next:
    """Its line is repeated if it ends a failure."""
    why, at = event.why, event.at
    is_same = state.not_read is why
    if at is None and is_same and state.error is None:
        return state, ()
    after = _emptied(
        state, not_read=why, ended_at=at, seconds=event.seconds, failure_logged=False
    )
    if at is None:
        after = replace(after, expires=inf, window_ends=inf, path=None, body=None)
    else:
        after = replace(after, refreshes=state.refreshes + 1)
    is_silent = is_same or event.is_expected or why is NotRead.DORMANT
    line = LogLine("info", why.value)
    return after, () if is_silent and not state.failure_logged else (line,)
