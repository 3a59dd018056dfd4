"""The data that all pages share, except the accounts."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar, cast

from msgspec import Struct
from twisted.internet.defer import DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.web.resource import IResource
from twisted.web.server import Request

from api_exporter.attention.finding import Finding
from api_exporter.exposition.pages import Piece
from api_exporter.ports import Compute, Now
from api_exporter.refresh.network import AccountNetwork
from api_exporter.report.account import account_entry
from api_exporter.report.document import Document, document_of
from api_exporter.serving.channel import Channel, client_host
from api_exporter.serving.sender import send
from api_exporter.telemetry.process import ProcessTelemetry
from api_exporter.version import Build
from api_exporter.web.peer_table import MAX_RESPONSE_BYTES

T = TypeVar("T")

_log = Logger()

TTL = 1.0
"""The lifetime of a cached value in seconds."""


class TTLCache(Generic[T]):
    """A cache whose values expire after `TTL`.

    Expired values are removed when a new one is computed: a thousand accounts would
    keep 25 MB of metrics.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._values: dict[Hashable, tuple[float, T]] = {}

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        now = self._seconds()
        cached = self._values.get(key)
        if cached is None or not 0 <= now - cached[0] < TTL:
            cached = now, compute()
            fresh = {k: m for k, m in self._values.items() if 0 <= now - m[0] < TTL}
            self._values = {**fresh, key: cached}
        return cached[1]


PROFILES_PATH = "debug/pprof"

RUNBOOKS_PATH = "runbooks"
"""The path of the runbooks, relative to the status page."""

MAX_FINDINGS = 100
"""The maximum number of findings of an account; `finding_counts` has all."""

MAX_LIST_BYTES = MAX_RESPONSE_BYTES
"""The maximum bytes of all lists that are being sent: those of the longest one."""

STALLED_SECONDS = 3.0
"""Seconds without a byte that the client has acknowledged: it does not read."""

MAX_WAIT_SECONDS = 10.0
"""Seconds that a list waits until others have been sent."""

_CHECK_SECONDS = 0.5


class Transfer(Struct):
    """A list that is being sent.

    Attributes:
        acknowledged: the bytes that the client had acknowledged at the last check.
        changed_at: the time of the check that found this number first.
    """

    length: int
    acknowledged: int
    changed_at: float


class PendingLists:
    """The lists of service discovery that are being computed or sent.

    Each response has bytes of its own. Above MAX_LIST_BYTES a list waits. It displaces
    those whose clients do not read, first those of its own client.

    Attributes:
        lock: one list is computed at a time, so a refresh waits for one at most.
    """

    def __init__(self, clock: IReactorTime, on_aborted: Callable[[], None]) -> None:
        self.lock = DeferredLock()
        self._clock = clock
        self._on_aborted = on_aborted
        self._transfers: dict[Request, Transfer] = {}

    async def send(
        self, request: Request, slices: Sequence[bytes], length: int
    ) -> bool:
        """Send a list as soon as there is room. Return False if there is none."""
        deadline = self._clock.seconds() + MAX_WAIT_SECONDS
        while not self._make_room(request, length):
            if self._clock.seconds() >= deadline:
                return False
            await deferLater(self._clock, _CHECK_SECONDS)
        self._transfers[request] = Transfer(length, 0, self._clock.seconds())
        request.notifyFinish().addBoth(lambda _: self._transfers.pop(request, None))
        send(request, slices, length)
        return True

    def _make_room(self, request: Request, length: int) -> bool:
        """Abort as many stalled responses as necessary; return whether there is room.

        Without others there is room for each list.
        """
        room = MAX_LIST_BYTES - length
        if not self._transfers or self._sending <= room:
            return True
        stalled = [other for other in self._transfers if self._is_stalled(other)]
        stalled.sort(key=lambda other: client_host(other) != client_host(request))
        while self._transfers and self._sending > room:
            if not stalled:
                return False
            self._abort(stalled.pop(0))
        return True

    @property
    def _sending(self) -> int:
        return sum(transfer.length for transfer in self._transfers.values())

    def _is_stalled(self, request: Request) -> bool:
        transfer, now = self._transfers[request], self._clock.seconds()
        acknowledged = request.sentLength - _channel(request).unsent_bytes()
        if acknowledged != transfer.acknowledged:
            transfer.acknowledged, transfer.changed_at = acknowledged, now
        return now - transfer.changed_at >= STALLED_SECONDS

    def _abort(self, request: Request) -> None:
        channel = _channel(request)
        _log.info(
            "closed the connection of a client that does not read: other lists need"
            " its memory",
            client=client_host(request),
            bytes_left=channel.unsent_bytes(),
        )
        del self._transfers[request]
        self._on_aborted()
        channel.abort()


def _channel(request: Request) -> Channel:
    return cast(Channel, request.channel)


class SiteContext(Struct, frozen=True, kw_only=True, dict=True):
    """The data that is the same for every page.

    Attributes:
        simulated: if the NetBird API is the built-in simulation.
        uptime: returns seconds since the start.
    """

    process: ProcessTelemetry
    build: Build
    metrics_path: str
    runbooks: str
    simulated: bool
    compute: Compute
    profiles: Mapping[str, IResource]
    uptime: Callable[[], float]
    clock: IReactorTime
    now: Now

    @cached_property
    def pending_lists(self) -> PendingLists:
        return PendingLists(self.clock, self.process.target_lists_aborted.inc)

    def document(
        self,
        networks: Iterable[AccountNetwork],
        *,
        lines: Sequence[Finding] | None = None,
        max_findings: int | None = MAX_FINDINGS,
    ) -> Document:
        """Return the document of some accounts: see `account_entry`."""
        now = self.now()
        entries = [
            account_entry(
                network,
                runbooks=self.runbooks,
                now=now,
                max_findings=max_findings,
                lines=lines,
            )
            for network in networks
        ]
        return document_of(entries, self.build.version, now)

    @cached_property
    def documents(self) -> TTLCache[Document]:
        """The document of all accounts, which takes 0.2 s for a thousand."""
        return TTLCache(self.clock.seconds)

    @cached_property
    def own_metrics(self) -> TTLCache[Piece]:
        return TTLCache(self.clock.seconds)
