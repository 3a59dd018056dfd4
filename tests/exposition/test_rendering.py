"""Rendering from the previous page: the same text, less work, and no old records."""

import sys
from collections.abc import Sequence
from operator import attrgetter

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition import rendering, text
from api_exporter.exposition.pages import piece
from api_exporter.exposition.rendering import (
    EMPTY_PAGE,
    PageTooLong,
    PerRecordFamily,
    RenderedPage,
    render_page,
)
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

    def families(self, records: Sequence[Thing], given: str = "") -> list[Family]:
        size = attrgetter("size")
        return [
            PerRecordFamily(METRIC, records, self.labels, size, given=given),
            PerRecordFamily(OTHER, records, lambda thing: labels(id=thing.id), size),
        ]

    def made(
        self,
        records: Sequence[Thing],
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


class FamilyTests(SynchronousTestCase):
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
        self.assertRaises(PageTooLong, render_page, [family], max_bytes=length - 1)

    def test_unchanged(self) -> None:
        """A family in the same inputs_key keeps its pieces."""
        family = self.family(PIECE_BYTES, 1)
        family.inputs_key = ("unchanged",)
        before = self.paged(family)
        self.assertEqual({METRIC.name: ("unchanged",)}, before.inputs_keys)
        same = [UnchangedFamily(METRIC, ())]
        self.assertEqual(before, self.paged(*same, before=before))
        self.assertRaises(PageTooLong, render_page, same, before, max_bytes=PIECE_BYTES)

    def test_same(self) -> None:
        """An equal text is the same piece."""
        before = self.paged(self.family(PIECE_BYTES, 1))
        after = self.paged(self.family(PIECE_BYTES, 2), before=before)
        self.assertIs(before.page[0], after.page[0])
        self.assertIsNot(before.page[1], after.page[1])

    @settings(deadline=None, max_examples=tries(25))
    @given(lengths=st.lists(st.integers(0, PIECE_BYTES // 2), max_size=12))
    def test_all_text(self, lengths: list[int]) -> None:
        """Pages of any size keep all text in order, in short pieces."""
        found = self.paged(self.family(*lengths))
        whole = rendered([self.family(*lengths)])
        self.assertEqual(whole.encode(), joined(found))
        for made in found.page[:-1]:
            self.assertTrue(PIECE_BYTES <= len(made.text) < 800_000)


class PerRecordTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.patch(rendering, "CHUNK_SAMPLES", 7)
        self.patch(rendering, "PIECE_BYTES", 500)
        self.families = CountingFamilies()
        self.many = things(*(f"t{number}" for number in range(100)))
        self.before = self.families.made(self.many)
        self.families.rendered_count = 0

    def test_room(self) -> None:
        """A family is given up at the first piece that is too much."""
        with self.assertRaises(PageTooLong):
            render_page(self.families.families(self.many), max_bytes=600)
        self.assertEqual(14, self.families.rendered_count)

    def test_unchanged(self) -> None:
        """Unchanged records keep their pieces, and no label is rendered."""
        after = self.families.made(self.many, self.before)
        self.assertEqual(len(after.page), shared(self.before, after))
        self.assertEqual(0, self.families.rendered_count)

    def test_changed(self) -> None:
        """A changed record costs its own line, and a piece if its line differs."""
        changed = (Thing("t0", name="new"), *self.many[1:])
        after = self.families.made(changed, self.before)
        self.assertEqual(1, len(self.before.page) - shared(self.before, after))
        self.assertEqual(1, self.families.rendered_count)

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
        """Lines stay with their records if some records have no line."""
        page = self.before
        for place in (0, 50, 99):
            for new in (None, 2, None):
                many = (*self.many[:place], Thing("t", new), *self.many[place + 1 :])
                page = self.families.made(many, page)
                for family in page.families.values():
                    expected = [record for record in many if record.size is not None]
                    self.assertEqual(expected, [*family.records])
        none = self.families.made([Thing("t", None)] * 20, page)
        self.assertEqual(b"", joined(none))
        self.families.made(self.many, none)

    def test_order(self) -> None:
        """Lines are found in any order, and of records that come and go."""
        for many in (self.many[::-1], self.many[1:], self.many[:50], ()):
            after = self.families.made(many, self.before)
            self.families.made(self.many, after)
            self.assertEqual(100 - len(many), self.families.rendered_count)
            self.families.rendered_count = 0

    def test_line_ends(self) -> None:
        """Only a line feed ends a line: other line ends are parts of labels."""
        ends = "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", "\n", "\\n"
        many = tuple(
            Thing(f"t{number}", name=f"a{end}b") for number, end in enumerate(ends)
        )
        before = self.families.made(many)
        self.families.rendered_count = 0
        self.families.made(many[::-1], before)
        self.assertEqual(0, self.families.rendered_count)

    def test_given(self) -> None:
        """All lines of a family are rendered again when `given` changes."""
        self.families.made(self.many, self.before, given="other")
        self.assertEqual(100, self.families.rendered_count)

    def test_nothing_left(self) -> None:
        """No record of a removed family is kept."""
        record, self.many = self.many[0], ()
        held = sys.getrefcount(record)
        self.before = render_page([], self.before)
        self.assertEqual(EMPTY_PAGE, self.before)
        self.assertLess(sys.getrefcount(record), held)
