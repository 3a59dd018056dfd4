"""The text format: prometheus_client reads the written samples, in both formats."""

from datetime import UTC, datetime, timedelta, timezone
from math import inf, nan

from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition.pages import Pages, piece
from api_exporter.exposition.text import (
    CHUNK_SAMPLES,
    MAX_LABEL_BYTES,
    Family,
    Metric,
    Sample,
    labels,
    number,
    render,
    timestamp,
    truncate,
)
from tests.collectors.samples import rendered

METRIC = Metric(name="netbird_api_things", help="Things.", source="things")
OTHER = Metric(name="netbird_api_others", help="Others.", source="others")

Read = list[tuple[str, dict[str, str], float]]


def text(*families: Family) -> str:
    return rendered(families)


def read_both(page: str) -> tuple[Read, Read]:
    """Return the samples as read by both parsers."""
    prometheus = text_string_to_metric_families(page)
    strict = openmetrics.text_string_to_metric_families(page + "# EOF\n")
    first, second = (
        [(s.name, s.labels, s.value) for family in families for s in family.samples]
        for families in (prometheus, strict)
    )
    return first, second


def samples(family: Family) -> list[Sample]:
    return list(family.samples)


HOSTILE = st.text() | st.text('"\\\n\r\t{},=# \x00\x85\u2028n')


def seconds(instant: datetime) -> float:
    found = timestamp(instant)
    assert found is not None
    return found


class NeverTests(SynchronousTestCase):
    def test_never(self) -> None:
        """A time until the begin of 1970 means never, that instant included."""
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        for instant in (None, epoch - timedelta(days=1), epoch):
            self.assertIsNone(timestamp(instant))
        self.assertEqual(0.5, timestamp(epoch + timedelta(seconds=0.5)))


class UnitTests(SynchronousTestCase):
    def test_units(self) -> None:
        """A family named for seconds or bytes has a unit line; others have none."""
        for end in ("seconds", "bytes"):
            metric = Metric(name=f"things_{end}", help="Things.", source="things")
            page = text(Family(metric, [("", 1)]))
            self.assertEqual(
                f"# HELP things_{end} Things.\n# TYPE things_{end} gauge\n"
                f"# UNIT things_{end} {end}\nthings_{end} 1\n",
                page,
            )
            [read] = openmetrics.text_string_to_metric_families(page + "# EOF\n")
            self.assertEqual(end, read.unit)
            self.assertEqual(([(metric.name, {}, 1.0)],) * 2, read_both(page))
        self.assertNotIn("UNIT", text(Family(METRIC, [("", 1)])))


class RoundTripTests(SynchronousTestCase):
    @settings(deadline=None)
    @given(found=st.lists(st.tuples(HOSTILE, HOSTILE), unique=True))
    def test_labels(self, found: list[tuple[str, str]]) -> None:
        """Labels with any text are read as written."""
        page = text(Family(METRIC, [(labels(a=a, b=b), 1) for a, b in found]))
        expected: Read = [(METRIC.name, {"a": a, "b": b}, 1.0) for a, b in found]
        for read in read_both(page):
            self.assertEqual(expected, read)

    @settings(deadline=None)
    @given(value=st.integers(-(2**53), 2**53) | st.floats(allow_nan=False))
    def test_values(self, value: float) -> None:
        """Values are read exactly as written."""
        for read in read_both(text(Family(METRIC, [("", value)]))):
            self.assertEqual([(METRIC.name, {}, float(value))], read)


class RenderTests(SynchronousTestCase):
    def test_page(self) -> None:
        """A family is its help, type and samples, in order."""
        self.assertEqual(
            "# HELP netbird_api_things Things.\n"
            "# TYPE netbird_api_things gauge\n"
            'netbird_api_things{id="b",name="\\"\\\\\\n"} 1\n'
            'netbird_api_things{id="a",name=""} 2.5\n'
            "# HELP netbird_api_others Others.\n"
            "# TYPE netbird_api_others gauge\n"
            "netbird_api_others -3\n",
            text(
                Family(
                    METRIC,
                    [(labels(id="b", name='"\\\n'), 1), (labels(id="a", name=""), 2.5)],
                ),
                Family(OTHER, [("", -3)]),
            ),
        )

    def test_empty(self) -> None:
        """A family without samples is left out, with its help and type."""
        self.assertEqual("", text(Family(METRIC, []), Family(OTHER, iter(()))))

    def test_chunks(self) -> None:
        """Many samples come in chunks with one heading."""
        many = ((labels(id=str(n)), n) for n in range(2 * CHUNK_SAMPLES + 1))
        chunks = list(render(Family(METRIC, many)))
        self.assertEqual(3, len(chunks))
        page = "".join(chunks)
        self.assertEqual(1, page.count("# TYPE"))
        expected: Read = [
            (METRIC.name, {"id": str(n)}, n) for n in range(2 * CHUNK_SAMPLES + 1)
        ]
        self.assertEqual(expected, read_both(page)[0])


class NumberTests(SynchronousTestCase):
    def test_numbers(self) -> None:
        """Numbers are written in their shortest exact form."""
        for value, written in {
            0.0: "0",
            1.0: "1",
            100.0: "100",
            0.5: "0.5",
            0.9999996: "0.9999996",
            0.000001: "1e-06",
            4.9e-07: "4.9e-07",
            1787425800.25: "1787425800.25",
            1787425800.123456: "1787425800.123456",
            1e22: "1e+22",
            -2.5: "-2.5",
            inf: "+Inf",
            -inf: "-Inf",
        }.items():
            self.assertEqual(written, number(value))
        self.assertEqual("NaN", number(nan))


class TimestampTests(SynchronousTestCase):
    def test_instants(self) -> None:
        """Instants after 1970 are seconds, as int if whole."""
        east = timezone(timedelta(hours=2))
        for instant, written in (
            (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "1"),
            (datetime(2026, 8, 22, 21, 10, tzinfo=east), "1787425800"),
            (datetime(2026, 8, 22, 19, 10, 0, 250000, UTC), "1787425800.25"),
            (datetime(2026, 8, 22, 19, 10, 0, 1, UTC), "1787425800.000001"),
            (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), "253402300799"),
        ):
            page = text(Family(METRIC, [("", seconds(instant))]))
            self.assertEqual(f"{METRIC.name} {written}", page.splitlines()[-1])


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
        """A cut value has at most 4,096 bytes, unescaped, and is a prefix."""
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
