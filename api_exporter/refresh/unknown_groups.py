"""Groups that PEER_DETAIL names and the network does not have."""

from twisted.logger import Logger

from api_exporter.netbird.inventory import Inventory


class UnknownGroups:
    """Warns of each once, and again where it was there in between."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._told: frozenset[str] = frozenset()

    def warn(self, known: Inventory) -> None:
        """Look at what is known by now; while groups are unknown there is no news."""
        if known.groups is None:
            return
        missing = frozenset(known.missing_groups)
        for name in sorted(missing - self._told):
            self._log.warn(
                "PEER_DETAIL names {group}, which is neither name nor id of a group",
                group=repr(name),
            )
        self._told = missing
