"""Answers of service discovery, made one at a time and once for all who want them."""

from collections import deque
from collections.abc import Awaitable, Callable, Generator, Hashable
from contextlib import closing

from msgspec import Struct
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from api_exporter.exposition.pages import Payload
from api_exporter.web.discovery.lru_cache import Edition, Key, LRUCache

Steps = Generator[None, None, Payload]
"""What makes an answer, with places to pause."""


class _Job(Struct, eq=False):
    """One that is under way.

    Attributes:
        waiting: those who want it.
    """

    waiting: list[Deferred[Payload]]
    task: Deferred[Payload] | None = None


class FairLock:
    """A lock for which accounts take turns: many who ask for one hold up no other."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: dict[Hashable, deque[Deferred[None]]] = {}

    def acquire(self, account: Hashable) -> Deferred[None]:
        """Fires when it is the account's turn. Who no longer wants it cancels."""
        if not self._taken:
            self._taken = True
            return succeed(None)
        queue = self._waiting.setdefault(account, deque())
        queue.append(Deferred(queue.remove))
        return queue[-1]

    def release(self) -> None:
        """It is the turn of the account that has waited longest for one."""
        for account in list(self._waiting):
            queue = self._waiting.pop(account)
            if queue:
                self._waiting[account] = queue  # behind all others
                queue.popleft().callback(None)
                return
        self._taken = False


class Answers:
    """Makes answers and keeps them, for all accounts.

    Args:
        run: sees steps through without keeping the event loop from all else.

    Attributes:
        kept: those that were made.
    """

    def __init__(self, run: Callable[[Steps], Awaitable[Payload]]) -> None:
        self.kept = LRUCache()
        self._run = run
        self._turns = FairLock()
        self._under_way: dict[tuple[Key, Edition], _Job] = {}

    def made(self, key: Key, edition: Edition, steps: Steps) -> Deferred[Payload]:
        """Fires when it is made. Who no longer wants it cancels."""
        this = key, edition
        making = self._under_way.get(this)
        if making is None:
            making = self._under_way[this] = _Job([])

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
            await self._turns.acquire(key[0])
            try:
                made = await self._run(steps)
            finally:
                self._turns.release()
        self.kept.put(key, edition, made)
        return made
