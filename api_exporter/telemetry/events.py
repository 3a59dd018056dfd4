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
            "Number of audit events written to EVENTS_FILE",
            registry=registry,
        ).inc
        self.missed = Counter(
            "api_exporter_audit_events_missed",
            "Number of gaps in the audit log and of events that cannot be read",
            registry=registry,
        ).inc
        self.writable = Gauge(
            "api_exporter_audit_events_writable",
            "Whether the last write to EVENTS_FILE succeeded (1 = yes, 0 = no)",
            registry=registry,
        ).set
        self.writable(1)

    def took(self, rows: Iterable[bytes], old: int) -> None:
        """Nothing is counted by what it is."""

    def read(self, lag: float, skipped: int) -> None:
        """A list is whole: nothing is behind."""
