"""A log that an account writes: it requests one resource in its own way."""

from abc import abstractmethod

from twisted.application.service import Service

from api_exporter.netbird.inventory import Inventory
from api_exporter.ports import Fetch, ResponseBody


class Log(Service):
    """Requests one resource, and writes its bodies; see `logs`."""

    @property
    def interval(self) -> float:
        """The minimum seconds between two requests while nothing more waits."""
        return 0.0

    def is_due(self) -> bool:
        return True

    @abstractmethod
    async def fetch(
        self, fetch: Fetch, path: str, max_seconds: float, inventory: Inventory
    ) -> ResponseBody:
        """Return the body to decode; raises UpstreamError.

        Args:
            fetch: returns unpacked bodies.
            max_seconds: seconds until the next refresh: no retry lasts longer.
        """
