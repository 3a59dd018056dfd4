"""The table of resources: each field of the inventory, and its path in the API."""

import math
from collections.abc import Callable
from urllib.parse import quote

from msgspec import Struct

from api_exporter.netbird import agent_records, records
from api_exporter.netbird.agent_bodies import (
    ConsumptionDecoder,
    DenialsDecoder,
    UsageDecoder,
    denials_query,
    next_midnight,
    usage_query,
    window_end,
)
from api_exporter.netbird.bodies import (
    BodyDecoder,
    DocumentDecoder,
    ListDecoder,
    PageDecoder,
)
from api_exporter.netbird.inventory import Inventory
from api_exporter.ports import UpstreamError

UP = "peers"
"""The resource that determines `netbird_api_up`. Every server has it."""

ACCESS_LOG = "access_log"
"""The resource that is requested after all other due resources."""

CURRENT_USER = "current_user"
"""The permissions of the token's user. NetBird refuses them to a service user."""

SERVER_VERSION = "instance_version"
"""The resource that has the version of the server."""

ALWAYS_READ = frozenset({UP, CURRENT_USER, "groups"})
"""Resources that are read even if no collector needs them: service discovery does."""

MINUTE = 60.0

OFF = math.inf
"""The interval of a resource that is not requested."""

PROBE_PATH = "api/health"
"""A path that tests the connection. NetBird lacks it, so 404 is no failure."""

_USER_PLACEHOLDER = "{current_user}"


class Resource(Struct, frozen=True):
    """A path of the NetBird API, and the meaning of its responses.

    Attributes:
        name: the name in labels and settings, and the field of the Inventory.
        path: the path below the API's base URL.
        period: seconds between refreshes, unless the settings change them.
        absence: the message of a refusal that means that the server lacks the path. An
            old server answers JSON 404: it takes the last segment for an object's id.
        query: returns the text behind the path, given the inventory and the time.
        ends: returns when the meaning of its records changes by time alone, or None.
        cost: the minimum time to the next request, in durations of the response.
        idle_periods: periods between two requests while the resource has no record.
        depends_on: resources without any record of which this one has none.
    """

    name: str
    path: str
    decoder: BodyDecoder
    period: float = 10 * MINUTE
    absence: str = ""
    query: Callable[[Inventory, float], str] = lambda *_: ""
    ends: Callable[[Inventory, float], float | None] = lambda *_: None
    cost: float = 0.0
    idle_periods: float = 1.0
    depends_on: tuple[str, ...] = ()

    @property
    def optional(self) -> bool:
        """True if a refusal is expected and no failure."""
        return self.name == CURRENT_USER or _USER_PLACEHOLDER in self.path

    def refused(self, error: UpstreamError) -> bool:
        """Return whether the server knows the path and denies access."""
        if error.unsupported or self.name == UP:
            return False
        if error.reason == "forbidden":
            return True
        if error.server_message == "":  # it is not NetBird's own error
            return False
        if self.name == CURRENT_USER and error.reason == "http_4xx":
            return True
        return self.optional and error.reason == "not_found"

    def request_path(self, inventory: Inventory, now: float) -> str | None:
        """Return the path to request.

        None while the resource is dormant, withheld or pointless, or its path unknown.
        """
        if inventory.dormant(self.name) or self.name in inventory.withheld:
            return None
        if self.pointless(inventory):
            return None
        if _USER_PLACEHOLDER not in self.path:
            return self.path + self.query(inventory, now)
        user = inventory.current_user_id
        if user in {None, ".", ".."}:  # dots would lead to another path
            return None
        return self.path.replace(_USER_PLACEHOLDER, quote(user, safe=""))

    def min_interval(self, record_count: int, period: float, seconds: float) -> float:
        """Return the minimum number of seconds from one request to the next.

        Args:
            seconds: the duration of the response.
        """
        periods = 1.0 if record_count else self.idle_periods
        return max(self.cost * seconds, periods * period)

    def pointless(self, inventory: Inventory) -> bool:
        """Return whether the resource is known to have no records."""
        needed = [getattr(inventory, name) for name in self.depends_on]
        return bool(needed) and not any(needed) and None not in needed

    def absent(self, error: UpstreamError) -> bool:
        """Return whether the error may mean that the server does not know the path."""
        if self.name == UP:  # then something else is wrong
            return False
        return error.unsupported or (
            error.server_message != "" and error.server_message == self.absence
        )


RESOURCES = (
    Resource("peers", "api/peers", ListDecoder(records.Peer, nullable=False), 30),
    # The first account counts.
    Resource(
        "accounts",
        "api/accounts",
        ListDecoder(records.NetBirdAccount, ordered=True),
        5 * MINUTE,
    ),
    Resource(
        "groups", "api/groups", ListDecoder(records.Group, nullable=False), 5 * MINUTE
    ),
    Resource("setup_keys", "api/setup-keys", ListDecoder(records.SetupKey), 5 * MINUTE),
    Resource("networks", "api/networks", ListDecoder(records.Network), 5 * MINUTE),
    Resource(
        "network_routers",
        "api/networks/routers",
        ListDecoder(records.NetworkRouter),
        5 * MINUTE,
        absence="network: routers not found",
    ),
    Resource(
        "network_resources",
        "api/networks/resources",
        ListDecoder(records.NetworkResource),
        5 * MINUTE,
        absence="network: resources not found",
    ),
    Resource("routes", "api/routes", ListDecoder(records.Route), 5 * MINUTE),
    Resource("users", "api/users", ListDecoder(records.User)),
    Resource(
        "access_tokens",
        "api/users/{current_user}/tokens",
        ListDecoder(records.AccessToken),
    ),
    Resource("policies", "api/policies", ListDecoder(records.Policy)),
    Resource("posture_checks", "api/posture-checks", ListDecoder(records.PostureCheck)),
    Resource(
        "nameservers", "api/dns/nameservers", ListDecoder(records.NameserverGroup)
    ),
    Resource("dns_settings", "api/dns/settings", DocumentDecoder(records.DnsSettings)),
    Resource("dns_zones", "api/dns/zones", ListDecoder(records.DnsZone)),
    Resource(
        "proxy_services",
        "api/reverse-proxies/services",
        ListDecoder(records.ProxyService),
    ),
    Resource(
        "proxy_domains", "api/reverse-proxies/domains", ListDecoder(records.ProxyDomain)
    ),
    Resource(
        "proxy_clusters",
        "api/reverse-proxies/clusters",
        ListDecoder(records.ProxyCluster, key="address"),
    ),
    Resource(
        "proxy_tokens",
        "api/reverse-proxies/proxy-tokens",
        ListDecoder(records.ProxyToken),
    ),
    Resource(
        SERVER_VERSION,
        "api/instance/version",
        DocumentDecoder(records.InstanceVersion),
        60 * MINUTE,
    ),
    Resource("events", "api/events/audit", ListDecoder(records.AuditEvent)),
    Resource(
        "user_invites",
        "api/users/invites",
        ListDecoder(records.UserInvite),
        15 * MINUTE,
        absence="invite links are only available with embedded identity provider",
    ),
    Resource(
        "identity_providers",
        "api/identity-providers",
        ListDecoder(records.IdentityProvider),
        60 * MINUTE,
    ),
    Resource(
        "agent_providers",
        "api/agent-network/providers",
        ListDecoder(agent_records.AgentProvider),
        15 * MINUTE,
        idle_periods=2.0,
    ),
    Resource(
        "agent_policies",
        "api/agent-network/policies",
        ListDecoder(agent_records.AgentPolicy),
        15 * MINUTE,
    ),
    Resource(
        "agent_budget_rules",
        "api/agent-network/budget-rules",
        ListDecoder(agent_records.AgentBudgetRule),
        15 * MINUTE,
    ),
    Resource(
        "agent_guardrails",
        "api/agent-network/guardrails",
        ListDecoder(agent_records.AgentGuardrail),
        15 * MINUTE,
    ),
    Resource(
        "agent_settings",
        "api/agent-network/settings",
        DocumentDecoder(agent_records.AgentSettings, nullable=True),
        15 * MINUTE,
    ),
    # NetBird reads all of it from its database, and never deletes a row.
    Resource(
        "agent_consumption",
        "api/agent-network/consumption",
        ConsumptionDecoder(),
        ends=lambda known, now: window_end(known.agent_consumption or (), now),
        cost=100.0,
    ),
    Resource(
        "agent_usage",
        "api/agent-network/usage/overview",
        UsageDecoder(),
        query=lambda known, now: usage_query(known.agent_usage or (), now),
        ends=lambda _, now: next_midnight(now),
    ),
    Resource(
        "agent_denials",
        "api/agent-network/access-logs",
        DenialsDecoder(),
        query=lambda _, now: denials_query(now),
        ends=lambda _, now: next_midnight(now),
    ),
)
"""The resources of collectors, the peers first."""

OTHERS = (
    Resource(CURRENT_USER, "api/users/current", DocumentDecoder(records.CurrentUser)),
    Resource(  # one page, which `events.access_log` chooses
        ACCESS_LOG,
        "api/events/proxy",
        PageDecoder(),
        30,
        depends_on=("proxy_services", "proxy_clusters"),
    ),
)
"""Resources that no collector reads."""

RESOURCE_BY_NAME = {
    resource.name: resource
    for resource in (RESOURCES[0], OTHERS[0], *RESOURCES[1:], *OTHERS[1:])
}
"""In the order of the first requests: permissions before all that they may withhold."""

MAX_BODY_BYTES = {RESOURCE_BY_NAME["agent_consumption"].path: 32 * 1024 * 1024}
"""The maximum size of some bodies in bytes, by path, below the usual maximum."""
