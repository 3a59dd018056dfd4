"""Audit events. A response may have five megabytes."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from api_exporter.collectors.rows import ObjectKind
from api_exporter.exposition.text import Sample, labels, timestamp
from api_exporter.netbird.bodies import ListDecoder
from api_exporter.netbird.records import Instant
from api_exporter.netbird.resources import Resource
from api_exporter.subjects import Subject


class AuditEvent(Struct, frozen=True, gc=False, kw_only=True):
    """An event of the audit log (`/api/events/audit`)."""

    id: str
    activity_code: str = ""
    timestamp: Instant = None


AUDIT_EVENTS = Resource(
    "events", "api/events/audit", ListDecoder(AuditEvent), permission="events", place=5
)

EVENT_FIELDS = {"initiator_email": "email", "initiator_name": "name"}

META_FIELDS = {
    "email": "email",
    "username": "name",
    "user_name": "name",
    "location_city_name": "city",
    "location_geo_name_id": "city",
    "location_connection_ip": "connection_ip",
}
"""The kind of fields in the `meta` of an event."""

EVENT = ObjectKind[AuditEvent](AUDIT_EVENTS)


def _newest(events: Iterable[AuditEvent]) -> Iterator[Sample]:
    newest: dict[str, float] = {}
    for event in events:
        time = timestamp(event.timestamp)
        if time is not None:
            code = labels(activity_code=event.activity_code)
            newest[code] = max(time, newest.get(code, time))
    yield from sorted(newest.items())


FAMILIES = (
    EVENT.count(
        "netbird_api_audit_events",
        "Number of events by activity among the newest 10,000 events of the audit log",
        {"activity_code": "activity_code"},
    ),
    EVENT.samples(
        "netbird_api_audit_event_last_timestamp_seconds",
        "Time of the newest event of this activity, in seconds since 1970",
        "events/audit[].timestamp",
        _newest,
        alert="changes of activities that should be rare",
    ),
)

SUBJECT = Subject(__name__, (AUDIT_EVENTS,), FAMILIES, default=False)
