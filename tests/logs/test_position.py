"""The new rows of the access log: each is read once."""

from random import Random

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.logs.listing import NANOSECONDS_PER_SECOND as SECOND
from api_exporter.logs.listing import NewRows, format_time, nanoseconds
from api_exporter.logs.position import COUNTED_AGE, MAX_AHEAD, CountedPosition, Position
from tests import tries
from tests.logs.paging import START, Table, number, requests

DAY = 24 * 3600 * SECOND


FIRST = Position(start=0)


def next_of(found: NewRows) -> Position:
    """Return the position after a page."""
    position = found.after or found.before
    assert isinstance(position, Position)
    return position


class Reading:
    """Reads a table, page by page.

    Args:
        now: nanoseconds since the epoch.
    """

    def __init__(self, table: Table, now: int, first: Position = FIRST) -> None:
        self.table = table
        self.now = now
        self.position = first
        self.got: list[int] = []
        self.missed: list[str] = []

    def read_page(self) -> NewRows:
        """Send one request."""
        page = self.table.page(self.position.query)
        chosen = self.position.new(page, self.now)
        self.got += [number(row.id) for row in chosen.rows]
        if chosen.gap_reason:
            self.missed.append(chosen.gap_reason)
        self.position = next_of(chosen)
        return chosen

    def read_all(self) -> int:
        """Send requests until no more rows follow; return their number."""
        for count in range(1, 2000):
            if not self.read_page().lag:
                return count
        raise AssertionError("it never catches up")


class BorderTests(SynchronousTestCase):
    """A bound belongs to the side that its sentence names."""

    def read(self, *numbers: int, age: int, first: Position = FIRST) -> NewRows:
        """Return the rows of the first page, at an age of its newest row."""
        page = Table(numbers).page("sort_order=asc&page_size=100")
        newest = START + min(numbers[-1], numbers[0] + 99) * SECOND
        return first.new(page, newest + age)

    def test_future(self) -> None:
        """A row further in the future than ten minutes is not read yet."""
        self.assertEqual(1, len(self.read(1, age=-MAX_AHEAD).rows))
        self.assertEqual(0, len(self.read(1, age=-MAX_AHEAD - 1).rows))

    def test_backlog(self) -> None:
        """Rows older than ten minutes are skipped if they are only counted."""
        for age, skipped in ((COUNTED_AGE, 0), (COUNTED_AGE + 1, 150)):
            found = self.read(*range(1, 151), age=age, first=CountedPosition(start=0))
            self.assertEqual(skipped, found.skipped)

    def test_settled(self) -> None:
        """A page is complete if its newest row is older than a minute."""
        for age, page in ((60 * SECOND, 2), (60 * SECOND + 1, 1)):
            self.assertEqual(page, next_of(self.read(*range(1, 151), age=age)).page)

    def test_span(self) -> None:
        """Pages are followed for two minutes."""
        young = Position(start=0, page=2, restart_at=START)
        for newest, page in ((120, 3), (121, 1)):
            table = Table(range(newest - 99, newest + 101))
            rows = table.page("sort_order=asc&page_size=100")
            found = young.new(rows, START + newest * SECOND)
            self.assertEqual(page, next_of(found).page)


class TimeTests(SynchronousTestCase):
    def test_nanoseconds(self) -> None:
        """A time in any zone is read to the nanosecond; other texts are 0."""
        self.assertEqual(1_795_287_600 * SECOND, START)
        for text, after in (
            ("2026-11-21T19:00:00.5Z", 500_000_000),
            ("2026-11-21T19:00:00.000000001Z", 1),
            ("2026-11-21T21:00:01+02:00", SECOND),
            ("2026-11-21T19:00:00.1234567891Z", 123_456_789),
        ):
            self.assertEqual(START + after, nanoseconds(text))
        for text in (
            "",
            "x",
            "2026-11-21",
            "2026-11-21T19:00:00",
            "0001-01-01T00:00:00Z",
        ):
            self.assertEqual(0, nanoseconds(text))
        self.assertEqual(0, nanoseconds("2026-13-21T19:00:00Z"))

    def test_written(self) -> None:
        """A time is written in UTC with a Z, and read as the same time."""
        self.assertEqual("2026-11-21T19:00:00.000000007Z", format_time(START + 7))
        for time in (SECOND, START, START + 123_456_789):
            self.assertEqual(time, nanoseconds(format_time(time)))


class PageTests(SynchronousTestCase):
    def test_first(self) -> None:
        """All rows are read at first, oldest first; then only new rows."""
        table = Table(range(1, 251))
        reading = Reading(table, START + 1000 * SECOND)
        for since, lag in ((0, 900.0), (100, 801.0), (199, 0.0), (201, 0.0)):
            self.assertEqual(lag, reading.read_page().lag)
            start = (
                f"&start_date={format_time(START + since * SECOND)}" if since else ""
            )
            query = f"sort_order=asc&page_size=100&page=1{start}"
            self.assertEqual(query, table.queries[-1])
        before = reading.position
        self.assertEqual((1, before), (reading.read_all(), reading.position))
        table.add(251)
        self.assertEqual(1, reading.read_all())
        self.assertEqual(list(range(1, 252)), reading.got)

    def test_late_in_a_quiet_log(self) -> None:
        """In a quiet log, a row that appears ten minutes late is read."""
        table = Table(range(0, 1200, 40))
        reading = Reading(table, START + 1200 * SECOND)
        reading.read_all()
        for one in range(1200, 1800, 40):
            table.add(one)
            reading.now += 40 * SECOND
            self.assertEqual(1, reading.read_all())
        table.add(9999, START + 1190 * SECOND)
        self.assertEqual(1, reading.read_all())
        self.assertIn(9999, reading.got)
        self.assertLessEqual(len(reading.position.known), 50)

    def test_rates(self) -> None:
        """Two requests a minute keep up with 190 rows; memory is bounded."""
        for rate, late in ((50, 2), (150, 90), (190, 60), (600, 1700)):
            table, last = Table(), 0
            reading = Reading(table, START)
            for turn in range(1, 81):
                for one in range(last, turn * rate // 2):
                    table.add(one, START + one * 60 * SECOND // rate)
                last = turn * rate // 2
                reading.now = START + turn * 30 * SECOND
                reading.read_page()
                self.assertLess(len(reading.position.known), 1000)
            lag = (reading.now - reading.position.newest) / SECOND
            self.assertLess(lag, late, rate)
            reading.now += 120 * SECOND
            reading.read_all()
            self.assertEqual(list(range(last)), reading.got)

    def test_ahead(self) -> None:
        """A row in the future is read when its time comes, and delays no other row."""
        table = Table(range(1, 151))
        for one in range(200, 350):
            table.add(one, START + MAX_AHEAD + one * 60 * SECOND)
        table.add(400, START + 160 * SECOND)
        reading = Reading(table, START + 155 * SECOND)
        reading.read_all()
        self.assertEqual([*range(1, 151), 400], reading.got)
        table.add(401, START + 156 * SECOND)
        reading.read_all()
        self.assertEqual(401, reading.got[-1])
        reading.now += MAX_AHEAD + 350 * 60 * SECOND
        reading.read_all()
        self.assertEqual(list(range(200, 350)), reading.got[-150:])

    def test_ignored(self) -> None:
        """No row is repeated if the NetBird API ignores the start time."""
        table = Table(range(1, 351))
        reading = Reading(table, START + DAY)
        reading.read_all()
        table.add(351)
        answer = table.answer
        table.answer = lambda query: answer(  # type: ignore[method-assign]
            query.partition("&start_date")[0]
        )
        reading.read_all()
        self.assertEqual(list(range(1, 352)), reading.got)


class LostTests(SynchronousTestCase):
    def reading(self) -> Reading:
        reading = Reading(Table(range(1, 51)), START + 60 * SECOND)
        reading.read_all()
        return reading

    def test_retention(self) -> None:
        """Rows that were deleted unread are reported once."""
        reading = self.reading()
        reading.now += 10 * DAY
        reading.table.rows.clear()
        reading.table.add(900, reading.now - 6 * DAY)
        reading.read_all()
        self.assertEqual(1, len(reading.missed))
        self.assertIn("deleted all rows up to 2026-11-21T19:00:50", reading.missed[0])
        reading.table.rows.clear()
        reading.read_all()
        self.assertEqual(1, len(reading.missed))
        self.assertEqual([*range(1, 51), 900], reading.got)

    def test_quiet(self) -> None:
        """In a log that was quiet for days, no row is missing."""
        reading = self.reading()
        for _ in range(10 * 24):
            reading.now += DAY // 24
            reading.read_all()
        reading.table.rows.clear()
        reading.read_all()
        reading.table.add(900, reading.now)
        reading.read_all()
        self.assertEqual(([], 900), (reading.missed, reading.got[-1]))

    def test_restored(self) -> None:
        """A restored database is reported once, and later rows are read."""
        for left in (10, 0):
            reading = self.reading()
            del reading.table.rows[left:]
            reading.now += 60 * SECOND
            reading.read_all()
            for one in (900, 901):
                reading.table.add(one, reading.now)
                reading.read_all()
            self.assertEqual(1, len(reading.missed))
            self.assertIn("a restored database", reading.missed[0])
            self.assertEqual([*range(1, 51), 900, 901], reading.got)

    def test_replica(self) -> None:
        """A list that is behind once does not repeat rows."""
        reading = self.reading()
        rows = list(reading.table.rows)
        del reading.table.rows[15:]
        reading.read_all()
        reading.table.rows[:] = rows
        reading.table.add(51)
        reading.read_all()
        self.assertEqual(list(range(1, 52)), reading.got)
        self.assertFalse(reading.position.is_lost)

    def test_only_older(self) -> None:
        """A page full of late older rows is not a loss."""
        reading = self.reading()
        known = reading.position.known
        newest = {id_: known[id_] for id_ in known if known[id_] == max(known.values())}
        reading.position = replace(reading.position, known=newest)
        for one in range(500, 700):
            reading.table.add(one, START + 20 * SECOND + one)
        reading.read_all()
        self.assertEqual([], reading.missed)


class SkipTests(SynchronousTestCase):
    def test_backlog(self) -> None:
        """Without a file a backlog is skipped, and the skipped rows are counted."""
        table = Table(range(1, 1001))
        now = START + COUNTED_AGE + 2000 * SECOND
        reading = Reading(table, now, CountedPosition(start=0))
        chosen = reading.read_page()
        self.assertEqual(([], 1000), (chosen.rows, chosen.skipped))
        self.assertEqual(reading.now, reading.position.start)
        table.add(7000, reading.now + SECOND)
        self.assertEqual((0, [7000]), (reading.read_page().skipped, reading.got))

    def test_each_row_once(self) -> None:
        """Each row is either read or counted as skipped, also on the last page."""
        table = Table()
        for one in range(5000):
            table.add(one, START + one * SECOND // 1000)
        reading = Reading(table, START + COUNTED_AGE, CountedPosition(start=0))
        for _ in range(19):
            reading.read_page()
        self.assertEqual(1882, len(reading.got))
        reading.now += 60 * SECOND
        self.assertEqual(5000 - 1882, reading.read_page().skipped)


class PositionTests(SynchronousTestCase):
    def position(self, last: int) -> Position:
        reading = Reading(Table(range(1, last + 1)), START + 3600 * SECOND)
        reading.read_all()
        return reading.position

    def test_after_loss(self) -> None:
        """Rows of the last lines, and older ones, count as written."""
        keys = [row.key for row in requests(range(1, 61))]
        position = Position(start=0).after_loss([*keys[30:], *keys[:30]])
        self.assertEqual(START + 30 * SECOND, position.start)
        self.assertEqual({id_ for id_, _ in keys[29:]}, position.known.keys())
        self.assertEqual(Position(start=0), Position(start=0).after_loss([]))

    def test_once_each(self) -> None:
        """Each row is read once, with random equal times, late rows and crashes."""
        for seed in range(tries(8)):
            chance = Random(seed)
            table, reading, serial = Table(), Reading(Table(), START), 0
            reading.table = table
            pending: list[tuple[int, int, int]] = []
            lines: list[tuple[str, str]] = []
            for _ in range(80):
                passed = chance.choice((1, 30, 30, 30, 300))
                for _ in range(chance.randrange(2 * passed + 90)):
                    serial += 1
                    time = reading.now + chance.randrange(passed) * SECOND
                    late = chance.choice((0, 0, 0, 9, 29)) * SECOND
                    pending.append((time + late, serial, time))
                reading.now += passed * SECOND
                for shown, one, time in [p for p in pending if p[0] <= reading.now]:
                    pending.remove((shown, one, time))
                    table.add(one, time)
                page = table.page(reading.position.query)
                chosen = reading.position.new(page, reading.now)
                keys = [row.key for row in chosen.rows]
                if chance.random() < 0.1:  # killed after some of the rows
                    keys = keys[: chance.randrange(len(keys) + 1)]
                    lines += keys
                    assert isinstance(chosen.before, Position)
                    reading.position = chosen.before.with_(keys)
                    continue
                lines += keys
                reading.position = next_of(chosen)
            for _, one, time in pending:
                table.add(one, time)
            reading.now += 40 * SECOND
            reading.read_all()
            found = [number(id_) for id_, _ in lines] + reading.got
            self.assertEqual(list(range(1, serial + 1)), sorted(found), seed)
            self.assertEqual([], reading.missed)
