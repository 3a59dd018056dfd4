"""Readers of answers: who is being sent what, and how much memory that may take."""

from twisted.logger import Logger
from twisted.web.server import Request

from api_exporter.exposition.pages import Payload
from api_exporter.web.discovery.lru_cache import LRUCache

ROOM = 128 * 1024 * 1024
"""Bytes of answers that are being sent and neither kept nor the newest."""

_log = Logger()


class AnswerReaders:
    """All answers under way: each stays in memory as long as anybody reads it."""

    def __init__(self, kept: LRUCache) -> None:
        self._kept = kept
        self._reading: dict[Request, Payload] = {}

    def add(self, request: Request, newest: Payload) -> None:
        """Somebody begins to read; whoever began first goes where that is too much."""
        self._reading[request] = newest
        request.notifyFinish().addBoth(lambda _: self._reading.pop(request))
        room, counted = ROOM, {id(newest)}
        for reader, answer in reversed(list(self._reading.items())):
            if id(answer) not in counted and not self._kept.holds(answer):
                counted.add(id(answer))
                room -= answer.length
            if room < 0 and answer is not newest and not self._kept.holds(answer):
                _log.info(
                    "closed the connection of a slow client: it still reads an old"
                    " answer"
                )
                reader.channel.forceAbortClient()
