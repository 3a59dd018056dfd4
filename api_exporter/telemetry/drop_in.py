"""Metrics of netbird-api-exporter's scrapes: here of refreshes, with `drop_in`."""

from prometheus_client import CollectorRegistry, Counter, Histogram

SUBJECTS = ("groups", "users", "networks", "setup_keys", "policies", "routes")
"""Of the names of metrics, and of the resources that are read for them."""

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Go's default, which that program has."""


class ScrapesTelemetry:
    """Errors and durations of an account, under the other program's names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._errors = {
            subject: Counter(
                f"netbird_{subject}_scrape_errors",
                f"Number of failed refreshes of {subject}",
                ["error_type"],
                registry=registry,
            ).labels(f"fetch_{subject}")
            for subject in SUBJECTS
        }
        self._seconds = {
            subject: Histogram(
                f"netbird_{subject}_scrape_duration_seconds",
                f"Duration of a refresh of {subject} (fetch, decode and render), in"
                " seconds",
                buckets=BUCKETS,
                registry=registry,
            )
            for subject in SUBJECTS
        }

    def ended(self, resource: str, seconds: float, *, failed: bool) -> None:
        if resource in self._seconds:
            self._seconds[resource].observe(seconds)
            if failed:
                self._errors[resource].inc()
