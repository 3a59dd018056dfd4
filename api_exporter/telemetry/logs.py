"""Metrics of the logs: the written audit events, and requests to the reverse proxy.

Labels never contain a path, host, address or user. The families of the access log are
made when rows have been read, not at each scrape.
"""

from bisect import bisect_left
from collections import Counter as Count
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from api_exporter.netbird.elements import DECODE_ERRORS
from api_exporter.ports import Now
from api_exporter.telemetry.gauges import OwnFamily, OwnMetrics

MAX_SERVICES = 50
"""Maximum number of services with series of their own; the rest is `other`."""

OTHER = "other"

BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)
"""Upper bounds of the duration histogram in seconds."""

_DENIAL_REASONS = {
    "ip_restricted": "ip_restricted",
    "country_restricted": "country_restricted",
    "geo_unavailable": "geo_unavailable",
    "crowdsec_ban": "crowdsec",
    "crowdsec_captcha": "crowdsec",
    "crowdsec_throttle": "crowdsec",
    "crowdsec_unavailable": "crowdsec",
}
"""Label values by `auth_method_used`, for refused requests."""

_MAX_COUNT = 2**53
"""The maximum of a number in a row: a sum of larger ones may not fit into a double."""

_SERVICE_LABELS = ("proxy_service_id", "proxy_service")


class _Row(Struct, frozen=True, gc=False):
    """The counted fields of a row. Any type is accepted: NetBird may be newer."""

    service_id: object = ""
    protocol: object = ""
    status_code: object = 0
    duration_ms: object = 0
    bytes_upload: object = 0
    bytes_download: object = 0
    auth_method_used: object = ""


_DECODER = msgspec.json.Decoder(_Row)


class _Service:
    def __init__(self, created: float) -> None:
        self.created = created
        self.requests: Count[tuple[str, str]] = Count()
        self.bytes = {"upload": 0, "download": 0}
        self.durations = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0
        self.denied: Count[str] = Count()

    def count(self, row: _Row) -> None:
        status = _count_of(row.status_code)
        protocol = str(row.protocol or "http")
        if protocol not in {"http", "tcp", "udp", "tls"}:
            protocol = OTHER
        code = f"{status // 100}xx" if 100 <= status < 600 else "none"
        self.requests[protocol, code] += 1
        self.bytes["upload"] += _count_of(row.bytes_upload)
        self.bytes["download"] += _count_of(row.bytes_download)
        if protocol == "http":
            seconds = _count_of(row.duration_ms) / 1e3
            self.durations[bisect_left(BUCKETS, seconds)] += 1
            self.seconds += seconds
        reason = _DENIAL_REASONS.get(str(row.auth_method_used))
        if reason is None and status in {401, 403}:
            reason = "authentication"
        if reason is not None:
            self.denied[reason] += 1

    def buckets(self) -> list[tuple[str, float]]:
        """Return cumulative counts by upper bound, in the order of OpenMetrics."""
        total, found = 0, []
        ends = [*(repr(bucket) for bucket in BUCKETS), "+Inf"]
        for end, count in zip(ends, self.durations, strict=True):
            total += count
            found.append((end, float(total)))
        return found


class AccessLogTelemetry(Collector):
    """Metrics of the access log of an account."""

    def __init__(self, registry: CollectorRegistry, *, now: Now, writes: bool) -> None:
        self._now = now
        lines = registry if writes else None
        self.written = Counter(
            "api_exporter_access_log_lines_written",
            "Number of rows of the access log written to ACCESS_LOG_FILE",
            registry=lines,
        ).inc
        self.missed = Counter(
            "api_exporter_access_log_lines_missed",
            "Number of gaps in the access log and of rows that cannot be read",
            registry=lines,
        ).inc
        self._skipped = Counter(
            "api_exporter_access_log_rows_skipped",
            "Number of rows of the access log that no other family counts because they"
            " were too old (10 minutes) or in a backlog",
            registry=registry,
        ).inc
        self._lag: float | None = None
        OwnMetrics(
            registry,
            OwnFamily(
                "api_exporter_access_log_lag_seconds",
                "Age in seconds of the newest row of the access log when it was read,"
                " or of the oldest unwritten row (0 = no backlog)",
                lambda: self._lag,
            ),
        )
        self._service_names: Mapping[str, str] = {}
        self._counted: dict[str, str] = {}
        self._services: dict[str, _Service] = {}
        self._families: Sequence[Metric] = self._make_families()
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        return self._families

    def writable(self, _: bool) -> None:
        """Do nothing: the lag shows a failed write."""

    def record_progress(self, lag: float, skipped: int) -> None:
        """Record a page: its lag in seconds, and the number of skipped rows."""
        self._lag = lag
        self._skipped(skipped)

    def set_services(self, services: Mapping[str, str] | None) -> None:
        """Set the names of all services by id; None while they are unknown."""
        if services is None or services == self._service_names:
            return
        self._service_names = services
        for id_ in [id_ for id_ in self._counted if id_ not in services]:
            del self._counted[id_], self._services[id_]
        for service in self._counted:
            self._counted[service] = services[service]
        self._families = self._make_families()

    def count_recent_rows(self, rows: Iterable[bytes], old: int) -> None:
        """Count rows; `old` more rows were too old to be counted."""
        self._skipped(old)
        for raw in rows:
            try:
                row = _DECODER.decode(raw)
            except DECODE_ERRORS:
                row = _Row()
            self._service(str(row.service_id)).count(row)
        self._families = self._make_families()

    def _service(self, id_: str) -> _Service:
        if id_ not in self._counted:
            if id_ in self._service_names and len(self._counted) < MAX_SERVICES:
                self._counted[id_] = self._service_names[id_]
            else:
                id_ = OTHER
        if id_ not in self._services:
            self._services[id_] = _Service(self._now())
        return self._services[id_]

    def _make_families(self) -> Sequence[Metric]:
        requests = CounterMetricFamily(
            "api_exporter_access_log_requests",
            "Number of requests and connections in the access log",
            labels=(*_SERVICE_LABELS, "protocol", "code"),
        )
        transferred = CounterMetricFamily(
            "api_exporter_access_log_bytes",
            "Number of bytes in bodies of requests and connections in the access log",
            labels=(*_SERVICE_LABELS, "direction"),
        )
        durations = HistogramMetricFamily(
            "api_exporter_access_log_request_duration_seconds",
            "Duration of HTTP requests in the access log, in seconds",
            labels=_SERVICE_LABELS,
        )
        denied = CounterMetricFamily(
            "api_exporter_access_log_denied",
            "Number of requests and connections that the reverse proxy or its service"
            " refused",
            labels=(*_SERVICE_LABELS, "reason"),
        )
        for id_, service in self._services.items():
            service_labels = id_, self._counted.get(id_, OTHER)
            since = service.created
            for (protocol, code), count in service.requests.items():
                requests.add_metric((*service_labels, protocol, code), count, since)
            for direction, size in service.bytes.items():
                transferred.add_metric((*service_labels, direction), size, since)
            if any(service.durations):
                durations.add_metric(service_labels, service.buckets(), service.seconds)
            for reason, count in service.denied.items():
                denied.add_metric((*service_labels, reason), count, since)
        return requests, transferred, durations, denied


def _count_of(value: object) -> int:
    return min(max(0, value), _MAX_COUNT) if isinstance(value, int) else 0


class EventsTelemetry:
    """Metrics of the audit log of an account."""

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
