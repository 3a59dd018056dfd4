"""How much memory those who read slowly may take."""

from typing import cast

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.server import Request

from api_exporter.exposition.pages import Payload
from api_exporter.web.discovery.lru_cache import LRUCache
from api_exporter.web.discovery.readers import ROOM, AnswerReaders


class Reading:
    """A request whose answer is under way, and its connection."""

    def __init__(self) -> None:
        self.channel = self
        self.dropped = False
        self._over: Deferred[None] = Deferred()

    def notifyFinish(self) -> Deferred[None]:
        return self._over

    def finish(self) -> None:
        self._over.callback(None)

    def forceAbortClient(self) -> None:
        self.dropped = True
        self._over.addErrback(lambda _: None)
        self._over.errback(Failure(ConnectionAbortedError()))


class ReadersTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.kept = LRUCache()
        self.readers = AnswerReaders(self.kept)

    def read(self, length: int) -> tuple[Reading, Payload]:
        """Somebody reads an answer of their own that is so long."""
        return self.join(Payload((b"x",), length))

    def join(self, made: Payload) -> tuple[Reading, Payload]:
        reading = Reading()
        self.readers.add(cast(Request, reading), made)
        return reading, made

    def test_oldest(self) -> None:
        """Of answers that are too much together the oldest lose their readers."""
        reading = [self.read(ROOM // 2)[0] for _ in range(4)]
        self.assertEqual([True, False, False, False], [r.dropped for r in reading])
        self.read(1)
        self.assertEqual([True, True, False, False], [r.dropped for r in reading])

    def test_newest(self) -> None:
        """The newest answer is sent however long it is, and to all who want it."""
        (first, made), (other, _) = self.read(2 * ROOM), self.read(1)
        self.assertTrue(first.dropped)
        (second, made) = self.read(2 * ROOM)
        third, _ = self.join(made)
        self.assertEqual(
            [False, False, False], [r.dropped for r in (other, second, third)]
        )

    def test_shared(self) -> None:
        """An answer takes its memory once, however many read it."""
        _, made = self.read(ROOM)
        shared = [self.join(made)[0] for _ in range(5)]
        self.read(1)
        self.assertFalse(any(r.dropped for r in shared))

    def test_kept(self) -> None:
        """Answers that are kept anyway cost nothing."""
        reading = []
        for query in range(9):
            made = Payload((b"x",), 2**22)
            self.kept.put(("", query), (), made)
            reading += [self.join(made)[0] for _ in range(2)]
        (late, _) = self.read(2 * ROOM)
        self.assertFalse(any(r.dropped for r in [*reading, late]))

    def test_finished(self) -> None:
        """Who has read all of it counts no more."""
        (first, _), (second, _) = self.read(ROOM), self.read(ROOM)
        first.finish()
        (third, _) = self.read(1)
        self.assertEqual([False, False], [r.dropped for r in (second, third)])
