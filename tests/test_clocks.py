"""Log lines with the name of their account."""

from twisted.logger import Logger
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.clocks import log_of
from tests.logbook import logbook

LOG = Logger("api_exporter.refresh")


class LogTests(SynchronousTestCase):
    def test_account(self) -> None:
        """A line contains the account's name, unless it is the only one."""
        book = logbook(self)
        for account in ("acme", ""):
            log = log_of(account, LOG)
            self.assertEqual("api_exporter.refresh", log.namespace)
            log.warn("cannot {what}", what="read", reason="auth")
        lines = [f"warning cannot read{x} reason=auth" for x in (" account=acme", "")]
        self.assertEqual(lines, book.lines())

    def test_failure(self) -> None:
        """A traceback contains the account's name."""
        book = logbook(self)
        try:
            raise ValueError
        except ValueError:
            log_of("acme", LOG).failure("a defect")
        (line,) = book.lines()
        self.assertIn("account=acme", line)
        self.assertEqual(1, len(self.flushLoggedErrors(ValueError)))
