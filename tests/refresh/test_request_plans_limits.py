"""Intervals that are lengthened so that all accounts of a token fit into its limit."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.resources import ACCESS_LOG, PEERS
from api_exporter.refresh.request_plans import (
    MAX_LENGTHENED,
    PLANNED_FRACTION,
    describe_access_log,
    describe_cost,
    describe_fitted,
    fit_intervals,
    per_minute,
)
from api_exporter.subjects.table import RESOURCE_BY_NAME, RESOURCES, RULES
from tests import tries

DEFAULT = {r.name: r.interval for r in RESOURCES if r.name != "events"}

WITHOUT_AGENTS = {
    name: interval
    for name, interval in DEFAULT.items()
    if not name.startswith(("agent_", "user_invites", "identity_providers"))
}
"""An account that does not use the Agent Network."""

ACCOUNTS = st.lists(
    st.dictionaries(
        st.sampled_from(sorted(RESOURCE_BY_NAME)), st.floats(1.0, 1e6), min_size=1
    ).map(lambda intervals: {PEERS: 30.0, **intervals}),
    min_size=1,
    max_size=8,
)


def without_dormant(accounts: list[dict[str, float]]) -> list[dict[str, float]]:
    """Return intervals without those of resources that may be dormant."""
    dormant = {ACCESS_LOG, *RULES.dormant_without}
    return [
        {name: interval for name, interval in intervals.items() if name not in dormant}
        for intervals in accounts
    ]


LIMITS = st.tuples(st.integers(1, 1000), st.integers(1, 1000))


class StretchedTests(SynchronousTestCase):
    def test_dormant(self) -> None:
        """Resources that may be dormant slow no others, at any interval."""
        often = dict.fromkeys(RULES.dormant_without, 1.0)
        self.assertEqual([DEFAULT | often], fit_intervals([DEFAULT | often], (6, 30)))

    def test_cost(self) -> None:
        """The cost of settings names its large parts and the limit."""
        log = {ACCESS_LOG: 30.0}
        for intervals, limit, words in (
            (
                {PEERS: 30.0, "agent_usage": 120.0},
                None,
                "2.50 … 0.00 … 0.50; NetBird's",
            ),
            ({PEERS: 10.0}, None, "6.00 … 0.00 … 0.00; NetBird's"),
            (
                {PEERS: 10.0, **log},
                None,
                "8.00 … 2.00 … 0.00; that is more than NetBird's",
            ),
            (
                {PEERS: 60.0, **log},
                (60, 500),
                "3.00 … 2.00 … 0.00; the limit is UPSTREAM",
            ),
        ):
            total, in_log, rest = words.split(" … ")
            agents, _, end = rest.partition("; ")
            line = (
                f"{total} requests a minute, of which access log {in_log} and Agent"
                f" Network {agents}; {end}"
            )
            self.assertEqual(line, describe_cost(intervals, limit)[: len(line)])

    def test_describe_stretched(self) -> None:
        """Log and page say in a line how intervals are lengthened, if they are."""
        self.assertEqual("", describe_fitted(DEFAULT, DEFAULT, (6, 30)))
        before = {"peers": 30.0, "users": 600.0, "routes": 300.0, "policies": 600.0}
        after = {"peers": 32.14, "users": 1500.0, "routes": 300.0, "policies": 1500.0}
        self.assertEqual(
            "refresh intervals are lengthened to fit 120 requests a minute: peers 30s"
            " -> 32.1s; users, policies 10m -> 25m",
            describe_fitted(before, after, (120, 1200)),
        )
        self.assertTrue(
            describe_fitted({"users": 3600.0}, {"users": 5400.0}, (6, 1)).endswith(
                "1h -> 1.5h"
            )
        )

    @settings(max_examples=tries(60))
    @given(ACCOUNTS, LIMITS)
    def test_fits(
        self, accounts: list[dict[str, float]], limit: tuple[int, int]
    ) -> None:
        """All configured intervals fit, none becomes shorter, none is lost."""
        after = fit_intervals(accounts, limit)
        wanted = per_minute(accounts)
        self.assertLessEqual(per_minute(after), PLANNED_FRACTION * limit[0] * 1.000001)
        self.assertLessEqual(per_minute(after), wanted * 1.000001)
        for old, new in zip(accounts, after, strict=True):
            self.assertEqual(list(old), list(new))
            for name in old:
                self.assertGreaterEqual(new[name], old[name])

    def test_rounding(self) -> None:
        """A rounding error lengthens no interval."""
        [_, after] = fit_intervals(
            [
                {
                    "peers": 20.728758790711783,
                    "routes": 6.906,
                    "networks": 2.795,
                    "users": 4.282,
                    "groups": 9.155,
                },
                {"peers": 30.0, "users": 2.537},
            ],
            (57, 1),
        )
        self.assertEqual(2.537, after["users"])

    def test_access_log_first(self) -> None:
        """The access log is slowed before all others, and a warning says so."""
        before = {**WITHOUT_AGENTS, ACCESS_LOG: 30.0}
        left = PLANNED_FRACTION * 6 - per_minute([WITHOUT_AGENTS])
        [after] = fit_intervals([before], (6, 500))
        self.assertEqual(
            WITHOUT_AGENTS, {n: p for n, p in after.items() if n != ACCESS_LOG}
        )
        self.assertAlmostEqual(60.0 / left, after[ACCESS_LOG])
        self.assertIn(
            f"UPSTREAM_RATE_LIMIT=6/500 allows the access log {left:.2g} of 2 requests",
            describe_access_log(before, after, (6, 500)),
        )

    def test_access_log_of_one(self) -> None:
        """An account without an access log is not slowed for another one's."""
        reads = {**WITHOUT_AGENTS, ACCESS_LOG: 30.0}
        after, other = fit_intervals([reads, WITHOUT_AGENTS], (12, 500))
        self.assertGreater(after[ACCESS_LOG], 30.0)
        self.assertEqual(WITHOUT_AGENTS, other)

    def test_nine(self) -> None:
        """Nine requests a minute are enough for the access log, and eight are not."""
        before = {**WITHOUT_AGENTS, ACCESS_LOG: 30.0}
        for rate, enough in ((8, False), (9, True)):
            [after] = fit_intervals([before], (rate, 500))
            words = describe_access_log(before, after, (rate, 500))
            self.assertEqual(enough, words == "")
        self.assertEqual("", describe_access_log(DEFAULT, DEFAULT, (1, 1)))

    @settings(max_examples=tries(60))
    @given(ACCOUNTS.map(without_dormant), LIMITS)
    def test_order(
        self, accounts: list[dict[str, float]], limit: tuple[int, int]
    ) -> None:
        """Longer intervals are lengthened first, and those of the peers last.

        No interval is lengthened without need; equal ones stay equal.
        """
        after = fit_intervals(accounts, limit)
        pairs = {
            (old[name], new[name], name == PEERS)
            for old, new in zip(accounts, after, strict=True)
            for name in old
        }
        others = sorted((old, new) for old, new, up in pairs if not up)
        self.assertEqual(len({old for old, _ in others}), len(others), "not alike")
        for (_, new), (_, longer) in pairwise(others):
            self.assertLessEqual(new, longer * 1.000001)
        for old, new in others:
            for before, longer in others:
                if new > old * 1.000001 and before > old:
                    self.assertGreaterEqual(longer, MAX_LENGTHENED * 0.999999)
        if any(new > old * 1.000001 for old, new, up in pairs if up):
            self.assertTrue(all(new >= MAX_LENGTHENED * 0.999999 for _, new in others))
        if per_minute(accounts) <= PLANNED_FRACTION * limit[0]:
            self.assertEqual(accounts, after)
