"""Log lines that tell of which account they are."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.telemetry.log import log_of
from tests.logbook import logbook


class LogTests(SynchronousTestCase):
    def test_account(self) -> None:
        """A line of an account ends with its name; of the only one it does not."""
        book = logbook(self)
        log_of("acme").warn("cannot {what}", what="read", reason="auth")
        log_of("").warn("cannot {what}", what="read", reason="auth")
        self.assertEqual(
            [
                "warning cannot read account=acme reason=auth",
                "warning cannot read reason=auth",
            ],
            book.lines(),
        )

    def test_failure(self) -> None:
        """A traceback is an account's, too."""
        book = logbook(self)
        try:
            raise ValueError
        except ValueError:
            log_of("acme").failure("a defect")
        (line,) = book.lines()
        self.assertIn("account=acme", line)
        self.assertEqual(1, len(self.flushLoggedErrors(ValueError)))
