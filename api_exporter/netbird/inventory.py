"""The inventory: the newest records of each resource."""

from collections.abc import Container, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.netbird import agent_records, records
from api_exporter.netbird.agent_bodies import Consumption, Denials, Usage
from api_exporter.netbird.facts.members import member_ids, named
from api_exporter.netbird.joins import (
    SETTLED,
    JoinState,
    Reading,
    joined_lists,
    next_state,
)
from api_exporter.netbird.references import JOINED_LISTS

R = TypeVar("R")

Known = tuple[R, ...] | None
"""The records of a resource. None if they are unknown or too old."""


AGENT_RESOURCES = (
    "agent_policies",
    "agent_budget_rules",
    "agent_guardrails",
    "agent_settings",
    "agent_consumption",
    "agent_usage",
    "agent_denials",
)
"""Resources that are dormant while the Agent Network has no provider."""

TIMED_RESOURCES = frozenset({"agent_consumption", "agent_usage", "agent_denials"})
"""Resources with `ends`, whose meaning changes by time alone."""

PERMISSION_MODULES = {
    "accounts": "settings",
    "groups": "groups",
    "setup_keys": "setup_keys",
    "networks": "networks",
    "network_routers": "networks",
    "network_resources": "networks",
    "routes": "routes",
    "users": "users",
    "access_tokens": "pats",
    "policies": "policies",
    "posture_checks": "policies",
    "nameservers": "nameservers",
    "dns_settings": "dns",
    "dns_zones": "dns",
    "proxy_services": "services",
    "proxy_domains": "services",
    "proxy_clusters": "services",
    "proxy_tokens": "services",
    "events": "events",
    "user_invites": "users",
    "identity_providers": "identity_providers",
    "agent_providers": "agent_network.providers",
    "agent_policies": "agent_network.policies",
    "agent_budget_rules": "agent_network.budgets",
    "agent_guardrails": "agent_network.guardrails",
    "agent_settings": "agent_network.settings",
    "agent_consumption": "agent_network.usage",
    "agent_usage": "agent_network.usage",
    "agent_denials": "agent_network.logs",
    "access_log": "services",
}
"""The permission module of each resource that may be withheld.

Without the permission NetBird answers 403 for some resources. For others it answers 200
with only the objects of the token's user. The list of peers is one of the latter. It is
published nevertheless, because it shows whether the NetBird API works.
"""


class Inventory(Struct, frozen=True, kw_only=True, dict=True):
    """The records of the network that may be published.

    The fields that are resources stand in the order of `resources.RESOURCES`.

    Attributes:
        personal: the kinds of personal data that may be published.
        now: the time of publication in seconds since the epoch. Windows and days end.
        consumption_period: seconds between refreshes of agents' consumption.
        changes: an object for each resource. It is new whenever the resource's records,
            or those that joins use, are replaced.
        joins: the records and lists that joins wait for.
        detail: names or ids of groups whose peers may have series of their own. None:
            all peers may.
    """

    personal: frozenset[str] = frozenset()
    detail: frozenset[str] | None = None
    now: float = 0.0
    consumption_period: float = 600.0
    peers: Known[records.Peer] = None
    accounts: Known[records.NetBirdAccount] = None
    groups: Known[records.Group] = None
    setup_keys: Known[records.SetupKey] = None
    networks: Known[records.Network] = None
    network_routers: Known[records.NetworkRouter] = None
    network_resources: Known[records.NetworkResource] = None
    routes: Known[records.Route] = None
    users: Known[records.User] = None
    access_tokens: Known[records.AccessToken] = None
    policies: Known[records.Policy] = None
    posture_checks: Known[records.PostureCheck] = None
    nameservers: Known[records.NameserverGroup] = None
    dns_settings: Known[records.DnsSettings] = None
    dns_zones: Known[records.DnsZone] = None
    proxy_services: Known[records.ProxyService] = None
    proxy_domains: Known[records.ProxyDomain] = None
    proxy_clusters: Known[records.ProxyCluster] = None
    proxy_tokens: Known[records.ProxyToken] = None
    instance_version: Known[records.InstanceVersion] = None
    events: Known[records.AuditEvent] = None
    user_invites: Known[records.UserInvite] = None
    identity_providers: Known[records.IdentityProvider] = None
    agent_providers: Known[agent_records.AgentProvider] = None
    agent_policies: Known[agent_records.AgentPolicy] = None
    agent_budget_rules: Known[agent_records.AgentBudgetRule] = None
    agent_guardrails: Known[agent_records.AgentGuardrail] = None
    agent_settings: Known[agent_records.AgentSettings] = None
    agent_consumption: Known[Consumption] = None
    agent_usage: Known[Usage] = None
    agent_denials: Known[Denials] = None
    access_log: tuple[()] | None = None
    current_user: Known[records.CurrentUser] = None
    changes: Mapping[str, object] = MappingProxyType({})
    joins: JoinState = SETTLED

    def with_(self, resource: str, records: object) -> "Inventory":
        """Return the inventory with a resource's records replaced; None removes them.

        Another current user removes access tokens. The last provider removes what
        depends on one. Permissions remove what they withhold.
        """
        after = self._with_records({resource: records})
        is_about_users = resource in {"users", "current_user"}
        removed: set[str] = set()
        if is_about_users:
            if after.current_user_id != self.current_user_id:
                removed.add("access_tokens")
            removed |= after.withheld
        has_no_provider = resource == "agent_providers" and not records
        if has_no_provider or "agent_providers" in removed:
            removed.update(AGENT_RESOURCES)
        if removed:
            after = after._with_records(dict.fromkeys(removed))
        if is_about_users and after.partial_peers != self.partial_peers:
            # joins conclude more or less
            after = after._with_changes({name: object() for name in JOINED_LISTS})
        return after

    def _with_records(self, records: Mapping[str, object]) -> "Inventory":
        changes = {name: object() for name in records}
        return replace(self._with_changes(changes), **records)

    def _with_changes(self, changes: Mapping[str, object]) -> "Inventory":
        return replace(self, changes=MappingProxyType({**self.changes, **changes}))

    def settle(
        self, before: "Inventory", resource: str, reading: Reading | None
    ) -> "Inventory":
        """Return the inventory with the state of joins after a reading or a withdrawal.

        Args:
            before: the inventory with the previous records of the resource.
            reading: None for a withdrawal.
        """
        if resource == "current_user" and self.changes is not before.changes:
            reading = None  # permissions may have removed lists
        elif resource not in JOINED_LISTS:
            return self
        state = next_state(
            self.joins, resource, getattr(before, resource), self._lists(), reading
        )
        old = self.joins
        changes = {
            n: object() for n in JOINED_LISTS if state.edition(n) != old.edition(n)
        }
        if self.partial_peers and self.changes.get(resource) is not before.changes.get(
            resource
        ):  # joins leave out records of any list that name an unknown peer
            changes = {n: object() for n in JOINED_LISTS}
        return replace(self._with_changes(changes), joins=state)

    def _lists(self) -> dict[str, tuple[Any, ...] | None]:
        return {name: getattr(self, name) for name in JOINED_LISTS}

    @cached_property
    def joined(self) -> "Inventory":
        """The inventory that joins use: see Note [Joined lists]."""
        incomplete = frozenset({"peers"} if self.partial_peers else ())
        lists = joined_lists(self.joins, self._lists(), incomplete)
        return replace(self, **lists, joins=SETTLED) if lists else self

    def dormant(self, resource: str) -> bool:
        """Return whether the resource needs an agent provider and there is none."""
        return resource in AGENT_RESOURCES and not self.agent_providers

    def edition(self, resources: Iterable[str]) -> tuple[object, ...]:
        """Return a value that changes whenever results of these resources may change.

        The settings must be the same. The value keeps no records in memory.
        """
        return tuple(
            [
                (self.changes.get(name), self.now)
                if name in TIMED_RESOURCES
                else self.changes.get(name)
                for name in resources
            ]
        )

    def detailed_peers(self) -> Iterable[records.Peer]:
        ids = self.detailed_peer_ids()
        peers = self.peers or ()
        return peers if ids is None else [peer for peer in peers if peer.id in ids]

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

    @cached_property  # read after every refresh
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
            n for n, module in PERMISSION_MODULES.items() if self._is_denied(module)
        )

    @cached_property
    def _permissions(self) -> records.Permissions:
        # The list of users may already name another current user.
        for user in self.current_user or ():
            if user.id == self.current_user_id and not user.is_service_user:
                return user.permissions
        return records.Permissions()

    def _is_denied(self, module: str) -> bool:
        # An unknown module is not denied.
        modules = self._permissions.modules or {}
        return modules.get(module, {}).get("read") is False

    @property
    def role(self) -> str:
        """The role of the token's user; "" if it is unknown."""
        me = self.current_user_id
        roles = [u.role for u in self.current_user or () if u.id == me]
        return (roles or [u.role for u in self.users or () if u.id == me] or [""])[0]

    @property
    def service_names(self) -> Mapping[str, str] | None:
        """The names of the reverse proxy's services, by id; None if not known."""
        if self.proxy_services is None:
            return None
        return {service.id: service.name for service in self.proxy_services}

    @property
    def partial_peers(self) -> bool:
        """True if the list of peers may not hold all peers.

        Fact: a human without the permission gets 200 and only their own peers, or none.
        A restricted one with the permission gets all, such as a usage_viewer.
        """
        may_read = (self._permissions.modules or {}).get("peers", {}).get("read")
        if may_read is False or (self._permissions.is_restricted and not may_read):
            return True
        return any(
            user.is_current and not user.is_service_user and user.role == "user"
            for user in self.users or ()
        )
