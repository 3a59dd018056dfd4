"""Answers while they are made: one at a time, each once for all who want it."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing

from msgspec import Struct
from twisted.internet.defer import Deferred, DeferredLock
from twisted.python.failure import Failure

from api_exporter.exposition.pages import Payload
from api_exporter.web.discovery.kept import Edition, Kept, Key
from api_exporter.web.discovery.readers import Readers

Steps = Generator[None, None, Payload]
"""What makes an answer, with places to pause."""


class _Making(Struct, eq=False):
    """One that is under way.

    Attributes:
        waiting: those who want it.
    """

    waiting: list[Deferred[Payload]]
    task: Deferred[Payload] | None = None


class Making:
    """Makes answers and keeps them, for all accounts.

    Args:
        run: sees steps through without keeping the event loop from all else.

    Attributes:
        kept: those that were made.
        readers: who is being sent which.
    """

    def __init__(self, run: Callable[[Steps], Awaitable[Payload]]) -> None:
        self.kept = Kept()
        self.readers = Readers(self.kept)
        self._run = run
        self._turn = DeferredLock()
        self._under_way: dict[tuple[Key, Edition], _Making] = {}

    def made(self, key: Key, edition: Edition, steps: Steps) -> Deferred[Payload]:
        """Fires when it is made. Who no longer wants it cancels."""
        this = key, edition
        making = self._under_way.get(this)
        if making is None:
            making = self._under_way[this] = _Making([])

        def unwanted(waiting: Deferred[Payload]) -> None:
            making.waiting.remove(waiting)
            if not making.waiting:
                del self._under_way[this]
                assert making.task is not None
                making.task.cancel()

        def over(result: Payload | Failure) -> None:
            # Nobody may join what is over, nor what all have left.
            if self._under_way.get(this) is making:
                del self._under_way[this]
            for waiting in making.waiting:
                if isinstance(result, Failure):
                    waiting.errback(result)
                else:
                    waiting.callback(result)

        waiting: Deferred[Payload] = Deferred(unwanted)
        making.waiting.append(waiting)
        if making.task is None:
            making.task = Deferred.fromCoroutine(self._make(key, edition, steps))
            making.task.addBoth(over)
        return waiting

    async def _make(self, key: Key, edition: Edition, steps: Steps) -> Payload:
        with closing(steps):  # half an answer shall not stay for the collector
            async with self._turn:
                made = await self._run(steps)
        self.kept.put(key, edition, made)
        return made
