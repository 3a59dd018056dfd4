"""Resources: the inventory's fields, and what is asked of the upstream for them."""

import math
from typing import Annotated, get_args, get_origin, get_type_hints
from urllib.parse import quote

from msgspec.structs import asdict

from api_exporter.netbird.bodies import Body, Document, Listing, Page
from api_exporter.netbird.inventory import ApiEndpoint, Inventory
from api_exporter.netbird.records import CurrentUser
from api_exporter.ports import UpstreamError

UP = "peers"
"""The resource that `netbird_api_up` tells of; every upstream has it."""

ACCESS_LOG = "access_log"
"""The resource that is asked for after everything else that is due."""

CURRENT_USER = "current_user"
"""The resource that says what the token's user may read; a service user has none."""

ALWAYS = frozenset({UP, CURRENT_USER, "groups"})
"""What is read whatever is published: service discovery is made of it."""

OFF = math.inf
"""The interval of a resource that is not asked for."""

PROBE = "api/health"
"""Tries the connection; NetBird has no such path, which is no failure."""

_CURRENT_USER = "{current_user}"

_ROLE_UNKNOWN = "user role: "
"""With which a 404 begins that is a refusal: on some paths a role is not known."""


class Resource(ApiEndpoint, frozen=True, kw_only=True):
    """An endpoint, and what its answers mean.

    Attributes:
        name: as in labels and settings, and the field of the Inventory.
    """

    name: str
    body: Body

    @property
    def optional(self) -> bool:
        """Whether a refusal is to be expected and no failure."""
        return self.name == CURRENT_USER or _CURRENT_USER in self.path

    def refused(self, error: UpstreamError) -> bool:
        """Whether the upstream knows the path, and that is all we are to know."""
        if error.unsupported or self.name == UP:
            return False
        if self.name == CURRENT_USER and error.reason == "http_4xx":
            return True  # 405: before NetBird 0.41.1
        if error.reason == "forbidden" or error.said.startswith(_ROLE_UNKNOWN):
            return True
        return self.optional and error.reason == "not_found"

    def located(self, inventory: Inventory, now: float) -> str | None:
        """The path to ask for; None while it is dormant, withheld or pointless, or
        while what the path is made of is unknown.
        """
        if inventory.dormant(self.name) or self.name in inventory.withheld:
            return None
        if self.pointless(inventory):
            return None
        if _CURRENT_USER not in self.path:
            return self.path + self.query(inventory, now)
        user = inventory.current_user_id
        if user in {None, ".", ".."}:  # dots would lead to another path
            return None
        return self.path.replace(_CURRENT_USER, quote(user, safe=""))

    def rest(self, records: int, period: float, seconds: float) -> float:
        """Seconds from one request to the next, at least.

        Args:
            records: that it has.
            seconds: that the answer took.
        """
        return max(self.cost * seconds, period if records else self.idle * period)

    def pointless(self, inventory: Inventory) -> bool:
        """Whether it is known that there is nothing of it."""
        of = [getattr(inventory, name) for name in self.of]
        return bool(of) and not any(of) and None not in of

    def absent(self, error: UpstreamError) -> bool:
        """Whether an upstream that answers so may not know the path."""
        if self.name == UP:  # then something else is wrong
            return False
        return error.unsupported or (error.said != "" and error.said == self.absence)


def _resource(name: str, known: object, endpoint: ApiEndpoint) -> Resource:
    records, _ = get_args(known)
    body = endpoint.body or Listing(get_args(records)[0])
    return Resource(**{**asdict(endpoint), "name": name, "body": body})


RESOURCES: tuple[Resource, ...] = tuple(
    _resource(name, *get_args(hint))
    for name, hint in get_type_hints(Inventory, include_extras=True).items()
    if get_origin(hint) is Annotated
)
"""What collectors read, in the order of the first round: the peers first."""

BOUNDS = {resource.path: resource.longest for resource in RESOURCES if resource.longest}
"""Bytes of the bodies that have a bound of their own, by path."""

BESIDE = (
    Resource(
        name=CURRENT_USER,
        path="api/users/current",
        body=Document(CurrentUser),
    ),
    Resource(  # a page of it, of which `events.access_log` knows which
        name=ACCESS_LOG,
        path="api/events/proxy",
        body=Page(),
        period=30,
        of=("proxy_services", "proxy_clusters"),
    ),
)
"""What no collector reads."""

BY_NAME = {
    resource.name: resource
    for resource in (RESOURCES[0], BESIDE[0], *RESOURCES[1:], *BESIDE[1:])
}
"""In the order of the first round: permissions before all that they may withhold."""
