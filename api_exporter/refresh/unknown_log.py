"""The log of what this version of api-exporter does not know."""

from twisted.logger import Logger

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.unknown import Unknown
from api_exporter.subjects.account import INSTANCE_VERSION


class UnknownLog:
    """Logs each unknown field or value once, and again for another server version."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._version = ""
        self._logged: dict[str, frozenset[str]] = {}

    def report(self, resource: str, unknown: Unknown, inventory: Inventory) -> None:
        for server in INSTANCE_VERSION.of(inventory) or ():
            if self._version and server.management_current_version != self._version:
                self._logged.clear()
            self._version = server.management_current_version
        logged = self._logged.get(resource, frozenset())
        if names := frozenset(unknown.names()) - logged:
            self._logged[resource] = logged | names
            self._log.info(
                "{resource} of NetBird {version} has fields or values that"
                " this version of api-exporter does not know: {names}",
                resource=resource,
                version=self._version or "(unknown version)",
                names=", ".join(sorted(names)),
            )
