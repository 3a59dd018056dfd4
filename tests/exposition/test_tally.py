"""Counting in steps."""

from collections.abc import Iterator

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.exposition.tally import AT_ONCE
from api_exporter.exposition.text import (
    Family,
    Metric,
    count_true,
    counted,
    halves,
    render,
)

METRIC = Metric(name="netbird_api_things", help="Things.", source="things")
MANY = 4 * AT_ONCE


class PauseTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.read = 0

    def things(self) -> Iterator[bool]:
        for n in range(MANY):
            self.read = n + 1
            yield n % 2 == 0

    def families(self) -> list[Family]:
        return [
            count_true(METRIC, self.things()),
            halves("even", METRIC, self.things()),
            counted(METRIC, self.things(), lambda even: f'{{even="{even}"}}'),
        ]

    def test_pauses(self) -> None:
        """Whoever renders a count of many may pause before all have been read."""
        for family in self.families():
            texts, before = [], 0
            for text in render([family]):
                self.assertLessEqual(self.read - before, AT_ONCE)
                texts.append(text)
                before = self.read
            self.assertEqual(MANY, self.read)
            self.assertIn(f" {MANY // 2}\n", "".join(texts))
            self.read = 0

    def test_at_one_go(self) -> None:
        """Samples are right without any pause, and in the middle of them."""
        for taken in (0, 1, 9):
            for family in self.families():
                for _ in zip(range(taken), family.steps, strict=False):
                    pass
                self.assertEqual(MANY // 2, next(v for _, v in family.samples))
