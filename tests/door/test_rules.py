"""Who may see what: the whole table."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.door.rules import Credential, Rules, Verdict, rules
from api_exporter.serving.authorization import ALL

PASSWORD = Credential(accounts=ALL)
ACME = Credential(accounts=frozenset({"acme"}))

PATHS = (
    "/",
    "/health",
    "/ready",
    "/metrics",
    "/sd",
    "/sd/accounts",
    "/runbooks",
    "/debug",
    "/debug/pprof/",
    "/debug/pprof/heap",
    "/nothing",
)


class RulesTests(SynchronousTestCase):
    def assert_table(self, rules: Rules, table: dict[str, tuple[Verdict, ...]]) -> None:
        """For a stranger; with a token for all; with acme's, asking for none, for its
        own, and for another's account.
        """
        for path, expected in table.items():
            found = (
                rules.may(None, path, None),
                rules.may(PASSWORD, path, None),
                rules.may(ACME, path, None),
                rules.may(ACME, path, "acme"),
                rules.may(ACME, path, "beta"),
            )
            self.assertEqual(expected, found, path)

    def test_table(self) -> None:
        """Everything asks, but for the pulse; a limited token opens its own alone."""
        no: Verdict = "unauthorized"
        none: Verdict = "not_found"
        shut: Verdict = "forbidden"
        self.assert_table(
            Rules("/metrics"),
            {
                "/": (no, "whole", "whole", "whole", none),
                "/health": ("bare", "whole", "bare", "whole", none),
                "/ready": ("bare", "whole", "bare", "whole", none),
                "/metrics": (no, "whole", shut, "whole", none),
                "/sd": (no, "whole", shut, "whole", none),
                "/sd/accounts": (no, "whole", "whole", "whole", none),
                "/runbooks": (no, "whole", "whole", "whole", none),
                "/debug": (no, "whole", shut, shut, shut),
                "/debug/pprof/": (no, "whole", shut, shut, shut),
                "/debug/pprof/heap": (no, "whole", shut, shut, shut),
                "/nothing": (no, "whole", none, "whole", none),
            },
        )

    def test_no_names(self) -> None:
        """A stranger cannot try names of accounts."""
        for path in PATHS:
            for account in ("acme", "nobody", ""):
                found = Rules("/metrics").may(None, path, account)
                self.assertEqual("unauthorized", found)

    def test_open(self) -> None:
        """What is open is open to everybody, with whatever credential."""
        opened = rules("/x/metrics", frozenset({"/x/metrics", "/sd"}))
        for path in ("/x/metrics", "/sd", "/sd/accounts"):
            for credential in (None, PASSWORD, ACME):
                for account in (None, "acme", "beta"):
                    self.assertEqual("whole", opened.may(credential, path, account))
        self.assertEqual("unauthorized", opened.may(None, "/metrics", None))
        self.assertEqual("unauthorized", opened.may(None, "/x/metrics/", None))
        self.assertEqual("whole", rules("/m", frozenset({"/m"})).may(None, "/m", None))

    def test_never_open(self) -> None:
        """Only the metrics and the list of targets can be opened."""
        for path in ("/debug/pprof", "/", "/health", "/metrics/", "/sd/accounts"):
            with self.assertRaises(ValueError, msg=path):
                rules("/metrics", frozenset({path}))

    @given(st.text(), st.none() | st.text())
    def test_stranger(self, path: str, account: str | None) -> None:
        """Whatever a stranger asks for, no page is shown whole."""
        found = Rules("/metrics").may(None, f"/{path}", account)
        self.assertIn(found, {"bare", "unauthorized"})

    @given(st.text(), st.text())
    def test_limited(self, path: str, account: str) -> None:
        """Whatever a limited token asks for, no other account is shown."""
        found = Rules("/metrics").may(ACME, f"/{path}", account)
        self.assertEqual(account == "acme", found == "whole")
