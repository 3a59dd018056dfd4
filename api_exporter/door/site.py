"""The HTTP server with a guard at its door."""

from prometheus_client import CollectorRegistry
from twisted.internet.interfaces import IReactorTime
from twisted.web.resource import IResource
from twisted.web.server import Request

from api_exporter.door.checks import Compare
from api_exporter.door.front import Front
from api_exporter.door.guard import Guard
from api_exporter.serving.channel import BodilessRequest
from api_exporter.serving.site import BoundedSite
from api_exporter.telemetry.process import reload_successful, unauthorized


class GuardedSite(BoundedSite):
    """Shows to everybody what the guard lets them see.

    Attributes:
        refused: told of an address that may not come in, and why.
    """

    def __init__(
        self,
        resource: IResource,
        reactor: IReactorTime,
        max_connections: int,
        guard: Guard,
    ) -> None:
        super().__init__(resource, reactor, max_connections)
        self._guard = guard
        self.refused = guard.refused

    def stopFactory(self) -> None:
        """Called when the last port is closed."""
        super().stopFactory()
        self._guard.stop()

    def getResourceFor(self, request: Request) -> IResource:
        """Nobody is asked who is told that there is no room."""
        found = super().getResourceFor(request)
        self._guard.dress(request)
        assert isinstance(request, BodilessRequest)
        return found if found is self.full else self._guard.admit(request, found)


def guarded(
    resource: IResource,
    reactor: IReactorTime,
    *,
    max_connections: int,
    front: Front,
    registry: CollectorRegistry,
    compare: Compare,
) -> GuardedSite:
    """The server with its guard and what that tells of itself."""
    reload_successful(registry, lambda: front.fine)
    guard = Guard(front, reactor, compare, unauthorized(registry))
    return GuardedSite(resource, reactor, max_connections, guard)
