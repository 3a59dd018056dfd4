"""The bucket of tokens."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.door.limiter import Limiter


class LimiterTests(SynchronousTestCase):
    def test_burst(self) -> None:
        """As many at once as the burst, then one each interval."""
        limiter = Limiter(2.0, 3)
        self.assertEqual([0, 0, 0, 2], [limiter.wait(10.0) for _ in range(4)])
        self.assertEqual(1.0, limiter.wait(11.0))
        self.assertEqual(0.0, limiter.wait(12.0))
        self.assertEqual(2.0, limiter.wait(12.0))

    def test_none(self) -> None:
        """A burst of none lets nobody through, ever."""
        limiter = Limiter(1.0, 0)
        self.assertEqual([1.0] * 3, [limiter.wait(at) for at in (0.0, 100.0, 1e6)])

    def test_full(self) -> None:
        """However long nobody came, no more than the burst may come at once."""
        limiter = Limiter(1.0, 2)
        limiter.wait(0.0)
        self.assertEqual([0, 0, 1], [limiter.wait(1000.0) for _ in range(3)])

    def test_backwards(self) -> None:
        """A clock that goes back grants nothing."""
        limiter = Limiter(1.0, 1)
        self.assertEqual([0, 1, 1], [limiter.wait(at) for at in (10.0, 10.0, 5.0)])

    @given(
        st.floats(0.01, 10),
        st.integers(0, 20),
        st.lists(st.floats(0, 5), max_size=50),
    )
    def test_bound(self, interval: float, burst: int, pauses: list[float]) -> None:
        """In any time no more are granted than its length and the burst allow."""
        limiter, now, granted = Limiter(interval, burst), 0.0, 0
        for pause in pauses:
            now += pause
            granted += limiter.wait(now) == 0
        self.assertLessEqual(granted, burst + now / interval + 1e-6)
