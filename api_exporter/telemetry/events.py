"""What is known of the audit events that are written."""

from prometheus_client import CollectorRegistry, Counter


class EventsTelemetry:
    """Counters of an account whose audit events are written."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._written = Counter(
            "api_exporter_audit_events_written",
            "Audit events written to EVENTS_FILE.",
            registry=registry,
        )
        self._missed = Counter(
            "api_exporter_audit_events_missed",
            "Gaps in the audit log: more newer events than the upstream lists, or ids"
            " that began again.",
            registry=registry,
        )

    def written(self, events: int) -> None:
        """So many lines."""
        self._written.inc(events)

    def missed(self) -> None:
        """Once for each gap."""
        self._missed.inc()
