"""The new events of a list: each is written once, in any order, after any crash."""

from itertools import chain
from random import Random

from msgspec import Raw
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.logs.audit_cursor import MAX_EVENTS, MAX_IDS, AuditCursor
from api_exporter.logs.listing import LogRow, NewRows, Page, batches
from tests import tries
from tests.logs import events, keys, timestamp

NOTHING = AuditCursor(recent={})


def choose(one: AuditCursor, listed: list[LogRow], *unreadable: int) -> NewRows:
    return one.new(Page(listed, unreadable, 0), 0)


def before(new: NewRows) -> AuditCursor:
    """Return the cursor before the new events."""
    assert isinstance(new.before, AuditCursor)
    return new.before


def after(numbers: range, era: int = 0) -> AuditCursor:
    """Return the cursor after some events were written."""
    return NOTHING.with_(keys(numbers, era))


def ids(chosen: NewRows) -> list[int]:
    return [event.number for event in chosen.rows]


class BatchTests(SynchronousTestCase):
    def test_count(self) -> None:
        """A batch has at most a hundred events."""
        found = [[e.number for e in batch] for batch in batches(events(range(1, 251)))]
        self.assertEqual([100, 100, 50], [len(one) for one in found])
        self.assertEqual(list(range(1, 251)), list(chain(*found)))
        self.assertEqual([], list(batches([])))

    def test_size(self) -> None:
        """A batch has fewer long events, and a very long event is alone."""
        sizes = [2_000_000, 400_000, 400_000, 400_000, 3_000_000, *2 * [2**19]]
        long = [LogRow(str(n), "", Raw(b"x" * size)) for n, size in enumerate(sizes)]
        found = [[e.number for e in batch] for batch in batches(long)]
        self.assertEqual([[0], [1, 2], [3], [4], [5, 6]], found)


class NewTests(SynchronousTestCase):
    def test_floor(self) -> None:
        """Ids up to the floor count as written, that one included."""
        cursor = replace(after(range(8, 10)), floor=5)
        listed = events([4, 5, 6, 8, 9])
        self.assertEqual([6], ids(choose(cursor, listed)))

    def test_new(self) -> None:
        """Events that were not written before are new, and none is missed."""
        seven, many = after(range(1, 8)), 5 + MAX_IDS + 10
        for claim, cursor, listed, new in (
            ("all without a cursor", NOTHING, range(50, 60), range(50, 60)),
            ("later ones", seven, range(1, 11), (8, 9, 10)),
            ("none of the same list", seven, range(1, 8), ()),
            ("none of an empty list", seven, (), ()),
            ("late ones", NOTHING.with_(keys([1, 2, 5])), range(1, 6), (3, 4)),
            (
                "none below a full cursor",
                after(range(5, many - 10)),
                range(1, many - 10),
                (),
            ),
            ("none below all ids", after(range(5, many)), range(1, many + 1), (many,)),
            (
                *("those of one account, between others", after(range(3, 1000, 7))),
                *(range(3, 2000, 7), range(1004, 2000, 7)),
            ),
            ("those after deleted ones", seven, range(20, 30), range(20, 30)),
        ):
            chosen = choose(cursor, events(listed))
            found = ids(chosen), chosen.gap_reason, chosen.lag
            self.assertEqual((list(new), "", 0.0), found, claim)


class MissedTests(SynchronousTestCase):
    def test_gap(self) -> None:
        """A list that newer or unreadable events fill is a gap; it is reported once."""
        listed = events(range(100, 100 + MAX_EVENTS))
        chosen = choose(after(range(1, 8)), listed)
        self.assertEqual(MAX_EVENTS, len(chosen.rows))
        self.assertIn("later events before 100 are lost", chosen.gap_reason)
        again = choose(before(chosen), listed)
        self.assertEqual((MAX_EVENTS, ""), (len(again.rows), again.gap_reason))
        self.assertTrue(choose(after(range(1, 8)), listed[1:], 7).gap_reason)
        self.assertFalse(choose(after(range(1, 8)), listed[1:]).gap_reason)
        self.assertEqual([], choose(before(chosen), events(range(1, 8))).rows)

    def test_restored(self) -> None:
        """After a database was restored, events since then are new."""
        cursor = after(range(1, 51))
        listed = events(range(1, 31)) + events(range(31, 36), era=1)
        chosen = choose(cursor, listed)
        self.assertEqual([31, 32, 33, 34, 35], ids(chosen))
        self.assertIn("ids have started again", chosen.gap_reason)
        cursor = before(chosen).with_(keys(range(31, 36), era=1))
        self.assertEqual([], choose(cursor, listed).rows)
        more = choose(cursor, listed + events(range(36, 60), era=1))
        self.assertEqual((list(range(36, 60)), ""), (ids(more), more.gap_reason))

    def test_restored_again(self) -> None:
        """Each restored database replaces the remembered ids of the one before."""
        cursor = after(range(1, 51))
        for era in (1, 2):
            recent = cursor.recent
            chosen = choose(cursor, events(range(1, 4), era))
            self.assertEqual(recent, before(chosen).former)
            cursor = before(chosen).with_(keys(range(1, 4), era))

    def test_restored_differently(self) -> None:
        """Only events later than all events before the restore are new."""
        fifty = after(range(1, 51))
        old = events(range(1, 31))
        same = LogRow("31", timestamp(50), Raw(b"{}"))
        for claim, cursor, listed, new in (
            ("none as old as the newest written one", fifty, [*old, same], ()),
            ("later ones", fifty, [*old, same, *events([32], era=1)], [32]),
            (
                *("those above the written ids, by their times", fifty),
                *(events(range(1, 41)) + events(range(41, 90), era=1), range(41, 90)),
            ),
            ("a new database from 1 on", fifty, events(range(1, 4), era=1), [1, 2, 3]),
            (
                *("a list around the written ids", after(range(50, 60))),
                *(events([1, 2, 99], era=1), [1, 2, 99]),
            ),
        ):
            chosen = choose(cursor, listed)
            self.assertEqual(list(new), ids(chosen), claim)
            self.assertIn("ids have started again", chosen.gap_reason, claim)

    def test_restored_with_many(self) -> None:
        """As many old events as a cursor holds hide all earlier ones."""
        listed = events(range(1, MAX_IDS + 501))
        cursor = NOTHING.with_(keys(range(MAX_IDS + 501, MAX_IDS + 700)))
        chosen = choose(cursor, listed)
        self.assertEqual([], ids(chosen))
        later = events([MAX_IDS + 501], era=1)
        again = choose(before(chosen), listed + later)
        self.assertEqual([MAX_IDS + 501], ids(again))

    def test_replica(self) -> None:
        """A list that is behind once does not repeat events."""
        behind = choose(after(range(1, 51)), events(range(1, 41)))
        self.assertEqual([], behind.rows)
        self.assertIn("the last listed id is 40", behind.gap_reason)
        chosen = choose(before(behind), events(range(1, 53)))
        self.assertEqual(([51, 52], ""), (ids(chosen), chosen.gap_reason))


class CursorTests(SynchronousTestCase):
    def test_without_cursor(self) -> None:
        """Without a cursor, events before the newest line count as written."""
        for written, listed, new in (
            (range(200, 301), range(1, 302), [301]),
            (range(6, 20), range(1, 22), [20, 21]),
            ([*range(100, 149), 3, *range(149, 300)], range(1, 301), [300]),
        ):
            cursor = NOTHING.after_loss(keys(written))
            self.assertEqual(new, ids(choose(cursor, events(listed))))
        self.assertEqual(NOTHING, NOTHING.after_loss([]))

    def test_without_cursor_in_a_new_era(self) -> None:
        """Lines from before a restart of ids do not hide later events."""
        cursor = NOTHING.after_loss(keys(range(1, 51)) + keys([31, 32], era=1))
        listed = events(range(1, 31)) + events(range(31, 36), era=1)
        self.assertEqual([33, 34, 35], ids(choose(cursor, listed)))

    def test_once_each(self) -> None:
        """Each event is written once, with random late commits."""
        for seed in range(tries(8)):
            chance = Random(seed)
            committed: list[int] = []
            pending: list[int] = []
            cursor, lines, number = NOTHING, keys([]), 0
            for _ in range(30):
                for _ in range(chance.randrange(30)):
                    number += 1
                    pending.append(number)
                held = pending[-3:] if chance.random() < 0.5 else []
                committed += [one for one in pending if one not in held]
                pending = held
                new = ids(choose(cursor, events(committed)))
                while new and chance.random() < 0.9:
                    batch, new = keys(new[:10]), new[10:]
                    lines += batch
                    cursor = cursor.with_(batch)
            rest = choose(cursor, events(committed))
            self.assertEqual("", rest.gap_reason)
            written = [int(one) for one, _ in lines] + ids(rest)
            self.assertEqual(sorted(committed), sorted(written), seed)
            self.assertIn(("1", timestamp(1)), lines)
