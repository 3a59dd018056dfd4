"""Fetch, decode, render and publish one resource, or withdraw it.

Scheduling is in `refresher`. The functions at the end run in the compute thread.
"""

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import count
from math import inf
from operator import is_
from traceback import clear_frames
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from twisted.application.service import Service
from twisted.internet.defer import DeferredLock
from twisted.logger import Logger
from twisted.python.failure import Failure

from api_exporter.clocks import Clocks, log_of
from api_exporter.collectors.collector import Collector
from api_exporter.exposition.pages import Pages
from api_exporter.exposition.rendering import (
    EMPTY_PAGE,
    PageTooLong,
    RenderedPage,
    render_page,
)
from api_exporter.netbird.bodies import DecodeContext, check_for_error, unpack
from api_exporter.netbird.inventory import Inventory, Reading
from api_exporter.netbird.record_cache import NO_RECORDS, digest, digest_without_times
from api_exporter.netbird.resource_state import LastBody
from api_exporter.netbird.resources import (
    CURRENT_USER,
    PEERS,
    Resource,
    check_named_ids,
)
from api_exporter.netbird.unknown import Inspector
from api_exporter.ports import Compute, Fetch, ResponseBody, UpstreamError
from api_exporter.refresh.states import States

_EMPTY = "an empty response: the proxy has no route for /api/"
_CURE_EMPTY = (
    "Let the proxy in front of NetBird forward /api/ to the management API, and check"
    " that UPSTREAM_API_URL has its host and port."
)


Decoded = tuple[LastBody, tuple[object, ...] | None]
"""A good body, and its records; None if they are as before."""

Decoding = Callable[[DecodeContext, LastBody | None], Decoded]

NewPages = Mapping[str, RenderedPage | Failure]
"""The new pages of collectors; a failure for one with a defect."""


class Rendered(Struct, frozen=True):
    """The published inventory and pages, and bounds for those that follow."""

    inventory: Inventory
    collectors: Sequence[Collector]
    pages: Mapping[str, RenderedPage]
    now: float
    max_bytes: float


class Log(Service):
    """A log that an account writes: it requests one resource; see `logs`."""

    @property
    def min_interval(self) -> float:
        """The minimum seconds between two requests while nothing more waits."""
        return 0.0

    def is_due(self) -> bool:
        return True

    def begin_with(self, before: "Log") -> None:
        """Begin with what a stopped log of the same rows has found and reported."""

    @abstractmethod
    async def fetch(
        self, fetch: Fetch, path: str, max_seconds: float, inventory: Inventory
    ) -> ResponseBody:
        """Return the body to decode; raises UpstreamError.

        Args:
            fetch: returns unpacked bodies.
            max_seconds: seconds until the next refresh: no retry lasts longer.
        """


class Pipeline:
    """Refreshes and withdraws resources, and publishes the metrics that change.

    A collector with a defect loses its own families only.

    Args:
        page_max_bytes: the maximum length of the text of all collectors.
        on_other_account: called when another account's records have removed all.
        logs: by the resource that they request.

    Attributes:
        inventory: the records that are known now.
        untried: the resources to be tried before peers are published: see `read`.
            A change of the token replaces the set.
        held: publishes peers that were read; None unless they wait for these.
    """

    log = Logger()
    _numbers = count()  # of all accounts: a reload continues with an inventory

    def __init__(
        self,
        *,
        states: States,
        collectors: Sequence[Collector],
        inventory: Inventory,
        fetch: Fetch,
        pages: Pages,
        compute: Compute,
        clocks: Clocks,
        list_max_records: float = inf,
        page_max_bytes: float = inf,
        on_collector_failed: Callable[[str], object] = lambda _: None,
        on_other_account: Callable[[], object] = lambda: None,
        logs: Mapping[str, Log] = MappingProxyType({}),
    ) -> None:
        self.log = log_of(clocks.account, self.log)
        self.inventory = inventory
        self._states = states
        self._collectors = collectors
        self._fetch = fetch
        self._pages = pages
        self._compute = compute
        self._now = clocks.now
        self._list_max_records = list_max_records
        self._page_max_bytes = page_max_bytes
        self._on_collector_failed = on_collector_failed
        self._on_other_account = on_other_account
        self._logs = logs
        self._defective: set[str] = set()
        self._rendering = DeferredLock()
        self._pages_before: dict[str, RenderedPage] = {}
        self._account_began = 0
        self.untried = {CURRENT_USER} & states.every.keys()
        self.held: Callable[[], Coroutine[Any, Any, LastBody]] | None = None

    async def begin_with(self, inventory: Inventory) -> None:
        """Publish what is known from before a reload; raises UpstreamError."""
        await self._render(inventory)
        if not {PEERS, CURRENT_USER}.isdisjoint(inventory.records):
            self.untried.clear()

    async def release_peers(self, *, are_newest: bool) -> None:
        """Publish held peers: the token's user was tried; raises UpstreamError.

        Args:
            are_newest: False if a request for the peers has failed since: then the
                next ones are published.
        """
        publish, self.held = self.held, None
        if publish is not None and are_newest:
            await publish()

    def request_path(self, resource: Resource[Any]) -> str | None:
        return resource.request_path(self.inventory, self._now())

    def is_due(self, name: str) -> bool:
        """Return whether a resource is due for its log, if it has one."""
        return name not in self._logs or self._logs[name].is_due()

    def next_interval(self, name: str, interval: float) -> float:
        """Return the seconds until the next refresh, which a log may delay."""
        least = self._logs[name].min_interval if name in self._logs else 0.0
        return max(interval, least)

    async def read(
        self, resource: Resource[Any], path: str, max_seconds: float
    ) -> LastBody:
        """Fetch a resource and publish what has changed; raises UpstreamError.

        Peers that are read before the token's user are held: they may be a part. After
        a change of the token, they may be another account's.
        """
        requested_at, began = self._now(), next(self._numbers)
        body = await self._body(resource.name, path, max_seconds)
        reading = Reading(began, ended=next(self._numbers))
        close, bodies = body.close, [body]
        del body  # decoding takes it, and frees it before rendering
        decoding: Decoding = partial(decode, resource, path, lambda: bodies.pop())  # noqa: PLW0108 - frozen
        publish = partial(self._publish, resource, path, requested_at, reading)
        try:
            if resource.name == PEERS and self.untried:
                known = self._decode_context(PEERS, requested_at)
                decoded = await self._compute(decoding, known, None)
                decoding = lambda *_: decoded  # noqa: E731
                if self.untried:  # still
                    self.held = partial(publish, decoding)
                    return decoded[0]
            return await publish(decoding)
        finally:
            close()

    def _decode_context(self, name: str, requested_at: float) -> DecodeContext:
        body = self._states.every[name].body
        return DecodeContext(
            self.inventory.records.get(name, ()),
            NO_RECORDS if body is None else body.recognized,
            requested_at,
            max_records=self._list_max_records,
        )

    async def _publish(
        self,
        resource: Resource[Any],
        path: str,
        requested_at: float,
        reading: Reading,
        decoding: Decoding,
    ) -> LastBody:
        """Decode a body and publish all of it, or nothing."""
        name = resource.name
        async with self._rendering:
            known = self._decode_context(name, requested_at)
            last = self._states.every[name].body if self._is_published(name) else None
            # The path may hold a user id: the body of a former user is dropped.
            now_path = resource.request_path(self.inventory, requested_at)
            is_former = now_path != path or reading.began < self._account_began
            if is_former or name in self.inventory.withheld:
                body, _ = await self._compute(decoding, known, last)
                return body
            body, inventory, pages = await self._compute(
                advance,
                partial(decoding, known, last),
                name,
                reading,
                self._rendered(self._page_max_bytes),
            )
            self._replace(inventory, pages)
            self._states.change(name, body=body)
        return body

    async def _body(self, name: str, path: str, max_seconds: float) -> ResponseBody:
        if name in self._logs:
            log = self._logs[name]
            return await log.fetch(self._unpacked, path, max_seconds, self.inventory)
        return await self._fetch(path, max_seconds)

    async def _unpacked(self, path: str, max_seconds: float) -> ResponseBody:
        with closing(await self._fetch(path, max_seconds)) as body:
            return ResponseBody(await self._compute(unpack, body))

    async def republish(self, name: str) -> None:
        """Publish known records again, because a time window or a day has ended."""
        async with self._rendering:
            if self._states.every[name].body is not None:
                records = self.inventory.records.get(name)
                await self._render(self.inventory.replacing(name, records))

    async def withdraw(self, name: str) -> None:
        """Remove the metrics of a forgotten resource, unless it was read meanwhile.

        Permissions that withhold stay: without them, a part would pass for the whole.
        """
        if name == CURRENT_USER and self.inventory.withheld:
            return
        async with self._rendering:
            if self._states.every[name].body is None:
                await self._render(self.inventory.replacing(name, None), inf)

    async def replace_user(self, *, same_account: bool) -> None:
        """Remove what belongs to the user or the account of a former token.

        Only the current user stays, unless the new token's user cannot be read.
        """
        async with self._rendering:
            known = self.inventory
            is_read = self._states.every[CURRENT_USER].not_read is None
            user = known.current_user if is_read else None
            if same_account:
                known = known.without_current_mark().replacing(CURRENT_USER, user)
            else:
                known = known.of_another_account(CURRENT_USER, user)
            await self._render(known, inf)

    async def _render(
        self, inventory: Inventory, max_bytes: float | None = None
    ) -> None:
        """Replace the inventory, and publish what has changed; raises UpstreamError."""
        max_bytes = self._page_max_bytes if max_bytes is None else max_bytes
        known = self._rendered(max_bytes)
        inventory = replace(inventory, now=known.now)
        self._replace(inventory, await self._compute(render, inventory, known))

    def _rendered(self, max_bytes: float) -> Rendered:
        return Rendered(
            self.inventory,
            tuple(self._collectors),
            MappingProxyType(dict(self._pages_before)),
            self._now(),
            max_bytes,
        )

    def _replace(self, inventory: Inventory, pages: NewPages) -> None:
        """Publish an inventory and its pages.

        It runs under a lock: an older inventory must not replace a newer one.
        """
        is_other_account = inventory.former_accounts > self.inventory.former_accounts
        self.inventory = inventory
        for other, state in self._states.every.items():
            if state.body is not None and other not in inventory.records:
                self._states.change(other, body=None)  # of a former user
        for name, page in pages.items():
            self._pages_before[name] = after = self._page_or_empty(name, page)
            self._pages.publish(name, after.page)
        if is_other_account:
            self._account_began, self.held = next(self._numbers), None
            unknown_user = {CURRENT_USER} - inventory.records.keys()
            self.untried |= unknown_user & self._states.every.keys()
            self._on_other_account()

    def _page_or_empty(self, name: str, page: RenderedPage | Failure) -> RenderedPage:
        if not isinstance(page, Failure):
            self._defective.discard(name)
            return page
        if name not in self._defective:
            self.log.failure(
                "internal error in the collector {collector}: its metrics are missing",
                failure=page,
                collector=name,
            )
        self._defective.add(name)
        self._on_collector_failed(name)
        return EMPTY_PAGE

    def _is_published(self, resource: str) -> bool:
        readers = {c.name for c in self._collectors if resource in c.reads}
        known = self.inventory.records.get(resource) is not None
        return known and self._defective.isdisjoint(readers)


def _identical(records: Sequence[object], before: Sequence[object]) -> bool:
    """Return whether all records are the same objects; their bodies may differ."""
    return len(records) == len(before) and all(map(is_, records, before))


def advance(
    decoding: Callable[[], Decoded], name: str, reading: Reading, before: Rendered
) -> tuple[LastBody, Inventory, NewPages]:
    """Return what is kept of a body, and the inventory and the pages after it.

    Raises UpstreamError.
    """
    body, records = decoding()
    if records is None:
        return body, before.inventory.read(name, reading), MappingProxyType({})
    inventory = before.inventory.replacing(name, records).read(name, reading)
    inventory = replace(inventory, now=before.now)
    # What the event loop asks of each inventory is kept with it.
    _ = inventory.connected_count, inventory.current_user_id, inventory.withheld
    return body, inventory, render(inventory, before)


def decode(
    resource: Resource[Any],
    path: str,
    take_body: Callable[[], ResponseBody],
    known: DecodeContext,
    last: LastBody | None,
) -> Decoded:
    """Decode a body; raises UpstreamError.

    Args:
        take_body: returns the body, which nothing else holds.
        last: the body whose records are published, if there is one.
    """
    data = unpack(take_body())
    if not data or data.isspace():
        raise UpstreamError("decode", _EMPTY, cure=_CURE_EMPTY)
    exact = (path, *digest(data))
    if last is not None and resource.ends is None:  # else the time matters, too
        if last.digest == exact:
            return last, None
        others = last.digest_without_times
        if others and others == (path, *digest_without_times(data)):
            return replace(last, digest=exact), None
    check_for_error(data)
    inspector = Inspector(resource.name, known.now)
    decoded = resource.decoder.decode(data, replace(known, inspector=inspector))
    check_named_ids(resource.named_ids, decoded.records)
    unknown = inspector.found
    if last is not None and not inspector.is_complete:
        unknown |= last.unknown
    same = last is not None and _identical(decoded.records, known.before)
    kept = LastBody(
        digest=exact,
        digest_without_times=(path, *digest_without_times(data)) if same else (),
        records=len(decoded.records) + decoded.unread_count,
        rejected=decoded.rejected,
        errors=decoded.errors,
        recognized=decoded.recognized,
        unknown=unknown,
    )
    return kept, None if same else decoded.records


def render(inventory: Inventory, before: Rendered) -> NewPages:
    """Return the new pages of all collectors that read what has changed.

    Raises UpstreamError if all pages would be too long together.
    """
    old, new = before.inventory.versions, inventory.versions
    changed = {name for name, change in new.items() if change is not old.get(name)}
    readers = [c for c in before.collectors if not changed.isdisjoint(c.reads)]
    others = before.pages.keys() - {c.name for c in readers}
    room = before.max_bytes - sum(_length(before.pages[name]) for name in others)
    pages: dict[str, RenderedPage | Failure] = {}
    for collector in readers:
        page_before = before.pages.get(collector.name, EMPTY_PAGE)
        try:
            page = _render(collector, page_before, inventory, room)
        except PageTooLong:
            limit = before.max_bytes
            message = f"the page would be longer than PAGE_MAX_BYTES={limit}"
            raise UpstreamError("too_large", message) from None
        if not isinstance(page, Failure):
            room -= _length(page)
        pages[collector.name] = page
    return MappingProxyType(pages)


def _length(page: RenderedPage) -> int:
    return sum(len(piece.text) for piece in page.page)


def _render(
    collector: Collector, before: RenderedPage, inventory: Inventory, room: float
) -> RenderedPage | Failure:
    try:
        families = collector.make_families(inventory, before.inputs_keys)
        return render_page(families, before, max_bytes=room)
    except (MemoryError, PageTooLong):  # the pages stay as they were
        raise
    except Exception as error:  # noqa: BLE001 - a defect must not cost the others
        clear_frames(error.__traceback__)
        return Failure(error)
