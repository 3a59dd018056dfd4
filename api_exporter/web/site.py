"""The HTTP server: one subclass of Twisted's, which can be drained."""

from twisted.internet import defer
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web import http
from twisted.web.resource import IResource
from twisted.web.server import Request, Site

GRACE = 5.0
"""Seconds that requests under way are given when we stop."""


class DrainingSite(Site):
    """Knows which requests are under way, and logs each for debugging."""

    noisy = False  # Twisted need not say that it starts
    _logger = Logger()

    def __init__(self, resource: IResource) -> None:
        super().__init__(resource)
        self.under_way: set[Request] = set()
        self._waiting: Deferred[None] | None = None

    def getResourceFor(self, request: Request) -> IResource:
        """Twisted asks once for each request: here it begins."""
        self.under_way.add(request)
        request.notifyFinish().addBoth(self._finished, request)
        found: IResource = super().getResourceFor(request)
        return found

    def _finished(self, _result: object, request: Request) -> None:
        self.under_way.discard(request)
        if self._waiting is not None and not self.under_way:
            self._waiting.callback(None)

    def log(self, request: http.Request) -> None:
        """A line for each request, instead of Twisted's access log."""
        self._logger.debug(
            "{method} {path}",
            method=request.method.decode("latin-1"),
            path=request.path.decode("latin-1"),
            status=request.code,
            client=str(getattr(request.getClientAddress(), "host", "")),
            bytes=request.sentLength,
        )

    def drained(self, clock: IReactorTime) -> Deferred[None]:
        """Fires when no request is under way, after the grace at the latest."""
        waiting: Deferred[None] = Deferred()
        if self.under_way:
            self._waiting = waiting
            waiting.addTimeout(GRACE, clock)
            waiting.addErrback(_too_late)
        else:
            waiting.callback(None)
        return waiting


def _too_late(failure: Failure) -> None:
    failure.trap(defer.TimeoutError)
