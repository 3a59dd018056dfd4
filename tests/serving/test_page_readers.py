"""Who is dropped so that old pages do not fill the memory."""

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.server import Request
from twisted.web.test.requesthelper import DummyChannel

from api_exporter.exposition.pages import Page, Pages, Piece, piece
from api_exporter.serving.page_readers import ROOM, PageReaders


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
        self.readers = PageReaders()

    def reads(self, names: frozenset[str] | None = None) -> Channel:
        """A reader of these collectors that does not come to an end."""
        channel = Channel()
        request = Request(channel)
        self.readers.add(request, self.pages.whole(names), self.pages)
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

    def test_many_accounts(self) -> None:
        """The room is the same for all accounts together."""
        accounts = [Pages(["peers"]) for _ in range(8)]
        reading: list[Channel] = []
        for pages in accounts:
            pages.publish("peers", large(ROOM // 4))
            reading.append(self.begin(pages))
        for pages in accounts:
            pages.publish("peers", large(1000))
        current = self.begin(accounts[0])
        dropped = [channel.aborted for channel in reading]
        self.assertEqual([True] * 4, dropped[:4])
        self.assertEqual([False] * 3, dropped[5:])
        self.assertFalse(current.aborted)

    def test_newest_of_others(self) -> None:
        """Who reads the newest page of another account is not dropped for it."""
        other = Pages(["peers"])
        other.publish("peers", large(2 * ROOM))
        first, before = self.begin(other), self.reads()
        self.pages.publish("peers", (piece(b"p 1\n"),))
        self.reads()
        self.assertEqual([False, True], [first.aborted, before.aborted])

    def begin(self, pages: Pages) -> Channel:
        """A reader of an account's newest page."""
        channel = Channel()
        self.readers.add(Request(channel), pages.whole(), pages)
        return channel
