"""Log lines with the name of their account."""

from twisted.logger import Logger
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.world import log_of
from tests.logbook import logbook

LOG = Logger("api_exporter.refresh")


class LogTests(SynchronousTestCase):
    def test_account(self) -> None:
        """A line contains the account's name, unless it is the only one."""
        book = logbook(self)
        log_of("acme", LOG).warn("cannot {what}", what="read", reason="auth")
        log_of("", LOG).warn("cannot {what}", what="read", reason="auth")
        self.assertEqual(
            [
                "warning cannot read account=acme reason=auth",
                "warning cannot read reason=auth",
            ],
            book.lines(),
        )

    def test_namespace(self) -> None:
        """The logger keeps its namespace, which JSON lines contain."""
        for account in ("", "acme"):
            self.assertEqual("api_exporter.refresh", log_of(account, LOG).namespace)

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
