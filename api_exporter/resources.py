"""The whole traffic to the upstream in one table: what is asked for, and how often."""

from dataclasses import dataclass

from api_exporter import records
from api_exporter.records import Listing


@dataclass(frozen=True, slots=True)
class Resource:
    """One path of the upstream.

    Attributes:
        name: as in labels and settings, and the field of the Inventory.
        path: below the upstream's base URL.
        body: decodes it.
        period: seconds between refreshes, unless the settings say otherwise.
    """

    name: str
    path: str
    body: Listing[records.Peer]
    period: float


PEERS = Resource("peers", "api/peers", Listing(records.Peer), 30)
"""Always fetched, and always first: `netbird_api_up` tells of it."""

RESOURCES: tuple[Resource, ...] = (PEERS,)
"""In the order of the first round."""

BY_NAME = {resource.name: resource for resource in RESOURCES}
