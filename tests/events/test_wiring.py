"""The construction of an account's logs."""

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.events.listing import NANOSECONDS_PER_SECOND, format_time
from api_exporter.events.wiring import LogFactory
from api_exporter.netbird.inventory import Inventory
from api_exporter.ports import ResponseBody
from api_exporter.refresh.compute import compute_at_once
from api_exporter.settings.environment import read_settings
from tests.events.shared import NOW


class JournalsTests(SynchronousTestCase):
    def test_counted(self) -> None:
        """Without a file, rows are requested from the start time on."""
        settings = read_settings(
            {
                "UPSTREAM_API_URL": "https://netbird.example",
                "UPSTREAM_API_TOKEN": "nbp_token",
                "ACCESS_LOG_METRICS": "true",
            }
        )
        journals = LogFactory(
            MemoryReactorClock(),  # type: ignore[arg-type]
            ThreadPool(),  # never starts: no file is written
            compute_at_once,
            lambda: NOW,
        )
        log = journals.access_log(
            settings.accounts[""], CollectorRegistry(), Logger(), period=10.0
        )
        asked: list[str] = []

        async def fetch(path: str, _: float) -> ResponseBody:
            asked.append(path)
            return ResponseBody(
                b'{"data":[],"page":1,"total_records":0,"total_pages":0}'
            )

        log.journal.startService()
        self.successResultOf(
            Deferred.fromCoroutine(log.fetch(fetch, "events/proxy", 1.0, Inventory()))
        )
        self.assertTrue(
            asked[0].endswith(
                f"&start_date={format_time(int(NOW) * NANOSECONDS_PER_SECOND)}"
            )
        )
