"""Request plans: accounts with one token share its limit, others do not."""

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.refresh.request_plans import RequestPlan, request_plans
from api_exporter.settings.accounts import account
from api_exporter.settings.definitions import AccountSettings
from api_exporter.settings.errors import ConfigurationError

OTHER = {"UPSTREAM_API_TOKEN": "another"}


def accounts(**given: dict[str, str]) -> list[AccountSettings]:
    errors: list[ConfigurationError] = []
    usual = {
        "UPSTREAM_API_URL": "https://netbird.example",
        "UPSTREAM_API_TOKEN": "nbp_canary",
    }
    made = [account(n, {**usual, **more}, errors) for n, more in given.items()]
    assert not errors, errors
    return [settings for settings in made if settings is not None]


def of(**given: dict[str, str]) -> list[RequestPlan]:
    by_name = request_plans(accounts(**given))
    return [by_name[name] for name in given]


class QuotaTests(SynchronousTestCase):
    def test_one_token(self) -> None:
        """One upstream and one token have one budget; otherwise budgets differ."""
        a, b, c, d = of(
            a={},
            b={"UPSTREAM_ACCOUNT": "tenant"},
            c={"UPSTREAM_API_TOKEN": "another"},
            d={"UPSTREAM_API_URL": "https://other.example"},
        )
        self.assertIs(a.budget, b.budget)
        self.assertEqual(3, len({id(x.budget) for x in (a, c, d)}))
        self.assertIsNone(a.budget.per_minute)

    def test_parted(self) -> None:
        """Accounts whose files have different tokens by now share no budget."""
        files = {name: Path(self.mktemp()) for name in "ab"}
        for file in files.values():
            file.write_text("one")
        made = accounts(
            **{
                name: {"UPSTREAM_API_TOKEN": "", "UPSTREAM_API_TOKEN_FILE": str(file)}
                for name, file in files.items()
            }
        )
        before = {name: plan.budget for name, plan in request_plans(made).items()}
        self.assertIs(before["a"], before["b"])
        files["b"].write_text("another")
        after = request_plans(made, before)
        self.assertIs(before["a"], after["a"].budget)
        self.assertIsNot(after["a"].budget, after["b"].budget)

    def test_stated_by_one(self) -> None:
        """A limit that one account states applies to its token, and to no other."""
        limit = {"UPSTREAM_RATE_LIMIT": "6/30"}
        a, b, c = of(a=limit, b={}, c={"UPSTREAM_API_TOKEN": "another"})
        self.assertEqual(5.4, a.budget.per_minute)
        for together in (a, b):
            self.assertIn("to fit 6 requests a minute", together.intervals_note)
            self.assertLess(600.0, together.selection.intervals["users"])
        self.assertEqual(
            ("", 600.0), (c.intervals_note, c.selection.intervals["users"])
        )

    def test_quick(self) -> None:
        """Short intervals without a stated limit have a warning with the requests."""
        quick = {"REFRESH_INTERVALS": "peers=1s"}
        usual, warned, limited = of(
            a={}, b=quick, c={**quick, "UPSTREAM_RATE_LIMIT": "90/90", **OTHER}
        )
        self.assertEqual(("", ""), (usual.requests_warning, limited.requests_warning))
        self.assertIn("need 63 requests a minute", warned.requests_warning)

    def test_intervals(self) -> None:
        """Resources that some settings add, remove or request at another interval."""
        events = {"EVENTS_FILE": "/var/log/e"}
        log = {"ACCESS_LOG_METRICS": "true", "ACCESS_LOG_REQUESTS_PER_MINUTE": "6"}
        for given, name, interval in (
            ({}, "access_log", None),
            (log, "access_log", 10.0),
            ({}, "access_tokens", 600.0),
            ({"UPSTREAM_ACCOUNT": "tenant"}, "access_tokens", None),
            ({}, "events", None),
            (events, "events", 60.0),
            ({**events, "REFRESH_INTERVALS": "events=5m"}, "events", 300.0),
        ):
            usual, plan = of(usual={}, changed=given)
            self.assertEqual(interval, plan.selection.intervals.get(name), given)
            self.assertEqual(usual.selection.collectors, plan.selection.collectors)
