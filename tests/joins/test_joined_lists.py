"""Any lists may be read alone: all published lines were true at one instant."""

from collections.abc import Sequence
from itertools import pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition.incremental import render_page
from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.joins import Reading
from api_exporter.subjects.table import (
    COLLECTORS,
    FINDERS,
    RESOURCE_BY_NAME,
    RULES,
    SUBJECTS,
)
from tests.attention.looking import findings, seen
from tests.inventories import inventory_of
from tests.joins.administrator import WORLDS, World, body

NEEDS = {row.metric.name: row.needs for subject in SUBJECTS for row in subject.families}
"""The resources that each family is made of."""

JOINED_FAMILIES = {name for name, needs in NEEDS.items() if len(needs) > 1}

JOINED = {
    tuple(sorted(needs))
    for needs in (*NEEDS.values(), *(finder.reads for finder in FINDERS))
    if len(needs) > 1
}
"""The resources of each join, from rows and finders."""

PAIRS = sorted(
    {
        pair
        for needs in JOINED
        for pair in permutations(needs, 2)
        if set(pair) <= set(WORLDS[0])
    }
)

ALONE = {
    "accounts": "records name no id of it, and it names none",
    "access_tokens": "they go with the user whose they are",
    "agent_consumption": "a row without its group or user has no sample",
    "agent_settings": "it names no id",
    "agent_denials": "it names no id",
    "proxy_services": "no id",
}
"""Resources of joins that need no reference."""


class Page:
    """The output of an exporter: series with their values, and findings."""

    def __init__(self, inventory: Inventory) -> None:
        text = b"".join(
            piece.text
            for collector in COLLECTORS
            if collector.default
            for piece in render_page(collector.measure(inventory)).page
        ).decode()
        lines = {line for line in text.splitlines() if not line.startswith("#")}
        found = {f"{one.object} {one.message}" for one in findings(seen(inventory))}
        self.lines = frozenset(lines | found)
        self.series = frozenset(line.rpartition(" ")[0] for line in lines) | found


class Exporter:
    """An inventory that is read one list after the other, from changing worlds."""

    def __init__(self, world: World) -> None:
        self.inventory = inventory_of(now=1_800_000_000.0)
        self._clock = 0
        for name in world:
            self.read(name, world)

    def read(self, name: str, world: World) -> None:
        before = self.inventory
        known = DecodeContext(before.records.get(name) or ())
        decoded = RESOURCE_BY_NAME[name].decoder.decode(body(world, name), known)
        self._clock += 2
        self.inventory = before.with_(name, decoded.records).settle(
            before, name, Reading(self._clock, self._clock + 1)
        )

    def settle(self, world: World) -> int:
        """Read the lists that joins wait for, and return the number of requests."""
        for requests in range(100):
            due = sorted(self.inventory.joins.due)
            if not due:
                return requests
            self.read(due[0], world)
        raise AssertionError("joins wait for ever")

    def page(self) -> Page:
        return Page(self.inventory)


PATH = (*WORLDS, *WORLDS[-2::-1])
"""All objects are created and deleted again, without a repeated id."""

TRUTH = [Exporter(world).page() for world in WORLDS]
"""The page of all lists that were read at one instant, after each step."""


class TableTests(SynchronousTestCase):
    def test_references(self) -> None:
        """Each resource of a join names another, is named, or needs no reference."""
        named = {n for r in RULES.references.every for n in (r.resource, *r.targets)}
        for needs in JOINED:
            for name in needs:
                self.assertTrue(name in named or name in ALONE, (name, needs))

    def test_worlds(self) -> None:
        """The administrator's account has every list that names ids or has them."""
        self.assertLessEqual(set(RULES.references.lists), set(WORLDS[0]))


class JoinedListTests(SynchronousTestCase):
    def check(
        self, exporter: Exporter, possible: Sequence[Page], about: object
    ) -> None:
        """Check that lines are in one of these pages, and series of all are there."""
        page = exporter.page()
        false = page.lines - frozenset().union(*(truth.lines for truth in possible))
        self.assertEqual([], sorted(false), about)
        lost = frozenset.intersection(*(t.series for t in possible)) - page.series
        self.assertEqual([], sorted(lost), about)

    def test_pairs(self) -> None:
        """Two lists of a join are read alone after all creations or deletions."""
        for pair in PAIRS:
            for first, last in ((0, len(WORLDS) - 1), (len(WORLDS) - 1, 0)):
                exporter = Exporter(WORLDS[first])
                for name in (*pair, *pair):
                    exporter.read(name, WORLDS[last])
                    self.check(exporter, TRUTH, (pair, first, last, name))

    def test_each_step(self) -> None:
        """One list of a step is read before any other, for creation and deletion."""
        for before, after in (*pairwise(WORLDS), *pairwise(reversed(WORLDS))):
            changed = [n for n in before if before[n] != after[n]]
            at, to = WORLDS.index(before), WORLDS.index(after)
            for name in changed:
                exporter = Exporter(before)
                exporter.read(name, after)
                self.check(exporter, [TRUTH[at], TRUTH[to]], (at, to, name))
                exporter.settle(after)
                for other in changed:
                    exporter.read(other, after)
                exporter.settle(after)
                self.assertEqual(TRUTH[to].lines, exporter.page().lines)

    @given(
        st.integers(0, len(PATH) - 1),
        st.lists(
            st.tuples(st.sampled_from(sorted(WORLDS[0])), st.integers(0, 3)),
            max_size=30,
        ),
    )
    def test_any_order(self, start: int, readings: list[tuple[str, int]]) -> None:
        """The administrator creates and deletes objects between any two readings."""
        exporter, at = Exporter(PATH[start]), start
        for name, steps in readings:
            at = min(at + steps, len(PATH) - 1)
            exporter.read(name, PATH[at])
            possible = [TRUTH[WORLDS.index(world)] for world in PATH[start : at + 1]]
            self.check(exporter, possible, (start, readings, name))
        for name in PATH[at]:
            exporter.read(name, PATH[at])
        exporter.settle(PATH[at])
        self.assertEqual(TRUTH[WORLDS.index(PATH[at])].lines, exporter.page().lines)
