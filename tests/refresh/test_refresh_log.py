"""The log lines of refreshes that have ended."""

from prometheus_client import CollectorRegistry
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.record_cache import NO_RECORDS
from api_exporter.ports import UpstreamError
from api_exporter.refresh.life import FreshnessByName, LastBody, lives
from api_exporter.refresh.refresh_log import RefreshLog
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.world import World
from tests.logbook import logbook

LOG = "access_log"


def body(error: str) -> LastBody:
    """Return a body with a record that was rejected; with none if there is no error."""
    return LastBody(
        digest=(),
        records=1,
        rejected=bool(error),
        errors=(error,) if error else (),
        recognized=NO_RECORDS,
    )


class RefreshLogTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.wall_time = Clock(), 0.0
        mine = lives({"peers": 30.0, LOG: 30.0})
        self.telemetry = AccountTelemetry(
            registry=CollectorRegistry(), freshness=FreshnessByName(mine)
        )
        self.refresh_log = RefreshLog(
            lives=mine,
            telemetry=self.telemetry,
            world=World(self.clock, lambda: self.wall_time, lambda: 0.5),
        )

    def test_alike(self) -> None:
        """While the peers fail, another resource is logged only for another reason."""
        book = logbook(self)
        broken = UpstreamError("http_5xx", "500: broken")
        self.refresh_log.failed("peers", broken, 0.0)
        self.refresh_log.failed(LOG, broken, 0.0)
        self.assertEqual(1, len(book.lines()))
        self.refresh_log.failed(LOG, UpstreamError("forbidden", "403: no"), 0.0)
        self.assertIn("cannot refresh access_log: 403: no", book.lines()[1])

    def test_needed_again(self) -> None:
        """The freshness of an unneeded resource is reset once, when it is needed."""
        refresh_log = self.refresh_log
        refresh_log.pointless(LOG)
        refresh_log.needed(LOG)
        self.assertIsNone(self.telemetry.freshness[LOG].supported)
        refresh_log.unsupported(LOG, "this token may not read {resource}", 0.0)
        refresh_log.needed(LOG)
        self.assertIs(False, self.telemetry.freshness[LOG].supported)

    def test_withheld(self) -> None:
        """A withheld resource is logged once, and is reset when it is needed again."""
        book = logbook(self)
        for _ in range(2):
            self.refresh_log.restricted(LOG)
        freshness = self.telemetry.freshness[LOG]
        self.assertEqual((True, 0.0), (freshness.restricted, freshness.seconds))
        words = "is withheld: the token's user may not read all of it"
        self.assertEqual([f"info {LOG} {words}"], book.lines())
        self.refresh_log.needed(LOG)
        self.assertFalse(self.telemetry.freshness[LOG].restricted)

    def test_rejections(self) -> None:
        """Errors of records are logged when they begin, and an hour later if others
        appear or the same appear again. They are logged after a withdrawal, too.
        """
        book = logbook(self)
        for now, error, lines in (
            (0.0, "[1]: no id", 1),
            (3599.0, "[1]: no name", 1),
            (3600.0, "[1]: no name", 2),
            (9000.0, "[1]: no name", 2),
            (9030.0, "", 2),
            (9060.0, "[2]: no name", 3),
            (9090.0, "", 3),
            (12659.0, "[1]: no name", 3),
        ):
            self.clock.rightNow, self.wall_time = now, -now
            self.refresh_log.succeeded("peers", body(error), 0.0)
            self.assertEqual(lines, len(book.lines()), now)
        self.refresh_log.expired("peers", 300.0)
        self.refresh_log.succeeded("peers", body("[7]: no name"), 0.0)
        line = "warning a record is left out: peers[7]: no name"
        self.assertEqual(line, book.lines()[-2])

    def test_pointless_after_a_failure(self) -> None:
        """The end of a failure is logged if the resource is no longer requested."""
        book, refresh_log = logbook(self), self.refresh_log
        for _ in range(2):
            refresh_log.pointless(LOG)
            refresh_log.pointless(LOG)
            refresh_log.failed(LOG, UpstreamError("http_5xx", "500: broken"), 0.0)
        refresh_log.pointless(LOG)
        words = "access_log is not requested: NetBird lists no object that needs it"
        nothing = f"info {words}"
        fails = "warning cannot refresh access_log: 500: broken reason=http_5xx"
        self.assertEqual([nothing, *[fails, nothing] * 2], book.lines())
        self.assertIsNone(self.telemetry.freshness[LOG].error)
