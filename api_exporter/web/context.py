"""The data that all pages share, except the accounts."""

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Generic, TypeVar, cast

from msgspec import Struct
from twisted.internet.defer import DeferredLock
from twisted.web.resource import Resource
from twisted.web.server import Request

from api_exporter.exposition.pages import Payload, Piece
from api_exporter.ports import Compute, Now
from api_exporter.serving.channel import Channel
from api_exporter.serving.sender import Sender
from api_exporter.telemetry.process import ProcessTelemetry
from api_exporter.version import Build
from api_exporter.web.json_list import MAX_RESPONSE_BYTES

T = TypeVar("T")

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
"""The path of the profiles, if they are enabled."""

RUNBOOKS_PATH = "runbooks"
"""The path of the runbooks, relative to the status page."""

MAX_PENDING = 16
"""The maximum number of pending responses with long lists, for all accounts."""

MAX_PENDING_BYTES = MAX_RESPONSE_BYTES
"""The maximum bytes of such responses that are being sent: those of the longest one."""


class PendingResponses:
    """The pending responses of service discovery, and of whole look-up tables.

    Above one of the limits, the connection of the oldest response in transfer is
    aborted: a client that does not read must not block the others.

    Attributes:
        lock: one response is computed at a time, so a refresh waits for one at most.
    """

    def __init__(self) -> None:
        self.lock = DeferredLock()
        self._bytes: dict[Request, int] = {}

    def begin(self, request: Request) -> bool:
        """Count a request until it has ended. Return False at the limit."""
        if len(self._bytes) >= MAX_PENDING and not self._make_room():
            return False
        self._bytes[request] = 0
        request.notifyFinish().addBoth(lambda _: self._bytes.pop(request, None))
        return True

    def send(self, request: Request, response: Payload, media_type: bytes) -> None:
        """Send a response to a counted request; to HEAD only its headers."""
        request.setHeader(b"Content-Type", media_type)
        request.setHeader(b"Content-Length", b"%d" % response.length)
        if request.method == b"HEAD":
            request.finish()
            return
        while sum(self._bytes.values()) + response.length > MAX_PENDING_BYTES:
            if not self._make_room():
                break
        self._bytes[request] = response.length
        Sender(request, iter(response.slices)).start()

    def _make_room(self) -> bool:
        oldest = next((r for r, length in self._bytes.items() if length), None)
        if oldest is None:
            return False
        del self._bytes[oldest]
        cast(Channel, oldest.channel).abort()
        return True


class SiteContext(Struct, frozen=True, kw_only=True, dict=True):
    """The data that is the same for every page.

    Attributes:
        simulated: if the NetBird API is the built-in simulation.
        profiles: the pages of profiles; None if they are disabled.
        uptime: returns seconds since the start.
    """

    process: ProcessTelemetry
    build: Build
    metrics_path: str
    runbooks: str
    simulated: bool
    compute: Compute
    profiles: Resource | None = None
    uptime: Callable[[], float]
    seconds: Callable[[], float]
    now: Now

    @cached_property
    def pending_lists(self) -> PendingResponses:
        return PendingResponses()

    @cached_property
    def metric_tails(self) -> TTLCache[Piece]:
        """The ends of metrics pages: the exporter's own metrics."""
        return TTLCache(self.seconds)
