"""What is said of refreshes that have ended."""

from prometheus_client import CollectorRegistry
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.record_cache import NO_RECORDS
from api_exporter.ports import UpstreamError
from api_exporter.refresh.outcomes import Outcomes
from api_exporter.refresh.pipeline import LastBody
from api_exporter.telemetry.account import AccountTelemetry
from tests.logbook import logbook

LOG = "access_log"


class OutcomesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.telemetry = AccountTelemetry(
            registry=CollectorRegistry(), periods={"peers": 30.0, LOG: 30.0}
        )
        self.outcomes = Outcomes(telemetry=self.telemetry, now=lambda: 0.0)

    def test_alike(self) -> None:
        """While the peers fail, another resource has a line for another reason only."""
        book = logbook(self)
        broken = UpstreamError("http_5xx", "500: broken")
        self.outcomes.failed("peers", broken, 0.0)
        self.outcomes.failed(LOG, broken, 0.0)
        self.assertEqual(1, len(book.lines()))
        self.outcomes.failed(LOG, UpstreamError("forbidden", "403: no"), 0.0)
        self.assertIn("cannot refresh access_log: 403: no", book.lines()[1])

    def test_needed_again(self) -> None:
        """What nothing needed is forgotten once, when it is requested again."""
        outcomes = self.outcomes
        outcomes.pointless(LOG)
        outcomes.needed(LOG)
        self.assertIsNone(self.telemetry.standings[LOG].supported)
        outcomes.unsupported(LOG, "this token may not read {resource}", 0.0)
        outcomes.needed(LOG)
        self.assertIs(False, self.telemetry.standings[LOG].supported)

    def test_complaints_end(self) -> None:
        """What is wrong with records is told again after they were withdrawn."""
        book = logbook(self)
        body = LastBody(
            digest=(),
            records=1,
            rejected=1,
            complaints=("[1]: no id",),
            recognized=NO_RECORDS,
        )
        for _ in range(2):
            self.outcomes.succeeded("peers", body, 0.0)
        line = "warning a record is left out: peers[1]: no id"
        self.assertEqual([line], book.lines())
        self.outcomes.withdrawn("peers", 300.0)
        self.outcomes.succeeded("peers", body, 0.0)
        self.assertEqual(2, book.lines().count(line))

    def test_pointless_after_a_failure(self) -> None:
        """The end of a failure is told where there is nothing to ask for, as before."""
        book, outcomes = logbook(self), self.outcomes
        for _ in range(2):
            outcomes.pointless(LOG)
            outcomes.pointless(LOG)
            outcomes.failed(LOG, UpstreamError("http_5xx", "500: broken"), 0.0)
        outcomes.pointless(LOG)
        words = "access_log is not requested: NetBird lists no object that needs it"
        nothing = f"info {words}"
        fails = "warning cannot refresh access_log: 500: broken reason=http_5xx"
        self.assertEqual([nothing, *[fails, nothing] * 2], book.lines())
        self.assertIsNone(self.telemetry.standings[LOG].error)
