"""What all pages of the site know beside the accounts."""

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

T = TypeVar("T")

LIFE = 1.0
"""Seconds for which a value is made once for all who ask."""


class TTLCache(Generic[T]):
    """Makes a value when somebody asks and what there is has become too old.

    What is too old goes when the next value is made: with a thousand accounts the ends
    of their pages would take 25 MB.

    Args:
        seconds: a clock.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._made: dict[Hashable, tuple[float, T]] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """A second old at most."""
        now = self._seconds()
        made = self._made.get(key)
        if made is None or not 0 <= now - made[0] < LIFE:
            made = now, make()
            young = {k: m for k, m in self._made.items() if 0 <= now - m[0] < LIFE}
            self._made = {**young, key: made}
        return made[1]


PROFILES = "debug/pprof"
"""Where profiles are, if they are served."""


MOST_ANSWERS = 16
"""Answers of service discovery that wait or are being sent, for all accounts."""

MOST_BYTES = 256 * 1024 * 1024
"""Bytes of such answers that are being sent."""


class Answers:
    """The answers of service discovery that have not been sent.

    Above one of the limits, the oldest one that is being sent makes room: a client that
    does not read must not shut out the others.

    Attributes:
        turn: one answer is made at a time, so that a refresh waits for one at most.
    """

    def __init__(self) -> None:
        self.turn = DeferredLock()
        self._bytes: dict[Request, int] = {}

    def begin(self, request: Request) -> bool:
        """Count a request until it has ended. Return False if there is no room."""
        if len(self._bytes) >= MOST_ANSWERS and not self._make_room():
            return False
        self._bytes[request] = 0
        request.notifyFinish().addBoth(lambda _: self._bytes.pop(request, None))
        return True

    def send(self, request: Request, answer: Payload) -> None:
        while sum(self._bytes.values()) + answer.length > MOST_BYTES:
            if not self._make_room():
                break
        self._bytes[request] = answer.length
        Sender(request, iter(answer.slices)).start()

    def _make_room(self) -> bool:
        """Abort the oldest answer that is being sent, if there is one."""
        oldest = next((r for r, length in self._bytes.items() if length), None)
        if oldest is None:
            return False
        del self._bytes[oldest]
        cast(Channel, oldest.channel).give_way()
        return True


class SiteContext(Struct, frozen=True, kw_only=True, dict=True):
    """The same for every page.

    Attributes:
        runbooks: where they are.
        simulated: whether the upstream is one of our own.
        profiles: their pages; None if they are not served.
        uptime: seconds since the start.
        seconds: a clock.
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
    def discovery(self) -> Answers:
        """The answers of service discovery, of all accounts together."""
        return Answers()

    @cached_property
    def tails(self) -> TTLCache[Piece]:
        """The ends of metrics pages: the exporter's own metrics."""
        return TTLCache(self.seconds)
