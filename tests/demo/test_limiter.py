from twisted.trial.unittest import SynchronousTestCase

from api_exporter.demo.limiter import Limiter

NOW = 1_787_425_800.0


class LimiterTests(SynchronousTestCase):
    def test_burst(self) -> None:
        """A rested bucket allows its burst at once and not one call more."""
        limiter = Limiter(6, 3)
        self.assertEqual(
            [True, True, True, False], [limiter.allow(NOW) for _ in range(4)]
        )

    def test_rate(self) -> None:
        """An empty bucket allows one call each time a token has dripped in."""
        limiter = Limiter(15, 1)
        allowed = [second for second in range(13) if limiter.allow(NOW + second)]
        self.assertEqual([0, 4, 8, 12], allowed)

    def test_overflow(self) -> None:
        """A long rest fills the bucket to the burst and no further."""
        limiter = Limiter(6, 2)
        limiter.allow(NOW)
        allowed = [limiter.allow(NOW + 86400) for _ in range(3)]
        self.assertEqual([True, True, False], allowed)

    def test_clock_set_back(self) -> None:
        """A clock that is set back takes no tokens away."""
        limiter = Limiter(6, 2)
        self.assertEqual([True, True], [limiter.allow(NOW), limiter.allow(NOW - 3600)])
