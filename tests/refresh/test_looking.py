"""Looks after rounds: in slices, and harmless."""

from collections.abc import Generator

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.logger import Logger
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.refresh.looking import Looking
from api_exporter.refresh.slices import Slicer


class LookingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.looked: list[str] = []
        self.broken = False
        self.looking = Looking(self.look, Slicer(self.clock), Logger())

    def look(self, resource: str) -> Generator[None, None, None]:
        yield
        if self.broken:
            raise ValueError(resource)
        self.looked.append(resource)

    def begin(self, resource: str) -> Deferred[None]:
        return Deferred.fromCoroutine(self.looking(resource))

    def test_slices(self) -> None:
        """Nothing is looked at before the event loop has had its turn."""
        begun = self.begin("peers")
        self.assertEqual([], self.looked)
        self.clock.advance(0)
        self.successResultOf(begun)
        self.assertEqual(["peers"], self.looked)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_defect(self) -> None:
        """A defect is told when it begins, and again after it was gone."""
        told = []
        for broken in (True, True, False, True):
            self.broken = broken
            begun = self.begin("peers")
            self.clock.advance(0)
            self.successResultOf(begun)
            told.append(len(self.flushLoggedErrors(ValueError)))
        self.assertEqual([1, 0, 0, 1], told)

    def test_cancelled(self) -> None:
        """One that is cancelled ends at once, and the next one has its turn."""
        begun = self.begin("peers")
        begun.cancel()
        self.failureResultOf(begun, CancelledError)
        following = self.begin("users")
        self.clock.advance(0)
        self.successResultOf(following)
        self.assertEqual(["users"], self.looked)
