"""The newest records of each resource."""

from dataclasses import dataclass, replace

from api_exporter.records import Peer


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What is known of the network. None: not known, or only from too long ago."""

    peers: tuple[Peer, ...] | None = None

    def with_(self, resource: str, records: object) -> "Inventory":
        """The same with a resource's records replaced; None forgets them."""
        return replace(self, **{resource: records})  # type: ignore[arg-type]
