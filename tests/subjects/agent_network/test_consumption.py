"""The usage of the Agent Network, by days."""

import tracemalloc
from datetime import UTC, datetime

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group, Member, Peer
from api_exporter.subjects.agent_network.consumption import month_cost, used_ratios
from api_exporter.subjects.agent_network.resources import (
    AgentBudgetRule,
    Consumption,
    ConsumptionRow,
    Usage,
    UsageBucket,
    UsagePeriod,
)
from tests.inventories import inventory_of

TODAY = datetime(2026, 11, 22, tzinfo=UTC)

NOW = datetime(2026, 11, 22, 0, 5, tzinfo=UTC).timestamp()


PEERS = 2000


def consumed(number: int) -> ConsumptionRow:
    """Return the consumption of a peer today: as many tokens as its number."""
    return ConsumptionRow(
        dimension_kind="user",
        dimension_id=f"p{number}",
        window_start_utc=TODAY,
        window_seconds=86_400,
        tokens_input=number,
    )


class MonthTests(SynchronousTestCase):
    def test_midnight(self) -> None:
        """A day that the earlier days hold after midnight is not counted twice."""
        bucket = UsageBucket(period_start="2026-11-21", cost_usd=2.0)
        day = UsagePeriod(first="2026-11-21", last="2026-11-21", buckets=(bucket,))
        month = UsagePeriod(first="2026-11-01", last="2026-11-21", buckets=(bucket,))
        for earlier in (None, month):
            self.assertEqual(2.0, month_cost([Usage(earlier=earlier, today=day)], NOW))


def rule(number: int, cap: int, *groups: str) -> AgentBudgetRule:
    limit = {"enabled": True, "user_cap": cap, "window_seconds": 86_400}
    found = {
        "id": f"r{number}",
        "enabled": True,
        "target_groups": groups,
        "limits": {"token_limit": limit},
    }
    return msgspec.convert(found, AgentBudgetRule)


class ManyLimitsTests(SynchronousTestCase):
    def known(self, *rules: AgentBudgetRule) -> Inventory:
        peers = [Peer(id=f"p{n}") for n in range(PEERS)]
        members = [Member(id=peer.id) for peer in peers]
        rows = tuple(consumed(n) for n in range(PEERS))
        return inventory_of(
            now=NOW,
            peers=tuple(peers),
            users=(),
            groups=tuple(Group(id=f"g{n}", peers=tuple(members[n:])) for n in range(9)),
            agent_policies=(),
            agent_budget_rules=rules,
            agent_consumption=(Consumption(rows=len(rows), current=rows),),
        )

    def test_linear(self) -> None:
        """Memory grows with rules and rows, not with their product."""
        everybody = [rule(n, 1000 + n) for n in range(300)]
        some = [rule(n, 1000, f"g{n % 9}", f"g{n % 8}") for n in range(300)]
        for rules in (everybody, some):
            known = self.known(*rules)
            tracemalloc.start()
            try:
                shares = used_ratios(known)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            self.assertEqual(300, len(shares))
            self.assertEqual((PEERS - 1) / 1000, max(shares.values()))
            self.assertLess(peak, 5_000_000)

    def test_bound(self) -> None:
        """The ratio is that of the largest consumption of a bound user or peer."""
        known = self.known(rule(1, 1000, "g3"), rule(2, 1000, "unknown"))
        of_three = Group(id="g3", peers=(Member(id="p7"), Member(id="p5")))
        known = known.replacing("groups", (of_three,))
        shares = {limit.id: share for limit, share in used_ratios(known).items()}
        self.assertEqual({"r1": 0.007}, shares)
