"""What the Agent Network was used for, by days."""

from datetime import UTC, datetime

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.agent_bodies import Period, Usage
from api_exporter.netbird.agent_records import UsageBucket
from api_exporter.netbird.facts.agents import usage

NOW = datetime(2026, 11, 22, 0, 5, tzinfo=UTC).timestamp()


def period(first: str, last: str, tokens: int) -> Period:
    return Period(first=first, last=last, buckets=(UsageBucket(input_tokens=tokens),))


class UsageTests(SynchronousTestCase):
    def told(self, known: Usage) -> dict[str, int]:
        return {name: used.input_tokens or 0 for name, used in usage([known], NOW)}

    def test_day_counted_once(self) -> None:
        """After midnight the earlier days may have the day that was today before."""
        last = period("2026-11-21", "2026-11-21", 5)
        until = period("2026-11-01", "2026-11-20", 7)
        self.assertEqual(
            {"day": 0, "month": 12}, self.told(Usage(today=last, earlier=until))
        )
        until = period("2026-11-01", "2026-11-21", 12)
        self.assertEqual(
            {"day": 0, "month": 12}, self.told(Usage(today=last, earlier=until))
        )

    def test_unknown(self) -> None:
        """Nothing is told before today was read."""
        until = period("2026-11-01", "2026-11-21", 12)
        self.assertEqual({}, self.told(Usage(earlier=until)))
