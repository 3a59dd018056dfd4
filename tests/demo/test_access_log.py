"""The access log of the simulated reverse proxy."""

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.demo.api import access_log_page
from api_exporter.logs.listing import NANOSECONDS_PER_SECOND, format_time

NOW = 1_795_287_600.0

META = ("page", "page_size", "total_pages", "total_records")

SERVICES = ("busy", "second", "third")


def request(query: str, now: float = NOW, services: tuple[str, ...] = SERVICES) -> Any:
    return json.loads(access_log_page(query, services, now))


ROWS = [row for n in range(1, 20) for row in request(f"page={n}")["data"]]
"""The newest rows."""

SLOW_ROW = {
    "bytes_download": 39411,
    "bytes_upload": 511,
    "country_code": "FR",
    "duration_ms": 925,
    "host": "app.example.test",
    "id": "d2i0000000006b01a14f",
    "method": "GET",
    "path": "/7",
    "protocol": "http",
    "service_id": "second",
    "reason": "Authentication failed",
    "source_ip": "203.0.113.111",
    "status_code": 401,
    "timestamp": "2026-11-21T13:49:03Z",
}


class PageTests(SynchronousTestCase):
    def test_pages(self) -> None:
        """The log has a request a second for an hour, newest first, without a gap."""
        found = request("")
        self.assertEqual((1, 50, 73, 3601), tuple(found[name] for name in META))
        times = [row["timestamp"] for row in found["data"]]
        self.assertEqual((50, sorted(times, reverse=True)), (len(times), times))
        queries = (f"sort_order=asc&page_size=100&page={n}" for n in range(1, 39))
        ids = [row["id"] for query in queries for row in request(query)["data"]]
        self.assertEqual((3601, 3601), (len(ids), len(set(ids))))
        largest = request("page_size=100")["data"]
        self.assertEqual(largest, request("page_size=500")["data"])

    def test_row(self) -> None:
        """A row does not change. A few requests take about a second."""
        at = 1_795_268_943
        start = format_time(at * NANOSECONDS_PER_SECOND)
        for now in (at, at + 60):
            found = request(f"sort_order=asc&start_date={start}", now)["data"]
            self.assertEqual(SLOW_ROW, found[0])

    def test_services(self) -> None:
        """Requests are of all services; without a service there are none."""
        for services in ((), ("only",), SERVICES):
            rows = request("page_size=100", services=services)["data"]
            self.assertEqual({*services}, {row["service_id"] for row in rows})

    def test_statuses(self) -> None:
        """Most requests succeed; the others have a reason."""
        succeeded = [row["status_code"] == 200 for row in ROWS]
        self.assertGreater(sum(succeeded), 0.75 * len(ROWS))
        self.assertEqual(succeeded, ["reason" not in row for row in ROWS])
