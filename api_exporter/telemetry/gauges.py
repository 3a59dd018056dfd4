"""The gauges of all resources, made afresh for every page."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from api_exporter.netbird.resources import UP
from api_exporter.telemetry.standing import Standing


class Gauges(Collector):
    """Absent until there is something to tell."""

    def __init__(
        self,
        standings: Mapping[str, Standing],
        budget: Callable[[], float | None],
    ) -> None:
        self._standings = standings
        self._budget = budget

    def collect(self) -> Iterator[Metric]:
        up = self._standings[UP].up
        if up is not None:
            yield GaugeMetricFamily(
                "netbird_api_up",
                "Whether the newest attempt to read the peers succeeded, and their"
                " metrics have not ended.",
                value=up,
            )
        budget = self._budget()
        if budget is not None:
            yield GaugeMetricFamily(
                "api_exporter_request_budget_per_minute",
                "Requests a minute that we allow ourselves, all accounts of the token"
                " together: since one was refused, or where the limit is stated.",
                value=budget,
            )
        for name, words, value in _GAUGES:
            family = GaugeMetricFamily(name, words, labels=["resource"])
            for resource, standing in self._standings.items():
                known = value(standing)
                if known is not None:
                    family.add_metric([resource], known)
            yield family


_GAUGES = (
    (
        "api_exporter_resource_up",
        "Whether the newest refresh succeeded and the metrics have not ended.",
        lambda s: s.up,
    ),
    (
        "api_exporter_resource_supported",
        "Whether this upstream has the resource for this token.",
        lambda s: s.supported,
    ),
    (
        "api_exporter_resource_records",
        "Records in the newest good answer.",
        lambda s: s.last_success and s.records,
    ),
    (
        "api_exporter_resource_rejected_records",
        "Records of the newest good answer that could not be decoded and are left out.",
        lambda s: s.last_success and s.rejected,
    ),
    (
        "api_exporter_resource_last_success_timestamp_seconds",
        "When the resource was last refreshed; its metrics are as old as that.",
        lambda s: s.last_success,
    ),
    (
        "api_exporter_resource_refresh_interval_seconds",
        "Configured time between two refreshes.",
        lambda s: s.period,
    ),
    (
        "api_exporter_refresh_duration_seconds",
        "Duration of the newest refresh: fetch, decode and render.",
        lambda s: s.seconds if s.ended is not None else None,
    ),
)
