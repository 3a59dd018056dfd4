"""Readers of pages: who is sent which, and how much memory old pages may take.

The bound is the process's: it is the same for one account and for five hundred.
"""

from collections.abc import Iterable

from twisted.logger import Logger
from twisted.web.server import Request

from api_exporter.exposition.pages import JoinedPages, Pages

ROOM = 32 * 1024 * 1024
"""Bytes of old pages that may always be kept for their readers."""

ROOM_IN_PAGES = 2
"""The same as a multiple of the longest page of which an old one is being read, where
that is more."""

_log = Logger()


class PageReaders:
    """All answers under way: a page stays in memory as long as anybody reads it."""

    def __init__(self) -> None:
        self._reading: dict[Request, tuple[JoinedPages, Pages]] = {}

    def add(self, request: Request, read: JoinedPages, pages: Pages) -> None:
        """Somebody begins to read the newest of an account's pages, or a part of it."""
        self._reading[request] = read, pages
        request.notifyFinish().addBoth(lambda _: self._reading.pop(request))
        old = [
            (reader, whole, its)
            for reader, (whole, its) in reversed(self._reading.items())
            if not its.holds(whole)
        ]
        if old:
            self._drop_the_oldest(old)

    def _drop_the_oldest(
        self, old: Iterable[tuple[Request, JoinedPages, Pages]]
    ) -> None:
        """Those whose pages no longer fit, counting what pages share only once.

        Args:
            old: readers of pages that are not the newest, the newest first.
        """
        newest = {id(pages): pages.whole() for _, _, pages in old}.values()
        counted = {id(slice_) for whole in newest for slice_ in _slices(whole)}
        longest = max(whole.text_length + whole.deflated_length for whole in newest)
        room = max(ROOM, ROOM_IN_PAGES * longest)
        for request, whole, _ in old:
            more = {id(s): len(s) for s in _slices(whole) if id(s) not in counted}
            counted.update(more)
            room -= sum(more.values())
            if room < 0:
                _log.info(
                    "closed the connection of a slow client: it still reads an old page"
                )
                request.channel.forceAbortClient()


def _slices(whole: JoinedPages) -> tuple[bytes, ...]:
    return whole.text + whole.deflated
