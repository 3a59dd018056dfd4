"""The pages that each client may see."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.authorization import PROBE_PATHS, Decision, authorize
from api_exporter.ports import ALL_ACCOUNTS, Accounts

ACME = frozenset({"acme"})

PATHS = st.text() | st.sampled_from(
    ("", "health", "ready", "metrics", "sd", "lookup", "findings", "status.json")
)
"""Paths without their first slash."""


def verdict(allowed: Accounts | None, path: str, account: str | None) -> Decision:
    return authorize(allowed, path, account, metrics_path="/metrics", has_group=False)


class AuthorizationTests(SynchronousTestCase):
    def test_table(self) -> None:
        """Pages need credentials, probes do not; a limited token shows its accounts."""
        no: Decision = "unauthorized"
        none: Decision = "not_found"
        shut: Decision = "forbidden"
        status: Decision = "status_only"
        # No token; all accounts; acme's token for none, acme and beta.
        rows: dict[tuple[Decision, ...], str] = {
            (status, "full", status, "full", none): "/health /ready",
            (no, "full", "full", "full", none): "/ /sd/accounts /runbooks /status.json"
            " /status.schema.json",
            (
                no,
                "full",
                shut,
                "full",
                none,
            ): "/metrics /sd /findings /lookup /lookup.csv /lookup.json",
            (no, "full", shut, shut, shut): "/debug /debug/pprof/ /debug/pprof/heap",
            (no, "full", none, "full", none): "/nothing",
        }
        for expected, paths in rows.items():
            for path in paths.split():
                found = (
                    verdict(None, path, None),
                    verdict(ALL_ACCOUNTS, path, None),
                    *(verdict(ACME, path, name) for name in (None, "acme", "beta")),
                )
                self.assertEqual(expected, found, path)

    @given(PATHS, st.none() | st.sampled_from(("acme", "")) | st.text())
    def test_stranger(self, path: str, account: str | None) -> None:
        """Without credentials, no path shows a full page or whether a name exists."""
        found = verdict(None, f"/{path}", account)
        shown = account is None and path in {"health", "ready"}
        self.assertEqual("status_only" if shown else "unauthorized", found)

    def test_group(self) -> None:
        """The state of a group needs credentials, on each path of a probe."""
        for path in PROBE_PATHS:
            found = authorize(None, path, None, metrics_path="/metrics", has_group=True)
            self.assertEqual("unauthorized", found)
