"""The inventory: the newest records of each resource."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, wraps
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.netbird.members import member_ids, named
from api_exporter.netbird.records import (
    CurrentUser,
    Group,
    NetBirdAccount,
    Peer,
    Permissions,
    User,
)

R = TypeVar("R")
T = TypeVar("T")

_NEVER = datetime.min.replace(tzinfo=UTC)

Known = tuple[R, ...] | None
"""The records of a resource. None if they are unknown or too old."""


def ids_of(records: Known[CurrentUser] | Known[NetBirdAccount]) -> frozenset[str]:
    return frozenset(record.id for record in records or ())


class Reading(Struct, frozen=True, gc=False):
    """The begin and end of reading a resource: growing numbers that order readings."""

    began: int
    ended: int


class ResourceRules(Struct, frozen=True, kw_only=True):
    """The rules of an inventory, which follow from the table of all resources.

    Attributes:
        permissions: the permission module of each resource that may be withheld.
        dormant_without: the resources that are dormant without records of another, and
            that other one.
        own: resources of the token's user.
        timed: resources whose meaning changes by time alone.
    """

    permissions: Mapping[str, str]
    dormant_without: Mapping[str, str]
    own: frozenset[str]
    timed: frozenset[str]


class Inventory(Struct, frozen=True, kw_only=True, dict=True):
    """The records of the network that may be published.

    Attributes:
        records: those of each known resource: see `Resource.of`.
        personal: the kinds of personal data that may be published.
        now: the time of publication in seconds since the epoch. Windows and days end.
        intervals: seconds between refreshes, by resource.
        versions: an object for each resource. It is new whenever the resource's records
            are replaced.
        readings: the newest good reading of each resource, unchanged records or not.
        detail: names or ids of groups whose peers may have series of their own. None:
            all peers may.
        account_ids: those of the newest list of accounts; kept when it expires.
        former_accounts: how often a token of another account removed all records.
    """

    rules: ResourceRules
    records: Mapping[str, tuple[Any, ...]] = MappingProxyType({})
    personal: frozenset[str] = frozenset()
    detail: frozenset[str] | None = None
    now: float = 0.0
    intervals: Mapping[str, float] = MappingProxyType({})
    versions: Mapping[str, object] = MappingProxyType({})
    readings: Mapping[str, Reading] = MappingProxyType({})
    account_ids: frozenset[str] = frozenset()
    former_accounts: int = 0

    @property
    def peers(self) -> Known[Peer]:
        return self.records.get("peers")

    @property
    def accounts(self) -> Known[NetBirdAccount]:
        return self.records.get("accounts")

    @property
    def groups(self) -> Known[Group]:
        return self.records.get("groups")

    @property
    def users(self) -> Known[User]:
        return self.records.get("users")

    @property
    def current_user(self) -> Known[CurrentUser]:
        return self.records.get("current_user")

    def replacing(self, resource: str, records: object) -> "Inventory":
        """Return the inventory with a resource's records replaced; None removes them.

        Another current user removes the resources of the previous one. A list of
        accounts without any of those before removes all. The last record removes what
        is dormant without any. Permissions remove what they withhold.
        """
        after = self._with_records({resource: records})
        if resource == "accounts" and after.accounts:
            after = replace(after, account_ids=ids_of(after.accounts))
            if self.account_ids and self.account_ids.isdisjoint(after.account_ids):
                return self.of_another_account(resource, records)
        removed: set[str] = set()
        if resource in {"users", "current_user"}:
            if after.current_user_id != self.current_user_id:
                removed |= self.rules.own
            removed |= after.withheld
        empty = {*removed, *(() if records else (resource,))}
        for name, needed in self.rules.dormant_without.items():
            if needed in empty:
                removed.add(name)
        if removed:
            after = after._with_records(dict.fromkeys(removed))
        return after

    def of_another_account(self, resource: str, records: object) -> "Inventory":
        """Return an inventory with the records of one resource, and no others."""
        return replace(
            self._with_records(dict.fromkeys(self.records)),
            readings=MappingProxyType({}),
            account_ids=frozenset(),
            former_accounts=self.former_accounts + 1,
        ).replacing(resource, records)

    def without_current_mark(self) -> "Inventory":
        """Return the inventory with a list of users that marks none as the current."""
        if self.users is None:
            return self
        users = [
            replace(u, is_current=False) if u.is_current else u for u in self.users
        ]
        return self.replacing("users", tuple(users))

    def _with_records(self, records: Mapping[str, Any]) -> "Inventory":
        versions = {**self.versions, **{name: object() for name in records}}
        known = {**self.records, **records}
        known = {name: found for name, found in known.items() if found is not None}
        return replace(
            self, versions=MappingProxyType(versions), records=MappingProxyType(known)
        )

    def read(self, resource: str, reading: Reading) -> "Inventory":
        after = replace(
            self, readings=MappingProxyType({**self.readings, resource: reading})
        )
        vars(after).update(vars(self))  # what follows from the same records
        return after

    def dormant(self, resource: str) -> bool:
        """Return whether the resource needs a record of another one without any."""
        needed = self.rules.dormant_without.get(resource)
        return needed is not None and not self.records.get(needed)

    def inputs_key(self, resources: Iterable[str]) -> tuple[object, ...]:
        """Return a value that changes whenever results of these resources may change.

        The settings must be the same. The value keeps no records in memory.
        """
        return tuple(
            [
                (self.versions.get(name), self.now)
                if name in self.rules.timed
                else self.versions.get(name)
                for name in resources
            ]
        )

    def detailed_peers(self) -> Sequence[Peer]:
        ids = self.detailed_peer_ids()
        peers = self.peers or ()
        if ids is None:
            return peers
        return tuple([peer for peer in peers if peer.id in ids])

    @cached_property
    def connected_count(self) -> int:
        return sum(peer.connected for peer in self.peers or ())

    @cached_property
    def offline_machines(self) -> Sequence[Peer] | None:
        """Offline peers without a login, which should be connected; None if unknown.

        The last seen is first. Peers without detail are not among them.
        """
        if self.peers is None or (self.detail and self.groups is None):
            return None
        offline = [
            peer
            for peer in self.detailed_peers()
            if not peer.connected and not peer.user_id and not peer.ephemeral
        ]
        return sorted(offline, key=lambda peer: peer.last_seen or _NEVER, reverse=True)

    def detailed_peer_ids(self) -> Container[str] | None:
        """Return their ids; None for all peers, none while the groups are unknown."""
        if self.detail is None:
            return None
        return member_ids(named(self.groups, self.detail))

    @property
    def missing_groups(self) -> tuple[str, ...]:
        """Names in `detail` that no group has; none while the groups are unknown."""
        if self.detail is None or self.groups is None:
            return ()
        names = {name for group in self.groups for name in (group.id, group.name)}
        return tuple(sorted(self.detail - names))

    @cached_property
    def current_user_id(self) -> str | None:
        """The id of the user that owns the exporter's token, or None.

        Of several users the lowest id counts: NetBird changes their order each time.
        """
        current = [u.id for u in self.users or () if u.is_current]
        return min(current or [u.id for u in self.current_user or ()], default=None)

    @cached_property
    def withheld(self) -> frozenset[str]:
        """The resources that the token's user may not read, or only in part."""
        return frozenset(
            name
            for name, module in self.rules.permissions.items()
            if self._may_read(module) is False
            or (name == "peers" and self._has_part_of_peers(module))
        )

    @cached_property
    def _permissions(self) -> Permissions:
        # The list of users may already name another current user.
        for user in self.current_user or ():
            if user.id == self.current_user_id and not user.is_service_user:
                return user.permissions
        return Permissions()

    def _may_read(self, module: str) -> bool | None:
        """Return whether the user may read a module; None if NetBird does not say."""
        return (self._permissions.modules or {}).get(module, {}).get("read")

    @property
    def role(self) -> str:
        me = self.current_user_id
        roles = [u.role for u in self.current_user or () if u.id == me]
        return (roles or [u.role for u in self.users or () if u.id == me] or [""])[0]

    def _has_part_of_peers(self, module: str) -> bool:
        """Return whether NetBird sends only some peers though it denies nothing.

        Fact: a human without the permission gets 200 and only their own peers, or none.
        A restricted one with the permission gets all, such as a usage_viewer.
        """
        if self._permissions.is_restricted and not self._may_read(module):
            return True
        return any(
            user.is_current and not user.is_service_user and user.role == "user"
            for user in self.users or ()
        )


def joined_once(join: Callable[[Inventory], T]) -> Callable[[Inventory], T]:
    """Keep the result of a join with its inventory: pages and findings need the same.

    It must be small: it lives as long as the inventory.
    """
    name = f"{join.__module__}.{join.__name__}"

    @wraps(join)
    def once(inventory: Inventory) -> T:
        kept = vars(inventory)
        if name not in kept:
            kept[name] = join(inventory)
        result: T = kept[name]
        return result

    return once
