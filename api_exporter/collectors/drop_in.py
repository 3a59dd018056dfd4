"""Metrics of netbird-api-exporter 0.2.4 under their own names, for its dashboards and
alerts. `migrating.md` says what differs.
"""

# Names, labels and values are that program's, so none of our rules for them holds here.
# Users' lists carry no permissions: nobody is restricted, and there is no
# `user_permissions`. There is no `peer_accessible_peers_count`, which was never set.

from collections.abc import Iterable, Iterator

from api_exporter.collectors.rows import (
    ObjectKind,
    in_one_step,
    length,
    personal,
    unknown,
)
from api_exporter.exposition.text import Labels, boolean, counted, halves, labels, whole
from api_exporter.netbird.bodies import Body, Listing
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    DnsSettings,
    Group,
    GroupedPeer,
    NameserverGroup,
    Network,
    Peer,
    Policy,
    Route,
    SetupKey,
    User,
)

BODIES: dict[str, Body] = {
    "peers": Listing(GroupedPeer, nullable=False, cut_times=True),
    "users": Listing(User, cut_times=True),
    "setup_keys": Listing(SetupKey, cut_times=True),
}
"""Peers with the groups that they name, and times whose seconds are Go's."""

PEERS = ObjectKind[Peer]("peers", "peers[]")
DETAILED = ObjectKind[Peer]("peers", "peers[]", find=Inventory.detailed, in_blocks=True)
GROUPS = ObjectKind[Group](
    "groups",
    "groups[]",
    lambda g: labels(group_id=g.id, group_name=g.name, issued=g.issued),
)
USERS = ObjectKind[User]("users", "users[]", in_blocks=True)
NAMESERVERS = ObjectKind[NameserverGroup](
    "nameservers",
    "dns/nameservers[]",
    lambda group: labels(group_id=group.id, group_name=group.name),
)
DNS_SETTINGS = ObjectKind[DnsSettings]("dns_settings", "dns/settings")
NETWORKS = ObjectKind[Network](
    "networks",
    "networks[]",
    lambda network: labels(network_id=network.id, network_name=network.name),
)
KEYS = ObjectKind[SetupKey](
    "setup_keys", "setup-keys[]", lambda k: labels(key_id=k.id, key_name=k.name)
)
POLICIES = ObjectKind[Policy](
    "policies",
    "policies[]",
    lambda policy: labels(policy_id=policy.id, policy_name=policy.name),
)
ROUTES = ObjectKind[Route]("routes", "routes[]")


def _last_seen(kinds: frozenset[str], peer: Peer) -> Labels:
    return labels(
        peer_id=peer.id,
        peer_name=peer.name,
        hostname=peer.hostname if "hostname" in kinds else "",
        user_id=peer.user_id,
    )


Place = tuple[str, str]
"""A country's code, and a city where that may be told."""


@in_one_step
def _places(inventory: Inventory) -> Iterable[Place]:
    told = "city" in inventory.personal
    return (
        (p.country_code, p.city_name if told else "")
        if p.country_code
        else ("unknown", "unknown" if told else "")
        for p in inventory.peers or ()
    )


PLACES = ObjectKind[Place]("peers", "peers[]", find=_places)


def _groups(peers: Iterable[Peer]) -> Iterator[tuple[str, str]]:
    """Ids and names of the peers' groups; what a peer names twice counts once."""
    for peer in peers:
        groups = peer.groups or () if isinstance(peer, GroupedPeer) else ()
        for id_, name in {group.id: group.name for group in groups}.items():
            if id_:
                yield id_, name


def _user(kinds: frozenset[str], user: User) -> Labels:
    return labels(
        user_id=user.id,
        user_email=user.email if "email" in kinds else "",
        user_name=user.name if "name" in kinds else "",
    )


ROWS = (
    PEERS.total("netbird_peers", "Number of peers"),
    PEERS.halves(
        "netbird_peers_connected",
        "Number of peers by whether they are connected",
        "connected",
    ),
    DETAILED.joined(
        "netbird_peer_last_seen_timestamp",
        "Time when the peer was last seen, in seconds since 1970 (absent if never)",
        "peers[].last_seen",
        personal,
        lambda _, peer: whole(peer.last_seen),
        labels=_last_seen,
        of_peer=True,
    ),
    PEERS.count(
        "netbird_peers_by_os",
        "Number of peers by operating system, its version included",
        {"os": "os"},
        unknown,
    ),
    PLACES.family(
        "netbird_peers_by_country",
        "Number of peers by country, and by city with EXPOSE_PERSONAL_DATA",
        "peers[].country_code, peers[].city_name",
        lambda metric, places: counted(
            metric,
            places,
            lambda place: labels(country_code=place[0], city_name=place[1]),
        ),
    ),
    PEERS.family(
        "netbird_peers_by_group",
        "Number of peers by group, from the groups of each peer",
        "peers[].groups[].{id,name}",
        lambda metric, peers: counted(
            metric,
            _groups(peers),
            lambda group: labels(group_id=group[0], group_name=group[1]),
        ),
    ),
    PEERS.halves(
        "netbird_peers_ssh_enabled",
        "Number of peers by whether the SSH server is enabled",
        "ssh_enabled",
    ),
    PEERS.halves(
        "netbird_peers_login_expired",
        "Number of peers by whether their login has expired",
        "login_expired",
    ),
    PEERS.halves(
        "netbird_peers_approval_required",
        "Number of peers by whether they wait for approval",
        "approval_required",
    ),
    DETAILED.each(
        "netbird_peer_connection_status_by_name",
        "Whether the peer is connected (1 = yes, 0 = no), also as a label",
        "peers[].connected",
        lambda peer: int(peer.connected),
        labels=lambda p: labels(
            peer_name=p.name,
            peer_id=p.id,
            user_id=p.user_id or "unknown",
            connected=boolean(p.connected),
        ),
        of_peer=True,
    ),
    GROUPS.total("netbird_groups", "Number of groups"),
    GROUPS.field(
        "netbird_group_peers_count",
        "Number of peers in the group, as NetBird counts them",
        "peers_count",
    ),
    GROUPS.field(
        "netbird_group_resources_count",
        "Number of network resources in the group, as NetBird counts them",
        "resources_count",
    ),
    GROUPS.each("netbird_group_info", "Properties of a group (always 1)", "groups[]"),
    GROUPS.family(
        "netbird_group_resources_by_type",
        "Number of network resources in the group by type",
        "groups[].resources[].type",
        lambda metric, groups: counted(
            metric,
            (
                labels(group_id=g.id, group_name=g.name, resource_type=found.type)
                for g in groups
                for found in g.resources or ()
            ),
        ),
    ),
    USERS.total("netbird_users", "Number of users, service users included"),
    USERS.count(
        "netbird_users_by_role", "Number of users by role", {"role": "role"}, unknown
    ),
    USERS.count(
        "netbird_users_by_status",
        "Number of users by status",
        {"status": "status"},
        unknown,
    ),
    USERS.count(
        "netbird_users_by_issued",
        "Number of users by source",
        {"issued": "issued"},
        lambda issued: "unknown" if issued is None else issued,
    ),
    USERS.halves(
        "netbird_users_service_users",
        "Number of users by whether they are service users",
        "is_service_user",
    ),
    USERS.halves(
        "netbird_users_blocked",
        "Number of users by whether they are blocked",
        "is_blocked",
    ),
    USERS.family(
        "netbird_users_restricted",
        "Number of users by whether they are restricted (the NetBird API does not list"
        " it, so all are false)",
        "users[]",
        lambda metric, users: halves("is_restricted", metric, (False for _ in users)),
    ),
    USERS.joined(
        "netbird_user_last_login_timestamp",
        "Time when the user last logged in, in seconds since 1970 (absent if never)",
        "users[].last_login",
        personal,
        lambda _, user: whole(user.last_login),
        labels=_user,
    ),
    USERS.joined(
        "netbird_user_auto_groups_count",
        "Number of groups that new peers of the user join",
        "users[].auto_groups",
        personal,
        lambda _, user: length(user.auto_groups),
        labels=_user,
    ),
    NAMESERVERS.total("netbird_dns_nameserver_groups", "Number of nameserver groups"),
    NAMESERVERS.count(
        "netbird_dns_nameserver_groups_enabled",
        "Number of nameserver groups by whether they are enabled",
        {"enabled": "enabled"},
    ),
    NAMESERVERS.count(
        "netbird_dns_nameserver_groups_primary",
        "Number of nameserver groups by whether they are primary",
        {"primary": "primary"},
    ),
    NAMESERVERS.field(
        "netbird_dns_nameserver_group_domains_count",
        "Number of domains that the nameserver group resolves (0 = all domains)",
        "domains",
        length,
    ),
    NAMESERVERS.field(
        "netbird_dns_nameservers",
        "Number of nameservers in the nameserver group",
        "nameservers",
        length,
    ),
    NAMESERVERS.count(
        "netbird_dns_nameservers_by_type",
        "Number of nameservers in all nameserver groups by protocol",
        {"ns_type": "ns_type"},
        elements=lambda group: group.nameservers or (),
        source="dns/nameservers[].nameservers[].ns_type",
    ),
    NAMESERVERS.count(
        "netbird_dns_nameservers_by_port",
        "Number of nameservers in all nameserver groups by port",
        {"port": "port"},
        elements=lambda group: group.nameservers or (),
        source="dns/nameservers[].nameservers[].port",
    ),
    DNS_SETTINGS.field(
        "netbird_dns_management_disabled_groups_count",
        "Number of groups whose DNS NetBird does not manage",
        "disabled_management_groups",
        length,
    ),
    NETWORKS.total("netbird_networks", "Number of networks"),
    NETWORKS.field(
        "netbird_network_routers_count",
        "Number of the network's routers",
        "routers",
        length,
    ),
    NETWORKS.field(
        "netbird_network_resources_count",
        "Number of the network's resources",
        "resources",
        length,
    ),
    NETWORKS.field(
        "netbird_network_policies_count",
        "Number of policies that give access to the network",
        "policies",
        length,
    ),
    NETWORKS.field(
        "netbird_network_routing_peers_count",
        "Number of the network's routing peers, as NetBird counts them",
        "routing_peers_count",
    ),
    NETWORKS.each(
        "netbird_network_info",
        "Properties of a network (always 1)",
        "networks[]",
        labels=lambda n: labels(
            network_id=n.id, network_name=n.name, description=n.description
        ),
    ),
    KEYS.count(
        "netbird_setup_keys",
        "Number of setup keys by type and state",
        {"type": "type", "state": "state"},
    ),
    KEYS.count(
        "netbird_setup_keys_valid",
        "Number of setup keys by whether machines can enrol with them",
        {"valid": "valid"},
    ),
    KEYS.count(
        "netbird_setup_keys_revoked",
        "Number of setup keys by whether they are revoked",
        {"revoked": "revoked"},
    ),
    KEYS.count(
        "netbird_setup_keys_ephemeral",
        "Number of setup keys by whether their peers are ephemeral",
        {"ephemeral": "ephemeral"},
    ),
    KEYS.field(
        "netbird_setup_key_used_times",
        "Number of times that machines have enrolled with the setup key",
        "used_times",
    ),
    KEYS.field(
        "netbird_setup_key_usage_limit",
        "Number of times that machines may enrol with the setup key (0 = unlimited)",
        "usage_limit",
    ),
    KEYS.field(
        "netbird_setup_key_expires_timestamp",
        "Time when the setup key expires, in seconds since 1970 (absent if never)",
        "expires",
        whole,
    ),
    KEYS.field(
        "netbird_setup_key_last_used_timestamp",
        "Time when a machine last enrolled with the setup key, in seconds since 1970"
        " (absent if never)",
        "last_used",
        whole,
    ),
    KEYS.each(
        "netbird_setup_key_info",
        "Properties of a setup key (always 1)",
        "setup-keys[]",
        labels=lambda k: labels(
            key_id=k.id, key_name=k.name, type=k.type, state=k.state
        ),
    ),
    KEYS.field(
        "netbird_setup_key_auto_groups_count",
        "Number of groups that peers join when they enrol with the setup key",
        "auto_groups",
        length,
    ),
    POLICIES.count(
        "netbird_policies",
        "Number of policies by whether they are enabled",
        {"enabled": "enabled"},
    ),
    POLICIES.field(
        "netbird_policy_rules_count", "Number of the policy's rules", "rules", length
    ),
    POLICIES.count(
        "netbird_policy_rules_enabled",
        "Number of policy rules by whether they are enabled",
        {"enabled": "enabled"},
        elements=lambda policy: policy.rules or (),
        source="policies[].rules[].enabled",
    ),
    POLICIES.count(
        "netbird_policy_rules_by_protocol",
        "Number of policy rules by protocol",
        {"protocol": "protocol"},
        elements=lambda policy: policy.rules or (),
        source="policies[].rules[].protocol",
    ),
    POLICIES.count(
        "netbird_policy_rules_by_action",
        "Number of policy rules by action",
        {"action": "action"},
        elements=lambda policy: policy.rules or (),
        source="policies[].rules[].action",
    ),
    POLICIES.each(
        "netbird_policy_info",
        "Properties of a policy (always 1)",
        "policies[]",
        labels=lambda p: labels(
            policy_id=p.id, policy_name=p.name, description=p.description
        ),
    ),
    ROUTES.count(
        "netbird_routes",
        "Number of routes by whether they are enabled",
        {"enabled": "enabled"},
    ),
    ROUTES.count(
        "netbird_routes_by_network_type",
        "Number of routes by type",
        {"network_type": "network_type"},
    ),
    ROUTES.count(
        "netbird_routes_masquerade",
        "Number of routes by whether they masquerade",
        {"masquerade": "masquerade"},
    ),
    ROUTES.each(
        "netbird_route_info",
        "Properties of a route (always 1)",
        "routes[]",
        labels=lambda r: labels(
            route_id=r.id,
            network_id=r.network_id,
            network_type=r.network_type,
            description=r.description,
        ),
    ),
)
