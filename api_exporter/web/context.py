"""What all pages of the site know beside the accounts."""

from collections.abc import Callable
from functools import cached_property

from msgspec import Struct
from twisted.web.resource import Resource

from api_exporter.exposition.pages import Piece
from api_exporter.ports import Compute, Now
from api_exporter.telemetry.process import ProcessTelemetry
from api_exporter.version import Build
from api_exporter.web.discovery.limit import AnswerLimit
from api_exporter.web.ttl_cache import TTLCache

PROFILES = "debug/pprof"
"""Where profiles are, if they are served."""


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
