"""Who is being sent which page, and how much memory pages of the past may take."""

from twisted.logger import Logger
from twisted.web.server import Request

from api_exporter.exposition.pages import Whole

ROOM = 32 * 1024 * 1024
"""Bytes of old pages that may always be kept for their readers."""

ROOM_IN_PAGES = 2
"""The same as a multiple of the newest page, where that is more."""

_log = Logger()


class Readers:
    """All answers under way: a page stays in memory as long as anybody reads it."""

    def __init__(self) -> None:
        self._reading: dict[Request, Whole] = {}

    def add(self, request: Request, read: Whole, newest: Whole) -> None:
        """Somebody begins to read the newest page, or a part of it."""
        self._reading[request] = read
        request.notifyFinish().addBoth(lambda _: self._reading.pop(request))
        self._drop_the_oldest(newest)

    def _drop_the_oldest(self, newest: Whole) -> None:
        """Those whose pages no longer fit, counting what pages share only once."""
        kept, pages = set(map(id, _slices(newest))), {id(newest)}
        room = max(ROOM, ROOM_IN_PAGES * (newest.text_length + newest.deflated_length))
        for request, whole in reversed(list(self._reading.items())):
            if id(whole) not in pages:
                pages.add(id(whole))
                old = {id(s): len(s) for s in _slices(whole) if id(s) not in kept}
                kept.update(old)
                room -= sum(old.values())
            if room < 0:
                _log.info("dropped a client that reads a page of the past")
                request.channel.forceAbortClient()


def _slices(whole: Whole) -> tuple[bytes, ...]:
    return whole.text + whole.deflated
