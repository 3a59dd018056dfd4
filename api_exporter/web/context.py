"""What all pages of the site know beside the accounts."""

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Generic, TypeVar

from msgspec import Struct
from twisted.web.resource import Resource
from twisted.web.server import Request

from api_exporter.exposition.pages import Piece
from api_exporter.ports import Compute, Now
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
"""Answers that wait for the compute thread or are being sent, for all accounts."""

MOST_BYTES = 256 * 1024 * 1024
"""Bytes of answers that are being sent, after which no further request is accepted."""


class AnswerLimit:
    """Counts the requests of service discovery that have not ended."""

    def __init__(self) -> None:
        self._bytes: dict[Request, int] = {}

    @property
    def reached(self) -> bool:
        sizes = self._bytes.values()
        return len(sizes) >= MOST_ANSWERS or sum(sizes) >= MOST_BYTES

    def begin(self, request: Request) -> None:
        """Count a request until its response has been sent or its client has gone."""
        self._bytes[request] = 0
        request.notifyFinish().addBoth(lambda _: self._bytes.pop(request))

    def hold(self, request: Request, length: int) -> None:
        """Count the bytes of its answer."""
        self._bytes[request] = length


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
    def discovery(self) -> AnswerLimit:
        """The limit of service discovery, of all accounts together."""
        return AnswerLimit()

    @cached_property
    def tails(self) -> TTLCache[Piece]:
        """The ends of metrics pages: the exporter's own metrics."""
        return TTLCache(self.seconds)
