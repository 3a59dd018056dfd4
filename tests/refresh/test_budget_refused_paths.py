"""Refused paths look like a scan: see Note [Not a scanner]."""

from math import inf

from prometheus_client import CollectorRegistry
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.ports import ResponseBody, UpstreamError
from api_exporter.refresh.budget import MAX_REFUSED, RefusedPaths
from api_exporter.refresh.network import AccountNetwork
from api_exporter.subjects.table import COLLECTORS
from tests.parts import account_settings, attempt, clocks_of, request_plan


class BucketTests(SynchronousTestCase):
    """One path leaves CrowdSec's bucket each ten seconds."""

    def setUp(self) -> None:
        self.paths = RefusedPaths()
        for number in range(MAX_REFUSED):
            self.assertEqual(-inf, self.paths.allowed_at(f"new{number}", 5.0))
            self.paths.observe(attempt(f"{number}", 403), 5.0)

    def test_full(self) -> None:
        """A new path waits until the oldest one leaves."""
        self.assertEqual(15.0, self.paths.allowed_at("new", 5.0))
        self.assertEqual(15.0, self.paths.allowed_at("new", 14.9))
        self.assertEqual(-inf, self.paths.allowed_at("new", 15.0))
        # A path with a good answer before.
        self.paths.observe(attempt("more", 403), 15.0)
        self.assertEqual(25.0, self.paths.allowed_at("new", 15.0))

    def test_repeated(self) -> None:
        """A path that is in the bucket takes no room, with a query or not."""
        self.paths.observe(attempt("3?account=a", 403), 6.0)
        self.assertEqual(-inf, self.paths.allowed_at("3", 6.0))
        self.assertEqual(15.0, self.paths.allowed_at("new", 6.0))
        self.paths.observe(attempt("0", 403), 15.0)
        self.assertEqual(25.0, self.paths.allowed_at("new", 15.0))
        self.assertEqual(-inf, self.paths.allowed_at("3", 55.0))

    def test_empty_again(self) -> None:
        """A bucket that has become empty starts again."""
        self.paths.observe(attempt("late", 403), 500.0)
        for number in range(1, MAX_REFUSED):
            self.paths.observe(attempt(f"{number}", 403), 501.0)
        self.assertEqual(510.0, self.paths.allowed_at("new", 501.0))

    def test_other_statuses(self) -> None:
        """A good answer, a limit and a server's failure are no refusals."""
        paths = RefusedPaths()
        for number in range(MAX_REFUSED):
            for status in (200, 399, 429, 500):
                paths.observe(attempt(f"{number}{status}", status), 0.0)
        self.assertEqual(-inf, paths.allowed_at("new", 0.0))


class MovingClock(Clock):
    """A clock that moves between two looks, as a real one does."""

    looks = 0

    def seconds(self) -> float:
        self.looks += 1
        assert self.looks < 1_000_000, "the schedule starts an alarm again and again"
        self.rightNow += 1e-6
        return float(self.rightNow)


class WeakRole(AccountNetwork):
    """A network whose token may read the peers alone.

    Attributes:
        refused: the time and path of each refused request.
    """

    def __init__(self) -> None:
        self.clock: Clock = MovingClock()
        self.refused: list[tuple[float, str]] = []
        self.readable = {"api/peers"}
        super().__init__(
            settings=account_settings(),
            fetch=self.answer,
            plan=request_plan(tuple(c.name for c in COLLECTORS)),
            clocks=clocks_of(self.clock),
            registry=CollectorRegistry(),
        )

    async def answer(self, path: str, _: float) -> ResponseBody:
        if path.partition("?")[0] in self.readable:
            return ResponseBody(b"[]")
        self.refused.append((self.clock.seconds(), path))
        self.count_attempt(attempt(path, 403))
        raise UpstreamError("forbidden", "403: permission denied")

    def run(self, seconds: int) -> list[str]:
        """Return the paths that are refused for the first time until a time."""
        while self.clock.seconds() < seconds:
            self.clock.advance(0.5)
        return list(dict.fromkeys(path for _, path in self.refused))


class WeakRoleTests(SynchronousTestCase):
    def test_first_round(self) -> None:
        """Nine paths at once, then one each ten seconds; the peers go on."""
        network = WeakRole()
        network.startService()
        self.assertEqual(MAX_REFUSED, len(network.run(5)))
        self.assertEqual(MAX_REFUSED + 1, len(network.run(15)))
        self.assertEqual(MAX_REFUSED + 6, len(network.run(65)))
        self.assertGreaterEqual(network.states["peers"].last_success or 0.0, 60.0)
        times = [at for at, _ in network.refused]
        for first, last in zip(times, times[MAX_REFUSED + 1 :], strict=False):
            self.assertGreaterEqual(last - first, 10.0)
