"""Audit events. A response may have five megabytes."""

from collections.abc import Iterable, Iterator

from api_exporter.collectors.rows import ObjectKind
from api_exporter.exposition.text import Family, Sample, labels, timestamp
from api_exporter.netbird.records import AuditEvent

EVENTS = ObjectKind[AuditEvent]("events", "events/audit[]")


def _newest(events: Iterable[AuditEvent]) -> Iterator[Sample]:
    newest: dict[str, float] = {}
    for event in events:
        time = timestamp(event.timestamp)
        if time is not None:
            code = labels(activity_code=event.activity_code)
            newest[code] = max(time, newest.get(code, time))
    yield from sorted(newest.items())


ROWS = (
    EVENTS.count(
        "netbird_api_audit_events",
        "Number of events by activity among the newest 10,000 events of the audit log",
        {"activity_code": "activity_code"},
    ),
    EVENTS.family(
        "netbird_api_audit_event_last_timestamp_seconds",
        "Time of the newest event of this activity, in seconds since 1970",
        "events/audit[].timestamp",
        lambda metric, events: Family(metric, _newest(events)),
        alert="changes of activities that should be rare",
    ),
)
