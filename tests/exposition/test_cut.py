"""Labels that are too long: they are cut in the text, and counted."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition.pages import Pages, piece
from api_exporter.exposition.text import (
    MAX_LABEL_BYTES,
    Family,
    Metric,
    labels,
    render,
    truncate,
)

METRIC = Metric(name="netbird_api_things", help="Things.", source="things")
LONG = st.builds(
    lambda letter, count, tail: letter * count + tail,
    st.sampled_from(("x", '"', "\\", "\n", "é", "電", "😀", "…")),
    st.integers(1000, 4200),
    st.text(max_size=3),
)


class CutTests(SynchronousTestCase):
    def test_border(self) -> None:
        """Up to 4,096 bytes are kept; a longer value is cut between characters."""
        for value, expected in (
            ("x" * 4096, "x" * 4096),
            ("x" * 4097, "x" * 4093 + "…"),
            ("電" * 1365, "電" * 1365),
            ("電" * 1366, "電" * 1364 + "…"),
            ("x" + "😀" * 1024, "x" + "😀" * 1023 + "…"),
            ("x" * 100_000, "x" * 4093 + "…"),
            ("", ""),
        ):
            self.assertEqual(expected, truncate(value))
            self.assertEqual(f'{{name="{expected}"}}', labels(name=value))

    @settings(deadline=None)
    @given(LONG)
    @example("x" * 4094 + "…")
    @example("xx" + "😀" * 1024)  # the minimum length of a cut value
    @example('"' * 2100 + "…")  # long only with its escapes
    @example("…" * 1365)  # as long as a cut value, with the same end
    def test_any(self, value: str) -> None:
        """A cut value has at most 4,096 bytes, unescaped, and is a prefix.

        A value that looks like a cut one is counted as one.
        """
        found = truncate(value)
        self.assertLessEqual(len(found.encode()), MAX_LABEL_BYTES)
        if found != value:
            self.assertGreater(len(value.encode()), MAX_LABEL_BYTES)
            self.assertGreaterEqual(len(found.encode()), MAX_LABEL_BYTES - 3)
            self.assertEqual("…", found[-1])
            self.assertTrue(value.startswith(found[:-1]))
        other = labels(id="a", name=value, other="b…")
        text = f"{METRIC.name}{other} 1\n" * 2
        is_cut = found[-1] == "…" and len(found.encode()) >= MAX_LABEL_BYTES - 3
        self.assertEqual(2 * is_cut, piece(text.encode()).cut_count)

    def test_pages(self) -> None:
        """The cut labels of all current pages are counted."""
        pages = Pages(["a", "b"])
        family = Family(METRIC, [(labels(name="x" * 5000, id=f"{n}"), 1) for n in "ab"])
        page = (piece("".join(render(family)).encode()),)
        for name, count in (("a", 2), ("b", 4)):
            pages.publish(name, page)
            self.assertEqual(count, pages.cut_count())
        pages.publish("a", ())
        self.assertEqual(2, pages.cut_count())
