from random import Random

from twisted.trial.unittest import SynchronousTestCase

from simulation.company.schedules import (
    DAY,
    HOUR,
    MINUTE,
    PATTERNS,
    SETTLED,
    Pattern,
    always,
    never,
    office_hours,
    outages,
)

NOW = 1_787_425_800
SATURDAY = NOW - NOW % DAY  # 2026-08-22


class ScheduleTests(SynchronousTestCase):
    def test_state(self) -> None:
        """The state includes the time of the last change, however long ago."""
        schedule = Pattern(1000, 100, (10, 20, 50, 70))
        states = {
            1009: (False, 970, 950),
            1010: (True, 1010, 1010),
            1019.9: (True, 1010, 1010),
            1020: (False, 1020, 1010),
            1069: (True, 1050, 1050),
            1099: (False, 1070, 1050),
            1105: (False, 1070, 1050),
            999: (False, 970, 950),
        }
        self.assertEqual(states, {at: schedule.state(at) for at in states})

    def test_changes(self) -> None:
        """The changes of every pattern are an even number, ascending, in one period."""
        for maker in PATTERNS.values():
            for seed in range(100):
                schedule = maker(Random(seed), -6)
                changes = schedule.changes
                self.assertEqual(0, len(changes) % 2)
                self.assertEqual(sorted(set(changes)), list(changes))
                self.assertTrue(0 <= changes[0] <= changes[-1] < schedule.period)

    def test_constant(self) -> None:
        """A constant state holds from its first second on, for decades."""
        up, down = always(Random(0), 1), never(Random(0), 1)
        for after in (0, 1, NOW, 10_000 * DAY):
            since = SETTLED + 40 * DAY
            self.assertEqual((True, since, since), up.state(since + after))
            since = SETTLED + 200 * DAY
            self.assertEqual((False, since, since - DAY), down.state(since + after))

    def test_outages(self) -> None:
        """A server's outages last for minutes or hours and are weeks apart."""
        for seed in range(100):
            _, length = (schedule := outages(Random(seed), 9)).changes
            self.assertTrue(2 * MINUTE <= schedule.period - length <= 3 * HOUR)
            self.assertTrue(20 * DAY <= schedule.period <= 90 * DAY)

    def test_office_hours(self) -> None:
        """The office is empty on Saturday, full on Wednesday until five, then empty."""
        for east in (-6, 1, 9):
            people = [office_hours(Random(seed), east) for seed in range(200)]
            noon = SATURDAY + (12 - east) * HOUR
            saturday, wednesday, five, later = (
                sum(one.state(at)[0] for one in people)
                for at in (
                    noon,
                    noon + 4 * DAY,
                    noon + 4 * DAY + 5 * HOUR - 1,
                    noon + 4 * DAY + 5 * HOUR + 10 * MINUTE,
                )
            )
            self.assertEqual((0, 0), (saturday, later))
            self.assertGreater(wednesday, 150)
            self.assertEqual(wednesday, five)
