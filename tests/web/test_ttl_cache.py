"""Cached values: they expire after a second and are removed."""

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.web.context import TTL, TTLCache


class TTLCacheTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.made: list[str] = []
        self.cache = TTLCache[int](self.clock.seconds)

    def get(self, key: str) -> int:
        def make() -> int:
            self.made.append(key)
            return len(self.made)

        return self.cache.get(key, make)

    def test_life(self) -> None:
        self.assertEqual([1, 1, 2], [self.get("a"), self.get("a"), self.get("b")])
        self.clock.advance(0.9 * TTL)
        self.assertEqual([1, 2], [self.get("a"), self.get("b")])
        self.clock.advance(0.1 * TTL)
        self.assertEqual([3, 3], [self.get("a"), self.get("a")])
        self.clock.rightNow -= 500  # a clock that jumps back freezes nothing
        self.assertEqual(4, self.get("a"))

    def test_old(self) -> None:
        """Expired values are removed."""
        for number in range(100):
            self.get(f"a{number}")
            self.clock.advance(TTL / 4)
        self.assertEqual(4, len(self.cache._values))
