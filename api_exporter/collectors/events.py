"""The audit log. Only on request: a call may bring five megabytes."""

from collections.abc import Iterable, Iterator

from api_exporter.exposition.text import (
    Family,
    Metric,
    Sample,
    counted,
    labels,
    timestamp,
)
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import AuditEvent

READS = ("events",)

EVENTS = Metric(
    name="netbird_api_audit_events",
    help="Number of events by activity among the newest 10,000 of the audit log.",
    source="events/audit[].activity_code",
)
LAST = Metric(
    name="netbird_api_audit_event_last_timestamp_seconds",
    help="When an activity last happened.",
    source="events/audit[].timestamp",
    alert="changes of activities that should be rare",
)


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """By activity; absent while the events are unknown."""
    events = inventory.events
    if events is None:
        return
    yield counted(
        EVENTS,
        (event.activity_code for event in events),
        lambda code: labels(activity_code=code),
    )
    yield Family(LAST, _newest(events))


def _newest(events: Iterable[AuditEvent]) -> Iterator[Sample]:
    newest: dict[str, float] = {}
    for event in events:
        time = timestamp(event.timestamp)
        if time is not None:
            code = labels(activity_code=event.activity_code)
            newest[code] = max(time, newest.get(code, time))
    yield from sorted(newest.items())
