"""One round for one resource: fetch, decode, measure, render, publish or withdraw.

It keeps what is known, and knows neither when it is asked nor what is said about it.
"""

from collections.abc import Callable, Generator, Hashable, Sequence
from math import inf
from operator import is_

from msgspec import Struct
from twisted.internet.defer import CancelledError, DeferredLock
from twisted.logger import Logger

from api_exporter.collectors.table import Collector
from api_exporter.exposition.incremental import (
    EMPTY_PAGE,
    PageTooLong,
    RenderedPage,
    render_page,
)
from api_exporter.exposition.pages import Pages
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.record_cache import NO_RECORDS, KnownRecords, fingerprint
from api_exporter.netbird.resources import Resource
from api_exporter.ports import Fetch, UpstreamError
from api_exporter.refresh.slices import Slicer
from api_exporter.telemetry.log import log_of

_DIGESTED_AT_ONCE = 2 * 1024 * 1024
"""Bytes between two places to pause: some milliseconds' work."""


class Known(Struct, frozen=True, kw_only=True):
    """Of the newest good body: its hash, for recognising it, and what was in it."""

    digest: tuple[Hashable, ...]
    records: int
    rejected: int
    complaints: tuple[str, ...]
    recognized: KnownRecords


class Rounds:
    """Reads and withdraws resources, and publishes what changes with them.

    Collectors are apart: one that has a defect costs its own families.

    Args:
        inventory: to start with, so an empty one.
        page_max_bytes: the longest text that all collectors may have together.
        failed: told of each collector whose families could not be made.

    Attributes:
        inventory: what is known now.
    """

    log = Logger()

    def __init__(
        self,
        *,
        collectors: Sequence[Collector],
        inventory: Inventory,
        fetch: Fetch,
        pages: Pages,
        slicer: Slicer,
        page_max_bytes: float = inf,
        failed: Callable[[str], object] = lambda _: None,
        account: str = "",
    ) -> None:
        self.log = log_of(account, self.log)
        self.inventory = inventory
        self._collectors = collectors
        self._fetch = fetch
        self._pages = pages
        self._slicer = slicer
        self._page_max_bytes = page_max_bytes
        self._failed = failed
        self._broken: set[str] = set()
        self._rendering = DeferredLock()
        self._known: dict[str, Known] = {}
        self._made: dict[str, RenderedPage] = {}

    def knows(self, name: str) -> bool:
        """Whether a resource has been read and was not withdrawn since."""
        return name in self._known

    async def read(self, resource: Resource, path: str, patience: float) -> Known:
        """Fetch and publish what is new; raises UpstreamError.

        Args:
            patience: seconds until the next round for it.
        """
        name = resource.name
        body = await self._fetch(path, patience)
        digest = await self._slicer.run(_digest(body))
        known = self._known.get(name)
        before = getattr(self.inventory, name)
        if known is not None and known.digest == digest and self._complete(name):
            return known
        recognized = NO_RECORDS if known is None else known.recognized
        steps = resource.body.decode(body, before or (), recognized)
        decoded = await self._slicer.run(steps)
        del body, recognized, steps
        known = Known(
            digest=digest,
            records=len(decoded.records),
            rejected=decoded.rejected,
            complaints=decoded.complaints,
            recognized=decoded.recognized,
        )
        await self._rendering.acquire()
        try:
            if resource.located(self.inventory) == path:  # else it was another user's
                # Known again when all of it is published, and not where that fails.
                published = self._known.pop(name, None) and self._complete(name)
                before = getattr(self.inventory, name)
                if not (published and _same(decoded.records, before)):
                    await self._render(name, decoded.records)
                self._known[name] = known
        finally:
            self._rendering.release()
        return known

    def forget(self, name: str) -> None:
        """Its next body counts as new."""
        self._known.pop(name, None)

    async def withdraw(self, name: str) -> None:
        """End the metrics of a forgotten resource, unless it was read meanwhile."""
        await self._rendering.acquire()
        try:
            if name not in self._known:
                await self._render(name, None)
        finally:
            self._rendering.release()

    async def _render(self, name: str, records: tuple[object, ...] | None) -> None:
        """Change the inventory and publish all that reads this resource.

        One at a time: an older inventory must not be rendered over a newer one. Nothing
        is published where all of it together would be too long.
        """
        inventory = self.inventory.with_(name, records)
        readers = [c for c in self._collectors if name in c.reads]
        # What is withdrawn must go: it is never too long.
        room = inf if records is None else self._page_max_bytes
        lengths = self._pages.lengths()
        room -= sum(lengths.values()) - sum(lengths[c.name] for c in readers)
        made: list[tuple[str, RenderedPage]] = []
        for collector in readers:
            after = await self._measure(collector, inventory, room)
            room -= sum(len(piece.text) for piece in after.page)
            made.append((collector.name, after))
        self.inventory = inventory
        for other in [n for n in self._known if getattr(inventory, n) is None]:
            self.forget(other)  # another user's
        for reader, after in made:
            self._made[reader] = after
            self._pages.publish(reader, after.page)

    async def _measure(
        self, collector: Collector, inventory: Inventory, room: float
    ) -> RenderedPage:
        """A collector's families; none where it has a defect, told when it begins."""
        name = collector.name
        before = self._made.get(name, EMPTY_PAGE)
        try:
            steps = render_page(collector.measure(inventory), before, room=room)
            after = await self._slicer.run(steps)
        except PageTooLong:
            limit = self._page_max_bytes
            message = f"its page would be longer than PAGE_MAX_BYTES={limit}"
            raise UpstreamError("too_large", message) from None
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001 - a defect of ours must not cost the others
            if name not in self._broken:
                self.log.failure(
                    "a defect in the collector {collector}: it tells nothing",
                    collector=name,
                )
            self._broken.add(name)
            self._failed(name)
            return EMPTY_PAGE
        self._broken.discard(name)
        return after

    def _complete(self, resource: str) -> bool:
        """Whether a resource is known, and all that is told of it is published."""
        readers = {c.name for c in self._collectors if resource in c.reads}
        known = getattr(self.inventory, resource) is not None
        return known and self._broken.isdisjoint(readers)


def _same(records: tuple[object, ...], before: tuple[object, ...] | None) -> bool:
    """Whether they are the same objects: another body may say the same."""
    if before is None or len(records) != len(before):
        return False
    return all(map(is_, records, before))


def _digest(body: bytes) -> Generator[None, None, tuple[Hashable, ...]]:
    """By which a body is recognized, computed with places to pause."""
    digest = []
    view = memoryview(body)
    for start in range(0, len(body), _DIGESTED_AT_ONCE):
        digest.append(fingerprint(view[start : start + _DIGESTED_AT_ONCE]))
        yield
    return tuple(digest)
