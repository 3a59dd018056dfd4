"""Whose CPU time it is."""

import sys
from threading import Event, Thread
from types import FrameType

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.profiling.tally import Tally


def work() -> FrameType:
    return sys._getframe()


def wait() -> FrameType:
    return sys._getframe()


class TallyTests(SynchronousTestCase):
    """The thread is real, because it must have an identity; its clock is not."""

    def setUp(self) -> None:
        end = Event()
        self.thread = Thread(target=end.wait, name="worker")
        self.thread.start()
        self.addCleanup(self.thread.join)
        self.addCleanup(end.set)
        self.tally = Tally({self.thread: 1000})

    def look(self, now: int, frame: FrameType, *, running: bool) -> None:
        assert self.thread.ident is not None
        self.tally.look({self.thread: now}, {self.thread.ident: frame})
        self.tally.charge({self.thread: now + running})

    def found(self) -> dict[str, tuple[int, ...]]:
        """Looks and nanoseconds by the name of the leaf."""
        found: dict[str, tuple[int, ...]] = {}
        for stack, (looks, spent), _ in self.tally.samples():
            name = stack[0].function.rpartition(".")[2]
            before = found.get(name, (0, 0))
            found[name] = before[0] + looks, before[1] + spent
        return found

    def test_difference(self) -> None:
        """A stack is charged with what the clock has moved since the look before."""
        self.look(1010, work(), running=True)
        self.look(1050, work(), running=True)
        self.assertEqual({"work": (2, 50)}, self.found())
        self.assertEqual({"worker"}, {s.thread for s in self.tally.samples()})

    def test_idle(self) -> None:
        """A thread whose clock stands still is not seen at all."""
        self.look(1000, wait(), running=False)
        self.assertEqual({}, self.found())

    def test_blocked(self) -> None:
        """Time of a thread that waits goes to where it was last seen to run."""
        self.look(1010, work(), running=True)
        self.look(1015, wait(), running=False)
        self.assertEqual({"work": (2, 15)}, self.found())

    def test_never_seen_running(self) -> None:
        """Time of a thread that was never seen to run goes to where it waits."""
        self.look(1010, wait(), running=False)
        self.assertEqual({"wait": (1, 10)}, self.found())

    def test_new_thread(self) -> None:
        """A thread that began after the last look is charged with all of its time."""
        self.tally = Tally({})
        self.look(7, work(), running=True)
        self.assertEqual({"work": (1, 7)}, self.found())

    def test_ended(self) -> None:
        """A thread that ends between look and charge loses nothing."""
        assert self.thread.ident is not None
        self.tally.look({self.thread: 1010}, {self.thread.ident: work()})
        self.tally.charge({})
        self.assertEqual({"work": (1, 10)}, self.found())
