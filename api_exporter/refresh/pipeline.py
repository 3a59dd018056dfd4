"""The way of a body: fetch, decode, measure, render, publish; or withdraw.

It keeps what is known, and knows neither when it is asked nor what is said about it.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Generator, Hashable, Mapping, Sequence
from itertools import count
from math import inf
from operator import is_
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace
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
from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.facts.join_size import check_joins
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.joins import Reading, check_named
from api_exporter.netbird.record_cache import NO_RECORDS, KnownRecords, fingerprint
from api_exporter.netbird.resources import Resource
from api_exporter.ports import Fetch, Now, UpstreamError
from api_exporter.refresh.slices import Slicer
from api_exporter.telemetry.log import log_of

_DIGESTED_AT_ONCE = 2 * 1024 * 1024
"""Bytes between two places to pause: some milliseconds' work."""


BodyReader = Callable[[bytes], object]
"""Is given each body of a resource as it came, changed or not; it must not raise."""


class Source(Protocol):
    """Knows what of a resource to ask for, and when."""

    def wanted(self) -> bool:
        """Whether it is time for that."""
        ...

    async def fetch(
        self, fetch: Fetch, path: str, patience: float, inventory: Inventory
    ) -> bytes:
        """The body to be decoded; raises UpstreamError."""
        ...


class LastBody(Struct, frozen=True, gc=False, kw_only=True):
    """Of the newest good body: its hash, for recognising it, and what was in it."""

    digest: tuple[Hashable, ...]
    records: int
    rejected: int
    complaints: tuple[str, ...]
    recognized: KnownRecords


class ResourceState(Struct, gc=False):
    """What is kept of a resource from one refresh to the next.

    Attributes:
        path: what was asked for last; None where it was not known.
        expires: when its metrics end, in seconds of the clock.
        ends: when they mean something else: a window ends, or a day.
        body: None before the first good one, and after it was forgotten.
    """

    path: str | None = None
    expires: float = inf
    ends: float = inf
    body: LastBody | None = None


class Pipeline:
    """Reads and withdraws resources, and publishes what changes with them.

    Collectors are apart: one that has a defect costs its own families.

    Args:
        inventory: to start with, so an empty one.
        page_max_bytes: the longest text that all collectors may have together.
        failed: told of each collector whose families could not be made.
        body_readers: by resource, who gets its bodies beside the collectors.
        sources: by resource, who asks for its bodies.

    Attributes:
        inventory: what is known now.
        states: of all resources that were asked for.
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
        now: Now,
        page_max_bytes: float = inf,
        failed: Callable[[str], object] = lambda _: None,
        body_readers: Mapping[str, Sequence[BodyReader]] = {},
        sources: Mapping[str, Source] = {},
        account: str = "",
    ) -> None:
        self.log = log_of(account, self.log)
        self.inventory = inventory
        self.states: defaultdict[str, ResourceState] = defaultdict(ResourceState)
        self._collectors = collectors
        self._fetch = fetch
        self._pages = pages
        self._slicer = slicer
        self._now = now
        self._page_max_bytes = page_max_bytes
        self._failed = failed
        self._body_readers = body_readers
        self._sources = sources
        self._broken: set[str] = set()
        self._rendering = DeferredLock()
        self._made: dict[str, RenderedPage] = {}
        self._order = count()

    def knows(self, name: str) -> bool:
        """Whether a resource has been read and was not withdrawn since."""
        return self.states[name].body is not None

    def located(self, resource: Resource) -> str | None:
        return resource.located(self.inventory, self._now())

    def wanted(self, name: str) -> bool:
        """Whether it is time for a resource, if that has a source of its own."""
        return name not in self._sources or self._sources[name].wanted()

    async def read(self, resource: Resource, path: str, patience: float) -> LastBody:
        """Fetch and publish what is new; raises UpstreamError.

        Args:
            patience: seconds until the next refresh of it.
        """
        name, state = resource.name, self.states[resource.name]
        asked, began = self._now(), next(self._order)
        if name in self._sources:
            source = self._sources[name]
            body = await source.fetch(self._fetch, path, patience, self.inventory)
        else:
            body = await self._fetch(path, patience)
        reading = Reading(began, ended=next(self._order))
        for reader in self._body_readers.get(name, ()):
            reader(body)
        digest = (path, *(await self._slicer.run(_digest(body))))
        last = state.body
        before = getattr(self.inventory, name)
        if last is not None and last.digest == digest and self._complete(name):
            records = before
        else:
            recognized = NO_RECORDS if last is None else last.recognized
            known = DecodeContext(before or (), recognized, asked)
            steps = resource.body.decode(body, known)
            decoded = await self._slicer.run(steps)
            records = decoded.records
            await self._slicer.run(check_named(name, records))
            last = LastBody(
                digest=digest,
                records=len(decoded.records) + decoded.unread,
                rejected=decoded.rejected,
                complaints=decoded.complaints,
                recognized=decoded.recognized,
            )
            del recognized, known, steps, decoded
        del body
        async with self._rendering:
            if resource.located(self.inventory, asked) == path:  # else another user's
                # Known again when all of it is published, and not where that fails.
                published = state.body is not None and self._complete(name)
                state.body = None
                same = published and _same(records, getattr(self.inventory, name))
                await self._publish(name, None if same else records, reading)
                state.body = last
        return last

    def forget(self, name: str) -> None:
        """Its next body counts as new."""
        self.states[name].body = None

    async def tell_again(self, name: str) -> None:
        """Publish what by now means something else, though nothing was read."""
        async with self._rendering:
            if (last := self.states[name].body) is not None:
                # Even the same body means something else by now.
                self.states[name].body = replace(last, digest=())
                records = getattr(self.inventory, name)
                await self._render({name}, self.inventory.with_(name, records))

    async def withdraw(self, name: str) -> None:
        """End the metrics of a forgotten resource, unless it was read meanwhile."""
        async with self._rendering:
            if not self.knows(name):
                inventory = self.inventory.with_(name, None)
                inventory = inventory.settle(self.inventory, name, None)
                await self._render(self._changed(inventory), inventory, inf)

    async def _publish(
        self, name: str, records: tuple[object, ...] | None, reading: Reading
    ) -> None:
        """Publish what a reading has changed.

        Args:
            records: None where they are the same as before.
        """
        newest = self.inventory
        if records is not None:
            newest = newest.with_(name, records)
            await self._slicer.run(check_joins(newest, name))
        settled = newest.settle(self.inventory, name, reading)
        changed = self._changed(settled)
        if not changed:
            self.inventory = settled
            return
        try:
            await self._render(changed, settled)
        except UpstreamError:
            # What only joins have waited for must not cost this list.
            if changed == self._changed(newest):
                raise
            await self._render(self._changed(newest), newest)

    def _changed(self, inventory: Inventory) -> set[str]:
        """The resources that are not what they were."""
        before = self.inventory.changes
        return {n for n, c in inventory.changes.items() if c is not before.get(n)}

    async def _render(
        self, changed: Container[str], inventory: Inventory, room: float | None = None
    ) -> None:
        """Change the inventory and publish all that reads these resources.

        One at a time: an older inventory must not be rendered over a newer one. Nothing
        is published where all of it together would be too long.

        Args:
            room: bytes that all of it may have: what is withdrawn is never too long.
        """
        inventory = replace(inventory, now=self._now())
        readers = [c for c in self._collectors if any(n in changed for n in c.reads)]
        room = self._page_max_bytes if room is None else room
        lengths = self._pages.lengths()
        room -= sum(lengths.values()) - sum(lengths[c.name] for c in readers)
        made: list[tuple[str, RenderedPage]] = []
        for collector in readers:
            after = await self._measure(collector, inventory, room)
            room -= sum(len(piece.text) for piece in after.page)
            made.append((collector.name, after))
        self.inventory = inventory
        for other, state in self.states.items():
            if getattr(inventory, other) is None:
                state.body = None  # another user's
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
            families = collector.measure(inventory, before.editions)
            steps = render_page(families, before, room=room)
            after = await self._slicer.run(steps)
        except PageTooLong:
            limit = self._page_max_bytes
            message = f"the page would be longer than PAGE_MAX_BYTES={limit}"
            raise UpstreamError("too_large", message) from None
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001 - a defect of ours must not cost the others
            if name not in self._broken:
                self.log.failure(
                    "internal error in the collector {collector}: its metrics are"
                    " missing",
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
