"""The token bucket."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.token_bucket import TokenBucket


class TokenBucketTests(SynchronousTestCase):
    def test_burst(self) -> None:
        """The burst is granted at once, then one request for each interval."""
        bucket = TokenBucket(2.0, 3)
        self.assertEqual([0, 0, 0, 2], [bucket.take(10.0) for _ in range(4)])
        self.assertEqual(1.0, bucket.take(11.0))
        self.assertEqual(0.0, bucket.take(12.0))
        self.assertEqual(2.0, bucket.take(12.0))

    def test_none(self) -> None:
        """A burst of 0 grants nothing."""
        bucket = TokenBucket(1.0, 0)
        self.assertEqual([1.0] * 3, [bucket.take(at) for at in (0.0, 100.0, 1e6)])

    def test_full(self) -> None:
        """After a long pause, no more than the burst is granted at once."""
        bucket = TokenBucket(1.0, 2)
        bucket.take(0.0)
        self.assertEqual([0, 0, 1], [bucket.take(1000.0) for _ in range(3)])

    def test_backwards(self) -> None:
        """A clock that goes backwards grants nothing."""
        bucket = TokenBucket(1.0, 1)
        self.assertEqual([0, 1, 1], [bucket.take(at) for at in (10.0, 10.0, 5.0)])

    @given(
        st.floats(0.01, 10), st.integers(0, 20), st.lists(st.floats(0, 5), max_size=50)
    )
    def test_bound(self, interval: float, burst: int, pauses: list[float]) -> None:
        """No period grants more than its length and the burst allow."""
        bucket, now, granted = TokenBucket(interval, burst), 0.0, 0
        for pause in pauses:
            now += pause
            granted += bucket.take(now) == 0
        self.assertLessEqual(granted, burst + now / interval + 1e-6)
