"""Times and numbers in words."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter import formatting
from api_exporter.formatting import duration, with_noun
from tests.web.watched import NOON


class WordsTests(SynchronousTestCase):
    def test_durations(self) -> None:
        """A duration has one unit: the largest of which there are two."""
        for seconds, long, short in (
            (-5, "0 seconds", "0 s"),
            (1.9, "1 second", "1 s"),
            (119, "119 seconds", "119 s"),
            (120, "2 minutes", "2 min"),
            (3600, "60 minutes", "60 min"),
            (7200, "2 hours", "2 h"),
            (86400 * 59.5, "59 days", "59 d"),
            (86400 * 546, "18 months", "18 months"),
            (86400 * 800, "2 years", "2 years"),
        ):
            self.assertEqual(long, formatting.long_duration(seconds))
            self.assertEqual(short, formatting.short_duration(seconds))

    def test_numbers(self) -> None:
        """Thousands are separated; 1 is singular."""
        self.assertEqual("1 peer", with_noun(1, "peer"))
        self.assertEqual("0 peers", with_noun(0, "peer"))
        self.assertEqual("1,234,567 peers", with_noun(1_234_567, "peer"))
        for seconds, words in (
            (86_400, "1 day"),
            (172_800, "2 days"),
            (3_600, "1 hour"),
            (5_400, "90 minutes"),
            (1, "1 second"),
        ):
            self.assertEqual(words, duration(seconds))

    def test_instants(self) -> None:
        """A time has its date if that is not today."""
        tomorrow = NOON + 86400
        for shown, clock, day in (
            (NOON + 3600, "12:00 UTC", "12:00 UTC"),
            (tomorrow, "2027-01-15 12:00 UTC", "2027-01-15"),
        ):
            self.assertEqual(clock, formatting.clock_time(NOON, shown))
            self.assertEqual(day, formatting.day_or_time(NOON, shown))

    def test_last_days(self) -> None:
        """An instant after the last date of the calendar is shown as the last one."""
        last = formatting.instant(253402300799 + 12 * 3600)
        self.assertEqual("9999-12-31", f"{last:%Y-%m-%d}")
