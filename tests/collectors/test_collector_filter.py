"""The families and series that METRICS_DENY and PEER_DETAIL permit."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.collector import Collector, MetricFilter
from api_exporter.collectors.rows import FamilyContext, Row
from api_exporter.exposition.text import Family, Metric
from api_exporter.netbird.inventory import Inventory
from api_exporter.subjects.table import COLLECTORS, Selection, selection
from tests import tries
from tests.bodies import inventory
from tests.collectors.samples import page, parsed, rendered

EVERY = [collector.name for collector in COLLECTORS]
NAMES = [family.name for collector in COLLECTORS for family in collector.families]
KNOWN = inventory()
SERVERS = frozenset({"servers"})
PAGE = parsed(page(KNOWN, COLLECTORS))
"""All samples."""


def chosen(choice: MetricFilter) -> Selection:
    return selection(EVERY, {}, metric_filter=choice)


def text(choice: MetricFilter, known: Inventory = KNOWN) -> str:
    """Return the whole page."""
    known = replace(known, detail=choice.detail)
    return "".join(
        rendered(collector.make_families(known))
        for collector in chosen(choice).collectors
    )


class FamiliesTests(SynchronousTestCase):
    def test_known_without_measuring(self) -> None:
        """Each collector knows its families, in their order, without measuring."""
        for collector in COLLECTORS:
            measured = [family.metric for family in collector.make_families(KNOWN)]
            self.assertEqual(set(measured), set(collector.families), collector.name)
        self.assertEqual(len(NAMES), len(set(NAMES)))

    def test_of_peers(self) -> None:
        """All families with series for single peers are marked, and no others."""
        marked = {m.name for c in COLLECTORS for m in c.families if m.of_peer}
        found = {n for (n, labels), _ in PAGE if "peer_id" in dict(labels)}
        self.assertEqual(marked, found)

    def test_denied_families_cost_nothing(self) -> None:
        """A denied family is not made, and a collector is not if all are denied."""

        def make(metric: Metric, _: FamilyContext) -> Family:
            made.append(metric.name)
            return Family(metric, ())

        made: list[str] = []
        metrics = (Metric(name=name, help="", source="") for name in "ab")
        collector = Collector(
            "c", tuple(Row(metric, (), make) for metric in metrics), default=True
        )
        for deny, expected in ("", "ab"), ("a", "b"), ("b", "a"), ("ab", ""):
            made.clear()
            permitted = MetricFilter(deny=tuple(deny)).apply(collector)
            assert permitted is not None or deny == "ab"
            list(permitted.make_families(KNOWN) if permitted else ())
            self.assertEqual([*expected], made)


class MetricsTests(SynchronousTestCase):
    def test_collector_without_families(self) -> None:
        """A collector without permitted families is not measured."""
        names = [
            c.name for c in chosen(MetricFilter(deny=("netbird_api_user*",))).collectors
        ]
        self.assertIn("users", names)  # because of access tokens
        [users] = (c for c in COLLECTORS if c.name == "users")
        deny = tuple(family.name for family in users.families)
        names = [c.name for c in chosen(MetricFilter(deny=deny)).collectors]
        self.assertEqual([name for name in EVERY if name != "users"], names)

    def test_resources(self) -> None:
        """Only three resources are fetched without a collector that reads them."""
        others = [n for n in NAMES if not n.startswith("netbird_api_setup_key")]
        only = chosen(MetricFilter(deny=tuple(others)))
        self.assertEqual(
            ["peers", "current_user", "groups", "setup_keys"],
            [r.name for r in only.resources],
        )
        self.assertEqual(
            ["peers", "current_user", "groups"],
            [r.name for r in chosen(MetricFilter(deny=("*",))).resources],
        )

    @settings(deadline=None, max_examples=tries(60))
    @given(deny=st.sets(st.sampled_from(NAMES)))
    def test_any(self, deny: set[str]) -> None:
        """Whole families are left out; the others are unchanged."""
        choice = MetricFilter(deny=tuple(deny))
        wanted = [sample for sample in PAGE if sample[0][0] not in deny]
        self.assertEqual(wanted, parsed(text(choice)))


class DetailTests(SynchronousTestCase):
    def test_none(self) -> None:
        """No peer has series of its own; all other series are unchanged."""
        left = parsed(text(MetricFilter(detail=frozenset())))
        self.assertEqual([s for s in PAGE if "peer_id" not in dict(s[0][1])], left)
        none = chosen(MetricFilter(detail=frozenset()))
        self.assertNotIn("memberships", [c.name for c in none.collectors])

    def test_groups_are_read(self) -> None:
        """A collector reads groups if groups select peers with series."""
        for choice, expected in (
            (MetricFilter(detail=SERVERS), True),
            (MetricFilter(detail=frozenset()), False),
            (MetricFilter(detail=SERVERS, deny=("netbird_api_peer_*",)), False),
        ):
            [peers] = selection({"peers"}, {}, metric_filter=choice).collectors
            self.assertEqual(expected, "groups" in peers.reads)
