"""Incremental pages: equal to full ones, with less work, and without old records."""

import sys
from collections.abc import Iterable
from operator import attrgetter

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition import incremental, per_record, text
from api_exporter.exposition.incremental import (
    EMPTY_PAGE,
    BlockDiff,
    PageTooLong,
    RenderedPage,
    render_page,
)
from api_exporter.exposition.pages import piece
from api_exporter.exposition.per_record import Blocks, PerRecordFamily
from api_exporter.exposition.text import Family, Metric, Sample, UnchangedFamily, labels
from tests import tries
from tests.collectors.samples import rendered

PIECE_BYTES = 512 * 1024

METRIC = Metric(name="netbird_api_things", help="Things.", source="things")
OTHER = Metric(name="netbird_api_others", help="Others.", source="others")


class Thing(Struct, frozen=True):
    id: str
    size: int | None = 1
    name: str = ""


def things(*ids: str) -> tuple[Thing, ...]:
    return tuple(map(Thing, ids))


class CountingFamilies:
    """Families of things that count how often a label is rendered."""

    def __init__(self) -> None:
        self.rendered_count = 0

    def labels(self, thing: Thing) -> str:
        self.rendered_count += 1
        return labels(id=thing.id, name=thing.name)

    def families(self, records: Iterable[Thing], given: str = "") -> list[Family]:
        blocks = Blocks(records)
        size = attrgetter("size")
        return [
            PerRecordFamily(METRIC, blocks, self.labels, size, given=given),
            PerRecordFamily(OTHER, blocks, lambda thing: labels(id=thing.id), size),
        ]

    def made(
        self,
        records: Iterable[Thing],
        before: RenderedPage = EMPTY_PAGE,
        given: str = "",
    ) -> RenderedPage:
        """Render a page and compare it with one rendered without a previous page."""
        after = render_page(self.families(records, given), before)
        self.rendered_count, rendered_count = 0, self.rendered_count
        whole = rendered(self.families(records, given))
        assert whole.encode() == joined(after)
        for found in after.page:
            assert found == piece(found.text)
        self.rendered_count = rendered_count
        return after


def joined(found: RenderedPage) -> bytes:
    return b"".join(p.text for p in found.page)


def shared(first: RenderedPage, second: RenderedPage) -> int:
    """Return how many pieces are the same objects."""
    return len({*map(id, first.page)}.intersection(map(id, second.page)))


class GatheredTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.patch(text, "CHUNK_SAMPLES", 1)

    def paged(
        self, *families: Family, before: RenderedPage = EMPTY_PAGE
    ) -> RenderedPage:
        return render_page(families, before)

    def family(self, *lengths: int) -> Family:
        """Return a family with one label of each length."""
        samples: list[Sample] = [("x" * length, 1) for length in lengths]
        return Family(METRIC, samples)

    def test_room(self) -> None:
        """A page may have exactly as many bytes as allowed, but no more."""
        family = self.family(1)
        length = len(joined(self.paged(family)))
        self.assertEqual(self.paged(family), render_page([family], max_bytes=length))
        with self.assertRaises(PageTooLong):
            render_page([family], max_bytes=length - 1)

    def test_border(self) -> None:
        """Texts, copied or not, become a piece when they have the length of one."""
        halves = []
        for metric in (METRIC, OTHER):
            empty = len(rendered([Family(metric, [("", 1)])]))
            half = Family(metric, [("x" * (PIECE_BYTES // 2 - empty), 1)])
            half.edition = ("unchanged",)
            halves.append(half)
        large = Metric(name="large", help="Large.", source="large")
        between = Family(large, [("x" * PIECE_BYTES, 1)])
        before = self.paged(halves[0], between, halves[1])
        copies = [UnchangedFamily(metric) for metric in (METRIC, OTHER)]
        for families in (copies, halves):
            after = self.paged(*families, Family(large, [("", 1)]), before=before)
            self.assertEqual([2, 1], [p.series for p in after.page])
            self.assertEqual(PIECE_BYTES, len(after.page[0].text))

    def test_same(self) -> None:
        """An equal text is the same piece."""
        before = self.paged(self.family(PIECE_BYTES, 1))
        after = self.paged(self.family(PIECE_BYTES, 2), before=before)
        self.assertIs(before.page[0], after.page[0])
        self.assertIsNot(before.page[1], after.page[1])

    @settings(deadline=None, max_examples=tries(25))
    @given(lengths=st.lists(st.integers(0, PIECE_BYTES // 2), max_size=12))
    def test_all_text(self, lengths: list[int]) -> None:
        """Pages of any size keep all text in order. No piece is long, because a slow
        client would hold its memory.
        """
        found = self.paged(self.family(*lengths))
        whole = rendered([self.family(*lengths)])
        self.assertEqual(whole.encode(), joined(found))
        for made in found.page[:-1]:
            self.assertTrue(PIECE_BYTES <= len(made.text) < 800_000)


class EachTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.patch(per_record, "MIN_BLOCK_RECORDS", 4)
        self.patch(per_record, "MAX_BLOCK_RECORDS", 12)
        self.patch(per_record, "BLOCK_START_INTERVAL", 4)
        self.patch(incremental, "MAX_COMPARED_SHARE", 0.5)
        self.families = CountingFamilies()
        self.many = things(*(f"t{number}" for number in range(100)))
        self.before = self.families.made(self.many)
        self.families.rendered_count = 0

    def blocks(self) -> int:
        return len(self.before.page) // 2

    def test_unchanged(self) -> None:
        """Unchanged records keep their pieces, and no label is rendered."""
        after = self.families.made(self.many, self.before)
        self.assertEqual(len(after.page), shared(self.before, after))
        self.assertEqual(0, self.families.rendered_count)

    def test_changed(self) -> None:
        """A changed record costs its own lines, and a piece if its lines differ."""
        changed = (Thing("t0", name="new"), *self.many[1:])
        after = self.families.made(changed, self.before)
        self.assertEqual(1, len(self.before.page) - shared(self.before, after))
        self.assertLessEqual(self.families.rendered_count, 3)

    def test_equal_line(self) -> None:
        """A changed record with an equal line keeps the piece, not the old record."""
        old = self.many[7]
        held = sys.getrefcount(old)
        changed = (*self.many[:7], Thing("t7"), *self.many[8:])
        after = self.families.made(changed, self.before)
        self.assertEqual(len(after.page), shared(self.before, after))
        self.before, self.many = after, changed
        self.assertLess(sys.getrefcount(old), held)

    def test_without_line(self) -> None:
        """Lines stay with their records if one record of a block has no line."""
        many = (Thing("t0", size=None), *self.many[1:])
        page = self.families.made(many)
        for new in (Thing("t1"), Thing("t1", size=2)):
            many = (many[0], new, *many[2:])
            page = self.families.made(many, page)
            for lines in page.blocks:
                self.assertLessEqual({*map(id, lines.rendered)}, {*map(id, many)})

    def test_heading(self) -> None:
        """The first block with a line has the heading, and no other block."""
        first, *_ = Blocks(self.many)
        none = tuple(Thing(thing.id, size=None) for thing in first)
        without = self.families.made((*none, *self.many[len(first) :]), self.before)
        self.families.made(self.many, without)

    def test_comes_and_goes(self) -> None:
        """An added or removed record costs one block, or two if it was the border."""
        for record in (self.many[3], self.many[50], self.many[99]):
            without = tuple(r for r in self.many if r is not record)
            gone = self.families.made(without, self.before)
            back = self.families.made(self.many, gone)
            for first, second in ((self.before, gone), (gone, back)):
                self.assertLessEqual(len(first.page) - shared(first, second), 4)
            self.assertLess(self.families.rendered_count, 40)

    def test_given(self) -> None:
        """All lines of a family are rendered again when `given` changes."""
        after = self.families.made(self.many, self.before, given="other")
        self.assertEqual(self.blocks(), shared(self.before, after))
        self.assertEqual(100, self.families.rendered_count)

    def test_nothing_left(self) -> None:
        """No record of a removed family is kept."""
        record = self.many[0]
        held = sys.getrefcount(record)
        self.before = render_page([], self.before)
        self.assertEqual(EMPTY_PAGE, self.before)
        self.assertLess(sys.getrefcount(record), held)


class DiffTests(SynchronousTestCase):
    def test_few(self) -> None:
        """Up to an eighth of a block, changed records are compared one by one."""
        old = things(*map(str, range(16)))
        two, three = (things(*map(str, range(n))) + old[n:] for n in (2, 3))
        found = BlockDiff.between(old, two)
        self.assertEqual(BlockDiff((old[:2], two[:2]), True), found)
        self.assertIsNone(BlockDiff.between(old, three).changed)
        self.assertIsNone(BlockDiff.between(old, old[:-1]).changed)

    def test_alike(self) -> None:
        """Lines are searched for if at least a quarter of the records is unchanged."""
        old = things(*map(str, range(100)))
        for same, is_similar in ((24, False), (25, True)):
            new = old[:same] + things(*map(str, range(same, 100)))
            self.assertIs(is_similar, BlockDiff.between(old, new).is_similar)


class CutTests(SynchronousTestCase):
    def test_sizes(self) -> None:
        """The ids determine where blocks begin. All but the last have at least 1,024
        records. No block has more than 3,072, even if no id may begin one.
        """
        for ids, lengths in (
            (map(str, range(10_000)), [1741, 1055, 1719, 1507, 1796, 1664, 518]),
            (["a"] * (2 * 3072 + 1), [3072, 3072, 1]),
        ):
            records = things(*ids)
            blocks = list(Blocks(records))
            self.assertEqual(records, tuple(r for block in blocks for r in block))
            self.assertEqual(lengths, [*map(len, blocks)])
