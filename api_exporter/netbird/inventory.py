"""The inventory: the newest records of each resource, and the table of resources."""

from collections.abc import Callable, Container, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.netbird import agent_records, records
from api_exporter.netbird.agent_bodies import (
    Consumption,
    ConsumptionBody,
    Denials,
    DenialsBody,
    Usage,
    UsageBody,
    denials_query,
    midnight,
    usage_query,
    window_end,
)
from api_exporter.netbird.bodies import Body, Document, Listing
from api_exporter.netbird.facts.members import member_ids, named
from api_exporter.netbird.joins import (
    LISTS,
    SETTLED,
    JoinState,
    Reading,
    advance,
    joined,
)

MINUTE = 60.0

R = TypeVar("R")

Known = tuple[R, ...] | None
"""None: not known, or only from too long ago."""


class ApiEndpoint(Struct, frozen=True):
    """Where the upstream has the records of a resource.

    Attributes:
        path: below the upstream's base URL.
        period: seconds between refreshes, unless the settings say otherwise.
        body: decodes it; None for a list of the field's records.
        absence: the message of the JSON 404 with which an upstream too old to know the
            path answers: it takes the last segment for the id of an object; or of
            another refusal that means the same.
        query: what stands behind the path, given what is known and the time.
        ends: when its records begin to tell something else, by the time alone.
        longest: bytes of its body, where fewer than usual are far too many.
        cost: how many times what an answer took has to pass before the next request.
        idle: how many periods pass between two requests while it has no record.
        of: resources without any record of which it has none, either.
    """

    path: str
    period: float = 10 * MINUTE
    body: Body | None = None
    absence: str = ""
    query: "Callable[[Inventory, float], str]" = lambda *_: ""
    ends: "Callable[[Inventory, float], float | None]" = lambda *_: None
    longest: int = 0
    cost: float = 0.0
    idle: float = 1.0
    of: tuple[str, ...] = ()


OF_AGENTS = (
    "agent_policies",
    "agent_budget_rules",
    "agent_guardrails",
    "agent_settings",
    "agent_consumption",
    "agent_usage",
    "agent_denials",
)
"""What is dormant while there is no provider of the Agent Network."""

OF_THE_TIME = frozenset({"agent_consumption", "agent_usage", "agent_denials"})
"""What means something else by the time alone: those with `ends`."""

MODULES = {
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

Without the permission NetBird answers some with 403, and others with 200 and the
objects of the token's user alone. The list of peers is one of the latter. It is
published all the same, because it tells whether the NetBird API works.
"""


class Inventory(Struct, frozen=True, kw_only=True, dict=True):
    """What may be told of the network.

    A field with an ApiEndpoint is a resource. They stand in the order of the first
    round: the peers first.

    Attributes:
        personal: the kinds of personal data that may be told.
        now: when that is told, seconds since the epoch: windows and days end.
        consumption_period: seconds between refreshes of what agents use.
        changes: something new for each resource whenever its records are replaced, or
            those that joins use.
        joins: what joins wait for.
        detail: groups, by name or id, whose peers may have series of their own; None:
            all peers may.
    """

    personal: frozenset[str] = frozenset()
    detail: frozenset[str] | None = None
    now: float = 0.0
    consumption_period: float = 600.0
    peers: Annotated[
        Known[records.Peer],
        ApiEndpoint("api/peers", 30, Listing(records.Peer, nullable=False)),
    ] = None
    # The first one counts.
    accounts: Annotated[
        Known[records.Account],
        ApiEndpoint("api/accounts", 5 * MINUTE, Listing(records.Account, ordered=True)),
    ] = None
    groups: Annotated[
        Known[records.Group],
        ApiEndpoint("api/groups", 5 * MINUTE, Listing(records.Group, nullable=False)),
    ] = None
    setup_keys: Annotated[
        Known[records.SetupKey], ApiEndpoint("api/setup-keys", 5 * MINUTE)
    ] = None
    # Of two that list a resource the last one counts.
    networks: Annotated[
        Known[records.Network],
        ApiEndpoint("api/networks", 5 * MINUTE, Listing(records.Network, ordered=True)),
    ] = None
    network_routers: Annotated[
        Known[records.NetworkRouter],
        ApiEndpoint(
            "api/networks/routers", 5 * MINUTE, absence="network: routers not found"
        ),
    ] = None
    network_resources: Annotated[
        Known[records.NetworkResource],
        ApiEndpoint(
            "api/networks/resources", 5 * MINUTE, absence="network: resources not found"
        ),
    ] = None
    routes: Annotated[Known[records.Route], ApiEndpoint("api/routes", 5 * MINUTE)] = (
        None
    )
    users: Annotated[Known[records.User], ApiEndpoint("api/users")] = None
    access_tokens: Annotated[
        Known[records.AccessToken], ApiEndpoint("api/users/{current_user}/tokens")
    ] = None
    policies: Annotated[Known[records.Policy], ApiEndpoint("api/policies")] = None
    posture_checks: Annotated[
        Known[records.PostureCheck], ApiEndpoint("api/posture-checks")
    ] = None
    nameservers: Annotated[
        Known[records.NameserverGroup], ApiEndpoint("api/dns/nameservers")
    ] = None
    dns_settings: Annotated[
        Known[records.DnsSettings],
        ApiEndpoint("api/dns/settings", body=Document(records.DnsSettings)),
    ] = None
    dns_zones: Annotated[Known[records.DnsZone], ApiEndpoint("api/dns/zones")] = None
    proxy_services: Annotated[
        Known[records.ProxyService], ApiEndpoint("api/reverse-proxies/services")
    ] = None
    proxy_domains: Annotated[
        Known[records.ProxyDomain], ApiEndpoint("api/reverse-proxies/domains")
    ] = None
    proxy_clusters: Annotated[
        Known[records.ProxyCluster],
        ApiEndpoint(
            "api/reverse-proxies/clusters",
            body=Listing(records.ProxyCluster, key="address"),
        ),
    ] = None
    proxy_tokens: Annotated[
        Known[records.ProxyToken], ApiEndpoint("api/reverse-proxies/proxy-tokens")
    ] = None
    instance_version: Annotated[
        Known[records.InstanceVersion],
        ApiEndpoint(
            "api/instance/version", 60 * MINUTE, Document(records.InstanceVersion)
        ),
    ] = None
    events: Annotated[Known[records.AuditEvent], ApiEndpoint("api/events/audit")] = None
    user_invites: Annotated[
        Known[records.UserInvite],
        ApiEndpoint(
            "api/users/invites",
            15 * MINUTE,
            absence="invite links are only available with embedded identity provider",
        ),
    ] = None
    identity_providers: Annotated[
        Known[records.IdentityProvider],
        ApiEndpoint("api/identity-providers", 60 * MINUTE),
    ] = None
    agent_providers: Annotated[
        Known[agent_records.AgentProvider],
        ApiEndpoint("api/agent-network/providers", 15 * MINUTE, idle=2.0),
    ] = None
    agent_policies: Annotated[
        Known[agent_records.AgentPolicy],
        ApiEndpoint("api/agent-network/policies", 15 * MINUTE),
    ] = None
    agent_budget_rules: Annotated[
        Known[agent_records.AgentBudgetRule],
        ApiEndpoint("api/agent-network/budget-rules", 15 * MINUTE),
    ] = None
    agent_guardrails: Annotated[
        Known[agent_records.AgentGuardrail],
        ApiEndpoint("api/agent-network/guardrails", 15 * MINUTE),
    ] = None
    agent_settings: Annotated[
        Known[agent_records.AgentSettings],
        ApiEndpoint(
            "api/agent-network/settings",
            15 * MINUTE,
            Document(agent_records.AgentSettings, nullable=True),
        ),
    ] = None
    # The server reads all of it from its database, and never deletes a row.
    agent_consumption: Annotated[
        Known[Consumption],
        ApiEndpoint(
            "api/agent-network/consumption",
            body=ConsumptionBody(),
            ends=lambda known, now: window_end(known.agent_consumption or (), now),
            longest=32 * 1024 * 1024,
            cost=100.0,
        ),
    ] = None
    agent_usage: Annotated[
        Known[Usage],
        ApiEndpoint(
            "api/agent-network/usage/overview",
            body=UsageBody(),
            query=lambda known, now: usage_query(known.agent_usage or (), now),
            ends=lambda _, now: midnight(now),
        ),
    ] = None
    agent_denials: Annotated[
        Known[Denials],
        ApiEndpoint(
            "api/agent-network/access-logs",
            body=DenialsBody(),
            query=lambda _, now: denials_query(now),
            ends=lambda _, now: midnight(now),
        ),
    ] = None
    access_log: tuple[()] | None = None
    current_user: Known[records.CurrentUser] = None
    changes: Mapping[str, object] = MappingProxyType({})
    joins: JoinState = SETTLED

    def with_(self, resource: str, records: object) -> "Inventory":
        """The same with a resource's records replaced; None forgets them.

        Another current user has other access tokens: those that were known go. So does
        what needs a provider with the last one, and what its permissions withhold.
        """
        after = self._replace({resource: records})
        gone: set[str] = set()
        if resource in {"users", "current_user"}:
            if after.current_user_id != self.current_user_id:
                gone.add("access_tokens")
            gone |= after.withheld
            if after.partial != self.partial:  # joins conclude more, or less
                anew = {name: object() for name in LISTS}
                after = after._changed(anew)
        idle = resource == "agent_providers" and not records
        if idle or "agent_providers" in gone:
            gone.update(OF_AGENTS)
        return after._replace(dict.fromkeys(gone)) if gone else after

    def _replace(self, records: Mapping[str, object]) -> "Inventory":
        changes = {name: object() for name in records}
        return replace(self._changed(changes), **records)

    def _changed(self, changes: Mapping[str, object]) -> "Inventory":
        return replace(self, changes=MappingProxyType({**self.changes, **changes}))

    def settle(
        self, before: "Inventory", resource: str, reading: Reading | None
    ) -> "Inventory":
        """Return the same with what joins wait for after a reading or a withdrawal.

        Args:
            before: the inventory with the resource's records of before.
            reading: None for a withdrawal.
        """
        if resource not in LISTS:
            return self
        state = advance(
            self.joins, resource, getattr(before, resource), self._lists(), reading
        )
        changes = {n: object() for n in LISTS if state.of(n) != self.joins.of(n)}
        if self.partial and self.changes.get(resource) is not before.changes.get(
            resource
        ):  # joins leave out what names an unknown peer, whatever list it is of
            changes = {n: object() for n in LISTS}
        return replace(self._changed(changes), joins=state)

    def _lists(self) -> dict[str, tuple[Any, ...] | None]:
        return {name: getattr(self, name) for name in LISTS}

    @cached_property
    def joined(self) -> "Inventory":
        """The inventory that joins use: see Note [Joined lists]."""
        incomplete = frozenset({"peers"} if self.partial else ())
        lists = joined(self.joins, self._lists(), incomplete)
        return replace(self, **lists, joins=SETTLED) if lists else self

    def dormant(self, resource: str) -> bool:
        """Whether there is nothing to ask for."""
        return resource in OF_AGENTS and not self.agent_providers

    def edition(self, resources: Iterable[str]) -> tuple[object, ...]:
        """The same while all that follows from these is, with the same settings.

        It keeps no records alive.
        """
        return tuple(
            [
                (self.changes.get(name), self.now)
                if name in OF_THE_TIME
                else self.changes.get(name)
                for name in resources
            ]
        )

    def detailed(self) -> Iterable[records.Peer]:
        ids = self.detailed_ids()
        peers = self.peers or ()
        return peers if ids is None else [peer for peer in peers if peer.id in ids]

    def detailed_ids(self) -> Container[str] | None:
        """The ids of these peers; None for all, nobody's while groups are unknown."""
        if self.detail is None:
            return None
        return member_ids(named(self.groups, self.detail))

    @property
    def missing_groups(self) -> tuple[str, ...]:
        """What `detail` names and is no group, as far as the groups are known."""
        if self.detail is None or self.groups is None:
            return ()
        there = {name for group in self.groups for name in (group.id, group.name)}
        return tuple(sorted(self.detail - there))

    @cached_property  # asked for after every round
    def current_user_id(self) -> str | None:
        """The id of the user to whom the exporter's own token belongs.

        Of several the lowest one: the upstream has another order at each reading.
        """
        current = [u.id for u in self.users or () if u.is_current]
        return min(current or [u.id for u in self.current_user or ()], default=None)

    @cached_property
    def withheld(self) -> frozenset[str]:
        """The resources that the token's user may not read, or only in part."""
        return frozenset(n for n, module in MODULES.items() if self._denied(module))

    @cached_property
    def _permissions(self) -> records.Permissions:
        """The permissions of the token's user; empty ones deny nothing.

        The list of users may already name another current user.
        """
        for user in self.current_user or ():
            if user.id == self.current_user_id and not user.is_service_user:
                return user.permissions
        return records.Permissions()

    def _denied(self, module: str) -> bool:
        """Whether the permissions deny a module. An unknown one concludes nothing."""
        modules = self._permissions.modules or {}
        return modules.get(module, {}).get("read") is False

    @property
    def role(self) -> str:
        """The role of the token's user; "" if it is unknown."""
        me = self.current_user_id
        named = [u.role for u in self.current_user or () if u.id == me]
        return (named or [u.role for u in self.users or () if u.id == me] or [""])[0]

    @property
    def service_names(self) -> Mapping[str, str] | None:
        """The names of the reverse proxy's services, by id; None if not known."""
        if self.proxy_services is None:
            return None
        return {service.id: service.name for service in self.proxy_services}

    @property
    def partial(self) -> bool:
        """Whether the list of peers may not hold all of them.

        Fact: a human without the permission gets 200 and only their own peers, or none.
        """
        if self._permissions.is_restricted or self._denied("peers"):
            return True
        return any(
            user.is_current and not user.is_service_user and user.role == "user"
            for user in self.users or ()
        )
