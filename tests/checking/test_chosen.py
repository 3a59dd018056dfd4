"""The accounts that `--check` and `--once` read."""

import io
import sys

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.checking.report import choose
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.environment import read_settings


def account() -> AccountSettings:
    environ = {"UPSTREAM_API_URL": "http://api.example", "UPSTREAM_API_TOKEN": "token"}
    return read_settings(environ).accounts[""]


class ChosenTests(SynchronousTestCase):
    def refused(self, *names: str, wanted: str | None, single: bool) -> str:
        """Return the error."""
        told = io.StringIO()
        self.patch(sys, "stderr", told)
        with self.assertRaises(SystemExit) as raised:
            choose(dict.fromkeys(names, account()), wanted, single=single)
        self.assertEqual(78, raised.exception.code)
        return told.getvalue()

    def test_all(self) -> None:
        """The result is all accounts, the named one, or the only one."""
        both = dict.fromkeys(("acme", "beta"), account())
        self.assertEqual(both, choose(both, None, single=False))
        self.assertEqual(["acme"], list(choose(both, "acme", single=True)))
        only = {"": account()}
        self.assertEqual(only, choose(only, None, single=True))
        self.assertEqual({}, choose({}, None, single=False))

    def test_refused(self) -> None:
        """An impossible choice is reported with the names that exist."""
        for names, wanted, words in (
            (("acme", "beta"), "x", "'x' is not allowed: it must be one of acme, beta"),
            (("acme",), "", "'' is not allowed: it must be one of acme"),
            (("",), "x", "'x' is not allowed: no account has a name"),
            (("acme", "beta"), None, "--account, which must be one of acme, beta"),
        ):
            told = self.refused(*names, wanted=wanted, single=True)
            self.assertTrue(told.endswith(f"{words}\n"), told)

    def test_empty_shard(self) -> None:
        """A shard without accounts cannot be read."""
        for wanted in (None, "acme"):
            told = self.refused(wanted=wanted, single=True)
            self.assertIn("this shard has no accounts", told)
