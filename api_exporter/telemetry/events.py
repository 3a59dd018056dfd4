"""Metrics of the audit events that are written."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge


class EventsTelemetry:
    """Metrics of an account whose audit events are written.

    Attributes:
        written: called with a number of lines.
        missed: called once for each gap, and for each event that cannot be read.
        writable: called with whether events could be written.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.written = Counter(
            "api_exporter_audit_events_written",
            "Audit events written to EVENTS_FILE.",
            registry=registry,
        ).inc
        self.missed = Counter(
            "api_exporter_audit_events_missed",
            "Gaps in the audit log: more newer events than the upstream lists, ids that"
            " began again, and each event that cannot be read.",
            registry=registry,
        ).inc
        self.writable = Gauge(
            "api_exporter_audit_events_writable",
            "Whether audit events could be written to EVENTS_FILE when last tried.",
            registry=registry,
        ).set
        self.writable(1)

    def took(self, rows: Iterable[bytes], old: int) -> None:
        """Nothing is counted by what it is."""

    def read(self, lag: float, skipped: int) -> None:
        """A list is whole: nothing is behind."""
