"""The metrics of both logs, and their labels."""

import json

from prometheus_client import CollectorRegistry
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.telemetry.logs import AccessLogTelemetry, EventsTelemetry
from tests.logs.paging import START, row

PREFIX = "api_exporter_access_log_"


def rows(service: str = "a", **fields: object) -> list[bytes]:
    return [json.dumps(row(1, START, service_id=service, **fields)).encode()]


class AccessLogTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.registry = CollectorRegistry()
        self.now = 7.0
        self.telemetry = AccessLogTelemetry(
            self.registry, now=lambda: self.now, writes=True
        )
        self.telemetry.set_services({"a": "web", "b": "db"})

    def value(self, name: str, service: str = "a", **labels: str) -> float | None:
        names = {"a": "web", "b": "db", "other": "other"}
        of = {"proxy_service_id": service, "proxy_service": names[service], **labels}
        return self.registry.get_sample_value(PREFIX + name, of)

    def count(self, service: str = "a", **fields: object) -> None:
        self.telemetry.count_recent_rows(rows(service, **fields), 0)

    def test_requests(self) -> None:
        """Requests are counted by protocol and class of status."""
        for code, statuses in {
            "1xx": (101,),
            "2xx": (200,),
            "3xx": (302,),
            "4xx": (404,),
            "5xx": (502,),
            "none": (0, 999, "200", -3),
        }.items():
            for number, status in enumerate(statuses, 1):
                self.count(status_code=status)
                found = self.value("requests_total", protocol="http", code=code)
                self.assertEqual(number, found, status)
        for protocol, label in (("udp", "udp"), ("", "http"), ("quic", "other")):
            self.count("b", protocol=protocol, status_code=0)
            labels = {"protocol": label, "code": "none"}
            self.assertEqual(1, self.value("requests_total", "b", **labels))

    def test_missing(self) -> None:
        """A row without fields, or none, is a request over HTTP without a status."""
        for raw, service in ((b'{"service_id":"a"}', "a"), (b"[]", "other")):
            self.telemetry.count_recent_rows([raw], 0)
            found = self.value("requests_total", service, protocol="http", code="none")
            self.assertEqual(1, found, raw)

    def test_bytes(self) -> None:
        """Invalid and missing numbers of bytes count as 0, huge ones are cut."""
        for upload, download in ((5, 7), ("x", None), (-1, 2**40), (10**400, 0)):
            self.count(bytes_upload=upload, bytes_download=download)
        self.telemetry.count_recent_rows([b'{"service_id":"a"}'], 0)
        self.assertEqual(5 + 2**53, self.value("bytes_total", direction="upload"))
        self.assertEqual(7 + 2**40, self.value("bytes_total", direction="download"))

    def test_durations(self) -> None:
        """Only HTTP has durations; a bucket includes its upper bound."""
        for milliseconds in (10, 11, 30_000, 30_001):
            self.count(duration_ms=milliseconds)
        self.count("b", protocol="tcp", duration_ms=9)
        name = "request_duration_seconds"
        ends = ["0.01", "0.05", "0.1", "0.5", "1.0", "5.0", "30.0", "+Inf"]
        found = [self.value(f"{name}_bucket", le=end) for end in ends]
        self.assertEqual([1, 2, 2, 2, 2, 2, 3, 4], found)
        self.assertEqual(4, self.value(f"{name}_count"))
        self.assertAlmostEqual(60.022, self.value(f"{name}_sum") or 0.0)
        self.assertIsNone(self.value(f"{name}_count", "b"))

    def test_denied(self) -> None:
        """Refused requests are counted by reason."""
        for status, method, reason in (
            (0, "ip_restricted", "ip_restricted"),
            (403, "country_restricted", "country_restricted"),
            (0, "geo_unavailable", "geo_unavailable"),
            (0, "crowdsec_captcha", "crowdsec"),
            (401, "password", "authentication"),
        ):
            self.count(status_code=status, auth_method_used=method)
            self.assertEqual(1, self.value("denied_total", reason=reason), reason)
        self.count(status_code=403)
        self.assertEqual(2, self.value("denied_total", reason="authentication"))
        self.count("b", auth_method_used="oidc")
        self.assertIsNone(self.value("denied_total", "b", reason="authentication"))

    def test_services(self) -> None:
        """At most fifty services have series of their own, the rest is `other`."""
        self.telemetry.set_services({str(n): f"s{n}" for n in range(55)})
        for number in range(55):
            self.count(str(number))
        self.count("unlisted")
        labels = {"protocol": "http", "code": "2xx"}
        self.assertEqual(6, self.value("requests_total", "other", **labels))
        [family] = [f for f in self.registry.collect() if f.name == f"{PREFIX}requests"]
        self.assertEqual(51, len(family.samples) / 2)  # each with its `_created`

    def test_changes(self) -> None:
        """A deleted service has no series, and a renamed one has its new name."""
        self.count("a")
        self.count("b")
        self.telemetry.set_services(None)
        labels = {"protocol": "http", "code": "2xx"}
        self.assertEqual(1, self.value("requests_total", "b", **labels))
        self.telemetry.set_services({"a": "db"})
        self.assertIsNone(self.value("requests_total", "b", **labels))
        self.assertIsNone(self.value("requests_total", "a", **labels))
        of = {"proxy_service_id": "a", "proxy_service": "db", **labels}
        found = self.registry.get_sample_value(f"{PREFIX}requests_total", of)
        self.assertEqual(1, found)

    def test_created(self) -> None:
        """The counters of a service that comes back are new ones."""
        labels = {"protocol": "http", "code": "2xx"}
        for created in (8.0, 9.0):
            for self.now in (created, created + 100):
                self.count()
            found = (
                self.value(f"requests_{n}", **labels) for n in ("total", "created")
            )
            self.assertEqual((2, created), tuple(found))
            for services in ({"b": "db"}, {"a": "web", "b": "db"}):
                self.telemetry.set_services(services)

    def test_state(self) -> None:
        """Lines, gaps, lag and skipped rows have metrics, the lag after a read."""
        self.assertIsNone(self.registry.get_sample_value(f"{PREFIX}lag_seconds"))
        self.telemetry.written(3)
        self.telemetry.missed()
        self.telemetry.writable(False)
        self.telemetry.record_progress(12.5, 4)
        unreadable = b"{", b'{"service_id":[1]}', b'{"protocol":"\xff"}'
        self.telemetry.count_recent_rows(unreadable, 2)
        for name, value in (
            ("lines_written_total", 3),
            ("lines_missed_total", 1),
            ("lag_seconds", 12.5),
            ("rows_skipped_total", 6),
        ):
            self.assertEqual(value, self.registry.get_sample_value(PREFIX + name))

    def test_without_file(self) -> None:
        """Without a file there are no metrics of lines."""
        registry = CollectorRegistry()
        AccessLogTelemetry(registry, now=lambda: 7, writes=False)
        names = {family.name for family in registry.collect()}
        self.assertFalse({name for name in names if "lines" in name})
        self.assertIn(f"{PREFIX}rows_skipped", names)


class EventsTelemetryTests(SynchronousTestCase):
    def test_start(self) -> None:
        """Before the first write, the log counts as writable."""
        registry = CollectorRegistry()
        EventsTelemetry(registry)
        values = {"writable": 1, "written_total": 0, "missed_total": 0}
        for name, expected in values.items():
            value = registry.get_sample_value(f"api_exporter_audit_events_{name}")
            self.assertEqual(expected, value, name)
