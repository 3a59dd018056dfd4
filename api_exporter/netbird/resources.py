"""The whole traffic to the upstream in one table: what is asked for, and how often."""

from urllib.parse import quote

from msgspec import Struct

from api_exporter.netbird import records
from api_exporter.netbird.bodies import Body, Document, Listing
from api_exporter.netbird.inventory import Inventory
from api_exporter.ports import UpstreamError

MINUTE = 60.0

UP = "peers"
"""The resource that `netbird_api_up` tells of; every upstream has it."""

ALWAYS = frozenset({UP, "groups"})
"""What is read whatever is published: service discovery is made of it."""

PROBE = "api/health"
"""Tries the connection; NetBird has no such path, which is no failure."""

_CURRENT_USER = "{current_user}"


class Resource(Struct, frozen=True):
    """One path of the upstream.

    Attributes:
        name: as in labels and settings, and the field of the Inventory.
        path: below the upstream's base URL.
        body: decodes it.
        period: seconds between refreshes, unless the settings say otherwise.
        absence: the message of the JSON 404 with which an upstream too old to know the
            path answers: it takes the last segment for the id of an object.
    """

    name: str
    path: str
    body: Body
    period: float
    absence: str = ""

    @property
    def optional(self) -> bool:
        """Whether a refusal is to be expected and no failure."""
        return _CURRENT_USER in self.path

    def refused(self, error: UpstreamError) -> bool:
        """Whether the upstream knows the path, and that is all we are to know."""
        if error.unsupported:
            return False
        return self.optional and error.reason in {"forbidden", "not_found"}

    def located(self, inventory: Inventory) -> str | None:
        """The path to ask for; None while what it is made of is unknown."""
        if not self.optional:
            return self.path
        user = inventory.current_user
        if user in {None, ".", ".."}:  # dots would lead to another path
            return None
        return self.path.replace(_CURRENT_USER, quote(user, safe=""))

    def absent(self, error: UpstreamError) -> bool:
        """Whether an upstream that answers so may not know the path."""
        if self.name == UP:  # then something else is wrong
            return False
        return error.unsupported or (error.said != "" and error.said == self.absence)


RESOURCES: tuple[Resource, ...] = (
    Resource(UP, "api/peers", Listing(records.Peer, nullable=False), 30),
    Resource(  # the first one counts
        "accounts",
        "api/accounts",
        Listing(records.Account, ordered=True),
        5 * MINUTE,
    ),
    Resource(
        "groups", "api/groups", Listing(records.Group, nullable=False), 5 * MINUTE
    ),
    Resource("setup_keys", "api/setup-keys", Listing(records.SetupKey), 5 * MINUTE),
    Resource(  # of two that list a resource the last one counts
        "networks",
        "api/networks",
        Listing(records.Network, ordered=True),
        5 * MINUTE,
    ),
    Resource(
        "network_routers",
        "api/networks/routers",
        Listing(records.NetworkRouter),
        5 * MINUTE,
        absence="network: routers not found",
    ),
    Resource(
        "network_resources",
        "api/networks/resources",
        Listing(records.NetworkResource),
        5 * MINUTE,
        absence="network: resources not found",
    ),
    Resource("routes", "api/routes", Listing(records.Route), 5 * MINUTE),
    Resource("users", "api/users", Listing(records.User), 10 * MINUTE),
    Resource(
        "access_tokens",
        f"api/users/{_CURRENT_USER}/tokens",
        Listing(records.AccessToken),
        10 * MINUTE,
    ),
    Resource("policies", "api/policies", Listing(records.Policy), 10 * MINUTE),
    Resource(
        "posture_checks",
        "api/posture-checks",
        Listing(records.PostureCheck),
        10 * MINUTE,
    ),
    Resource(
        "nameservers",
        "api/dns/nameservers",
        Listing(records.NameserverGroup),
        10 * MINUTE,
    ),
    Resource(
        "dns_settings", "api/dns/settings", Document(records.DnsSettings), 10 * MINUTE
    ),
    Resource("dns_zones", "api/dns/zones", Listing(records.DnsZone), 10 * MINUTE),
    Resource(
        "proxy_services",
        "api/reverse-proxies/services",
        Listing(records.ProxyService),
        10 * MINUTE,
    ),
    Resource(
        "proxy_domains",
        "api/reverse-proxies/domains",
        Listing(records.ProxyDomain),
        10 * MINUTE,
    ),
    Resource(
        "proxy_clusters",
        "api/reverse-proxies/clusters",
        Listing(records.ProxyCluster, key="address"),
        10 * MINUTE,
    ),
    Resource(
        "proxy_tokens",
        "api/reverse-proxies/proxy-tokens",
        Listing(records.ProxyToken),
        10 * MINUTE,
    ),
    Resource(
        "instance_version",
        "api/instance/version",
        Document(records.InstanceVersion),
        60 * MINUTE,
    ),
    Resource("events", "api/events/audit", Listing(records.AuditEvent), 10 * MINUTE),
)
"""In the order of the first round: the peers first."""

BY_NAME = {resource.name: resource for resource in RESOURCES}
