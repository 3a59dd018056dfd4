"""Who is dropped so that old pages do not fill the memory."""

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.server import Request
from twisted.web.test.requesthelper import DummyChannel

from api_exporter.exposition.pages import Page, Pages, Piece, piece
from api_exporter.serving.readers import ROOM, Readers


class Channel(DummyChannel):
    """A connection that only notes that it was aborted."""

    aborted = False

    def forceAbortClient(self) -> None:
        self.aborted = True


def large(size: int = ROOM + 1) -> Page:
    """A page of one piece, as long as all room for old ones."""
    small = piece(b"x 1\n")
    return (
        Piece(bytes(size), small.deflated, small.crc, small.shift, series=small.series),
    )


class ReadersTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.pages = Pages(["peers", "groups"])
        self.pages.publish("peers", large())
        self.pages.publish("groups", (piece(b"g 1\n"),))
        self.readers = Readers()

    def reads(self, names: frozenset[str] | None = None) -> Channel:
        """A reader of these collectors that does not come to an end."""
        channel = Channel()
        request = Request(channel)
        self.readers.add(request, self.pages.whole(names), self.pages.whole())
        return channel

    def test_newest(self) -> None:
        """Whoever reads the newest page stays, whatever others choose of it."""
        every, some = self.reads(), self.reads(frozenset({"groups"}))
        more = self.reads(frozenset({"peers"}))
        self.assertEqual([False] * 3, [c.aborted for c in (every, some, more)])

    def test_old(self) -> None:
        """Readers of old pages for which there is no room are dropped, no others."""
        before, small = self.reads(), self.reads(frozenset({"groups"}))
        self.pages.publish("peers", (piece(b"p 1\n"),))
        after = self.reads()
        self.assertEqual(
            [True, False, False], [c.aborted for c in (before, small, after)]
        )
