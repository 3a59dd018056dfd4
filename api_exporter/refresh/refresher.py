"""Keeps every resource fresh: fetch, decode, measure, render, publish or withdraw.

It is handed `fetch` and knows nothing of HTTP.
"""

from collections.abc import Callable, Coroutine, Generator
from hashlib import sha256

from msgspec import Struct
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredList, DeferredLock
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from api_exporter.collectors.selection import Selection
from api_exporter.exposition.pages import Pages, page
from api_exporter.exposition.text import render
from api_exporter.netbird.bodies import Decoded
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import UP, Resource
from api_exporter.ports import Fetch, UpstreamError
from api_exporter.refresh.schedule import Schedule, max_age
from api_exporter.refresh.slices import Slicer
from api_exporter.telemetry.instruments import Telemetry
from api_exporter.upstream.backoff import Jitter

_DIGESTED_AT_ONCE = 2 * 1024 * 1024
"""Bytes between two places to pause: some milliseconds' work."""


class _Known(Struct, frozen=True, kw_only=True):
    """Of the newest good body: its hash, for recognising it, and what was in it."""

    digest: bytes
    records: int
    rejected: int
    complaints: tuple[str, ...]


class Refresher(Service):
    """Refreshes resources when they are due and withdraws what is too old.

    Args:
        metrics_max_age: seconds after which a resource that cannot be refreshed is
            withdrawn; None where its period is to say.
        inventory: to start with, so an empty one.
        observe: told of all that is known after every good refresh of the peers.

    Attributes:
        inventory: what is known now.
    """

    log = Logger()

    def __init__(
        self,
        *,
        selection: Selection,
        metrics_max_age: float | None,
        inventory: Inventory,
        fetch: Fetch,
        pages: Pages,
        telemetry: Telemetry,
        clock: IReactorTime,
        now: Callable[[], float],
        jitter: Jitter,
        observe: Callable[[Inventory], None] = lambda _: None,
    ) -> None:
        self._resources = {r.name: r for r in selection.resources}
        self._periods = selection.periods
        self._max_ages = {
            name: max_age(period, metrics_max_age)
            for name, period in selection.periods.items()
        }
        self._collectors = selection.collectors
        self._fetch = fetch
        self._pages = pages
        self._telemetry = telemetry
        self._clock = clock
        self._now = now
        self._jitter = jitter
        self._observe = observe
        self._slicer = Slicer(clock)
        self.inventory = inventory
        self._rendering = DeferredLock()
        self._known: dict[str, _Known] = {}
        self._expires: dict[str, float] = {}
        self._tasks: set[Deferred[None]] = set()
        self._alarm: IDelayedCall | None = None

    def startService(self) -> None:
        super().startService()
        self._schedule = Schedule(
            self._periods, now=self._clock.seconds(), jitter=self._jitter
        )
        self._wake()

    def stopService(self) -> Deferred[list[tuple[bool, None]]]:
        """Fires when nothing is under way any more."""
        super().stopService()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for task in list(self._tasks):
            task.cancel()
        return DeferredList(list(self._tasks))

    def _wake(self) -> None:
        self._alarm = None
        now = self._clock.seconds()
        for name in [name for name, time in self._expires.items() if time <= now]:
            del self._expires[name]
            self._known.pop(name, None)
            self._start(self._withdraw(name))
        while (taken := self._schedule.take(now)) is not None:
            self._start(self._refresh(self._resources[taken]))
        self._sleep()

    def _start(self, work: Coroutine[Deferred[object], object, None]) -> None:
        task = Deferred.fromCoroutine(work)
        self._tasks.add(task)
        task.addBoth(self._ended, task)

    def _ended(self, result: Failure | None, task: Deferred[None]) -> None:
        self._tasks.discard(task)
        if isinstance(result, Failure) and not result.check(CancelledError):
            self.log.failure("a defect while withdrawing", failure=result)
        self._sleep()

    def _sleep(self) -> None:
        """Set the alarm to the next moment at which there may be something to do."""
        if not self.running:
            return
        times = [*self._expires.values()]
        wake_at = self._schedule.wake_at()
        if wake_at is not None:
            times.append(wake_at)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if times:
            delay = max(0.0, min(times) - self._clock.seconds())
            self._alarm = self._clock.callLater(delay, self._wake)

    async def _refresh(self, resource: Resource) -> None:
        """One round for one resource. It never raises, so that the next one comes."""
        name = resource.name
        begin = self._clock.seconds()
        path = resource.located(self.inventory)
        if path is None:
            self._schedule.skipped(name, begin)
            return
        try:
            known = await self._read(resource, path)
            if name == UP:
                self._observe(self.inventory)
        except CancelledError:
            if self.running:  # not ours; without an end it would never be due again
                self._failed(name, UpstreamError("internal", "cancelled"), begin)
        except UpstreamError as error:
            if resource.refused(error):
                self._unsupported(name, begin, "this token may not read {resource}")
            elif self._lacks(resource, error):
                self._unsupported(name, begin, "the upstream does not have {resource}")
            else:
                self._failed(name, error, begin)
        except Exception:  # noqa: BLE001 - a defect of ours must not end the refreshes
            self.log.failure("a defect while refreshing {resource}", resource=name)
            self._failed(
                name, UpstreamError("internal", "a defect, see the log"), begin
            )
        else:
            self._succeeded(name, known, begin)

    async def _read(self, resource: Resource, path: str) -> _Known:
        name = resource.name
        body = await self._fetch(path)
        digest = await self._slicer.run(_digest(body))
        known = self._known.get(name)
        before = getattr(self.inventory, name)
        if known is not None and known.digest == digest and before is not None:
            return known
        decoded = await self._slicer.run(resource.body.decode(body, before or ()))
        del body
        if known is None or decoded.complaints != known.complaints:
            self._log_rejected(name, decoded)
        known = _Known(
            digest=digest,
            records=len(decoded.records),
            rejected=decoded.rejected,
            complaints=decoded.complaints,
        )
        await self._rendering.acquire()
        try:
            if resource.located(self.inventory) == path:  # else it was another user's
                await self._render(name, decoded.records)
                self._known[name] = known
        finally:
            self._rendering.release()
        return known

    async def _withdraw(self, name: str) -> None:
        """Forget a resource that could not be refreshed for too long."""
        self.log.warn(
            "{resource} could not be refreshed for {seconds:g} s:"
            " its metrics end until it can be",
            resource=name,
            seconds=self._max_ages[name],
        )
        await self._rendering.acquire()
        try:
            if name not in self._known:  # else a refresh got there first
                await self._render(name, None)
        finally:
            self._rendering.release()

    async def _render(self, name: str, records: tuple[object, ...] | None) -> None:
        """Change the inventory and publish all that reads this resource.

        One at a time: an older inventory must not be rendered over a newer one.
        """
        self.inventory = self.inventory.with_(name, records)
        for collector in self._collectors:
            if name in collector.reads:
                text = render(collector.measure(self.inventory))
                made = await self._slicer.run(page(text))
                self._pages.publish(collector.name, made)

    def _succeeded(self, name: str, known: _Known, begin: float) -> None:
        now = self._clock.seconds()
        self._expires[name] = now + self._max_ages[name]
        failures = self._telemetry.standings[name].failures
        self._telemetry.succeeded(
            name,
            records=known.records,
            rejected=known.rejected,
            seconds=now - begin,
            at=self._now(),
        )
        self.log.debug(
            "refreshed {resource}",
            resource=name,
            records=known.records,
            rejected=known.rejected,
            milliseconds=round(1000 * (now - begin)),
        )
        if failures:
            self.log.info(
                "{resource} can be refreshed again after {failures} failures",
                resource=name,
                failures=failures,
            )
        self._schedule.refreshed(name, now)

    def _failed(self, name: str, error: UpstreamError, begin: float) -> None:
        now = self._clock.seconds()
        self._telemetry.failed(name, error, seconds=now - begin, at=self._now())
        if self._telemetry.standings[name].failures == 1:
            self.log.warn(
                "cannot refresh {resource}: {why}",
                resource=name,
                why=str(error),
                reason=error.reason,
            )
        if name == UP and error.unsupported:  # so what others lacked may be there, too
            self._schedule.doubted(now)
        if error.reason == "rate_limited":
            pause = self._schedule.rate_limited(name, now, error.retry_after)
            self.log.debug("no requests for {seconds:.0f} s", seconds=pause)
        else:
            self._schedule.refreshed(name, now)

    def _lacks(self, resource: Resource, error: UpstreamError) -> bool:
        """Whether the upstream does not have the resource, and fares well otherwise.

        A proxy that has lost its way answers the same to every path, for a moment: then
        the peers fail too, or it is known that the resource was there just now.
        """
        return (
            resource.absent(error)
            and self._telemetry.standings[UP].error is None
            and resource.name not in self._known
        )

    def _unsupported(self, name: str, begin: float, why: str) -> None:
        if self._telemetry.standings[name].supported is not False:
            self.log.info(why, resource=name)
        now = self._clock.seconds()
        self._telemetry.unsupported(name, seconds=now - begin, at=self._now())
        self._schedule.unsupported(name, now)

    def _log_rejected(self, name: str, decoded: Decoded) -> None:
        for complaint in decoded.complaints:
            self.log.warn(
                "a record is left out: {resource}{complaint}",
                resource=name,
                complaint=complaint,
            )
        if more := decoded.rejected - len(decoded.complaints):
            self.log.warn(
                "{count} more records of {resource} are left out",
                count=more,
                resource=name,
            )


def _digest(body: bytes) -> Generator[None, None, bytes]:
    """By which a body is recognized, computed with places to pause."""
    digest = sha256()
    view = memoryview(body)
    for start in range(0, len(body), _DIGESTED_AT_ONCE):
        digest.update(view[start : start + _DIGESTED_AT_ONCE])
        yield
    return digest.digest()
