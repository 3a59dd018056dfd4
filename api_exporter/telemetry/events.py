"""Metrics of the written audit events."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge


class EventsTelemetry:
    """Metrics of the audit log of an account.

    Attributes:
        written: called with the number of lines.
        missed: called with the number of gaps and unreadable events.
        writable: called with whether the last write succeeded.
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

    def count_recent_rows(self, rows: Iterable[bytes], old: int) -> None:
        """Do nothing: there are no metrics of single events."""

    def record_progress(self, lag: float, skipped: int) -> None:
        """Do nothing: the list of events is one page, so it has no backlog."""
