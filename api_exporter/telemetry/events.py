"""What is known of the audit events that are written."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class EventsTelemetry:
    """Metrics of an account whose audit events are written."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._written = Counter(
            "api_exporter_audit_events_written",
            "Audit events written to EVENTS_FILE.",
            registry=registry,
        )
        self._missed = Counter(
            "api_exporter_audit_events_missed",
            "Gaps in the audit log: more newer events than the upstream lists, ids that"
            " began again, and each event that cannot be read.",
            registry=registry,
        )

        self._writable = Gauge(
            "api_exporter_audit_events_writable",
            "Whether audit events could be written to EVENTS_FILE when last tried.",
            registry=registry,
        )
        self._writable.set(1)

    def written(self, events: int) -> None:
        """So many lines."""
        self._written.inc(events)

    def missed(self, gaps: int = 1) -> None:
        """Once for each gap, and for each event that cannot be read."""
        self._missed.inc(gaps)

    def writable(self, is_so: bool) -> None:
        """Whether it could be written."""
        self._writable.set(is_so)
