"""A resource: a path of the NetBird API, and its records in the inventory."""

import math
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from msgspec import Struct

from api_exporter.netbird.bodies import BodyDecoder, ListDecoder
from api_exporter.netbird.inventory import Inventory
from api_exporter.ports import UpstreamError

R = TypeVar("R")

PEERS = "peers"
"""The resource that determines `netbird_api_up`. Every server has it."""

ACCESS_LOG = "access_log"
"""The resource that is requested after all other due resources."""

CURRENT_USER = "current_user"
"""The permissions of the token's user. NetBird refuses them to a service user."""

ACCOUNT_LIST = "accounts"
"""The list of accounts: it has the account of the token."""

USER_LIST = "users"
"""The list of users, which marks the token's user."""

SERVER_VERSION = "instance_version"

ALWAYS_READ = frozenset({PEERS, CURRENT_USER, "groups"})
"""Resources that are read even if no collector needs them: service discovery does."""

MINUTE = 60.0

OFF = math.inf
"""The interval of a resource that is not requested."""

PROBE_PATH = "api/health"
"""A path that tests the connection. NetBird lacks it, so 404 is no failure."""

_USER_PLACEHOLDER = "{current_user}"


class Resource(Struct, Generic[R], frozen=True):
    """A path of the NetBird API, and the meaning of its responses: records of type R.

    Attributes:
        interval: seconds between refreshes, unless the settings change them.
        absence: the message of a refusal that means that the server lacks the path. An
            old server answers JSON 404: it takes the last segment for an object's id.
        query: returns the text behind the path, given the inventory and the time.
        ends: returns when the meaning of its records changes by time alone; None if
            that does not happen.
        cost: the minimum time to the next request, in durations of the response.
        idle_intervals: intervals between two requests while the resource has no record.
        depends_on: resources without any record of which this one has none.
        dormant_without: a resource without any record of which this one is not needed.
        permission: the permission module, if the resource may be withheld. Without the
            permission NetBird answers 403 for some resources. For others it answers 200
            with only the objects of the token's user.
        named_ids: returns the number of ids that joins look up for a record, without
            members of groups.
        place: resources with lower places are requested first.
        max_body_bytes: the maximum size of a body, if it is below the usual maximum.
    """

    name: str
    path: str
    decoder: BodyDecoder[R]
    interval: float = 10 * MINUTE
    absence: str = ""
    query: Callable[[Inventory, float], str] = lambda *_: ""
    ends: Callable[[Inventory, float], float | None] | None = None
    cost: float = 0.0
    idle_intervals: float = 1.0
    depends_on: tuple[str, ...] = ()
    dormant_without: str | None = None
    permission: str | None = None
    named_ids: Callable[[R], int] = lambda _: 0
    place: int = 4
    max_body_bytes: int | None = None

    def of(self, inventory: Inventory) -> tuple[R, ...] | None:
        """Return the records in an inventory. None if they are unknown or too old."""
        return inventory.records.get(self.name)

    @property
    def source(self) -> str:
        """The path in the documents of metrics; `[]` marks a list."""
        mark = "[]" if isinstance(self.decoder, ListDecoder) else ""
        return self.path.removeprefix("api/") + mark

    @property
    def is_own(self) -> bool:
        """True if it belongs to the token's user."""
        return _USER_PLACEHOLDER in self.path

    def refused(self, error: UpstreamError) -> bool:
        """Return whether the server knows the path and denies access."""
        if error.unsupported or self.name == PEERS:
            return False
        if error.reason == "forbidden":
            return True
        if error.server_message == "":  # it is not NetBird's own error
            return False
        if self.name == CURRENT_USER:
            return error.reason in {"http_4xx", "not_found"}
        return self.is_own and error.reason == "not_found"

    def request_path(self, inventory: Inventory, now: float) -> str | None:
        """Return the path to request.

        None while the resource is dormant, withheld or without records, or its path is
        unknown.
        Withheld peers are requested: they show whether the NetBird API works.
        """
        if inventory.dormant(self.name):
            return None
        if self.name in inventory.withheld and self.name != PEERS:
            return None
        if self.has_no_records(inventory):
            return None
        if not self.is_own:
            return self.path + self.query(inventory, now)
        user = inventory.current_user_id
        if user in {None, ".", ".."}:  # dots would lead to another path
            return None
        return self.path.replace(_USER_PLACEHOLDER, quote(user, safe=""))

    def min_interval(
        self, record_count: int, interval: float, seconds: float = 0.0
    ) -> float:
        """Return the minimum seconds to the next request, given how long this took."""
        intervals = 1.0 if record_count else self.idle_intervals
        return max(self.cost * seconds, intervals * interval)

    def has_no_records(self, inventory: Inventory) -> bool:
        """Return whether the resource is known to have no records."""
        needed = [inventory.records.get(name) for name in self.depends_on]
        return bool(needed) and not any(needed) and None not in needed

    def absent(self, error: UpstreamError) -> bool:
        """Return whether the error may mean that the server does not know the path."""
        if self.name == PEERS:  # then something else is wrong
            return False
        return error.unsupported or (
            error.server_message != "" and error.server_message == self.absence
        )


MAX_NAMED_IDS = 1_000_000
"""The maximum number of ids that the records of one list may name, without members of
groups. The largest known network has a hundredth of it. Joins look up each id.
"""


def length_of(*fields: str) -> Callable[[Any], int]:
    return lambda record: sum(len(getattr(record, field) or ()) for field in fields)


def check_named_ids(named_ids: Callable[[Any], int], records: Iterable[Any]) -> None:
    """Raise UpstreamError if the records of a list name more ids than joins take."""
    total = sum(map(named_ids, records))
    if total > MAX_NAMED_IDS:
        message = f"the records name {total} objects; the maximum is {MAX_NAMED_IDS}"
        raise UpstreamError("too_large", message)
