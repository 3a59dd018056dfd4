"""What netbird-api-exporter 0.2.4 says of the upstream's answers, written from its
description, and with the differences that we want: the reference for `drop_in`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from tests.collectors.samples import Key

PREFIX = "netbird_"

KEY = "key_id key_name"
GROUP = "group_id group_name"
NETWORK = "network_id network_name"
USER = "user_id user_email user_name"

LABELS = {
    "peers": "",
    "peers_connected": "connected",
    "peer_last_seen_timestamp": "peer_id peer_name hostname user_id",
    "peers_by_os": "os",
    "peers_by_country": "country_code city_name",
    "peers_by_group": GROUP,
    "peers_ssh_enabled": "ssh_enabled",
    "peers_login_expired": "login_expired",
    "peers_approval_required": "approval_required",
    "peer_connection_status_by_name": "peer_name peer_id user_id connected",
    "groups": "",
    "group_peers_count": f"{GROUP} issued",
    "group_resources_count": f"{GROUP} issued",
    "group_info": f"{GROUP} issued",
    "group_resources_by_type": f"{GROUP} resource_type",
    "users": "",
    "users_by_role": "role",
    "users_by_status": "status",
    "users_by_issued": "issued",
    "users_service_users": "is_service_user",
    "users_blocked": "is_blocked",
    "users_restricted": "is_restricted",
    "user_last_login_timestamp": USER,
    "user_auto_groups_count": USER,
    "dns_nameserver_groups": "",
    "dns_nameserver_groups_enabled": "enabled",
    "dns_nameserver_groups_primary": "primary",
    "dns_nameserver_group_domains_count": GROUP,
    "dns_nameservers": GROUP,
    "dns_nameservers_by_type": "ns_type",
    "dns_nameservers_by_port": "port",
    "dns_management_disabled_groups_count": "",
    "networks": "",
    "network_routers_count": NETWORK,
    "network_resources_count": NETWORK,
    "network_policies_count": NETWORK,
    "network_routing_peers_count": NETWORK,
    "network_info": f"{NETWORK} description",
    "setup_keys": "type state",
    "setup_keys_valid": "valid",
    "setup_keys_revoked": "revoked",
    "setup_keys_ephemeral": "ephemeral",
    "setup_key_used_times": KEY,
    "setup_key_usage_limit": KEY,
    "setup_key_expires_timestamp": KEY,
    "setup_key_last_used_timestamp": KEY,
    "setup_key_info": f"{KEY} type state",
    "setup_key_auto_groups_count": KEY,
    "policies": "enabled",
    "policy_rules_count": "policy_id policy_name",
    "policy_rules_enabled": "enabled",
    "policy_rules_by_protocol": "protocol",
    "policy_rules_by_action": "action",
    "policy_info": "policy_id policy_name description",
    "routes": "enabled",
    "routes_by_network_type": "network_type",
    "routes_masquerade": "masquerade",
    "route_info": "route_id network_id network_type description",
}
"""Every family that is published in its place, with its labels."""

SUBJECTS = ("groups", "users", "networks", "setup_keys", "policies", "routes")

OF_SCRAPES = {
    **{f"{subject}_scrape_errors_total": "error_type" for subject in SUBJECTS},
    **{f"{subject}_scrape_duration_seconds": "" for subject in SUBJECTS},
}
"""Counters and histograms, which count refreshes here, with their labels."""

LEFT_OUT = {
    "peer_accessible_peers_count",
    "user_permissions",
    "exporter_scrape_duration_seconds",
    "exporter_scrape_errors_total",
}
"""What never had a value, or counts scrapes that call the API."""

Record = Mapping[str, Any]
Bodies = Mapping[str, Any]
"""JSON values by the name of a resource."""


class Incumbent:
    """Its samples, of all kinds of personal data.

    Attributes:
        samples: values by name and labels.
    """

    def __init__(self, bodies: Bodies) -> None:
        self.samples: dict[Key, float] = {}
        known = {
            name: list({r["id"]: r for r in body or () if r["id"]}.values())
            for name, body in bodies.items()
            if isinstance(body, list) or body is None
        }
        self._peers(known["peers"])
        self._groups(known["groups"])
        self._users(known["users"])
        self._dns(known["nameservers"], bodies["dns_settings"])
        self._networks(known["networks"])
        self._setup_keys(known["setup_keys"])
        self._policies(known["policies"])
        self._routes(known["routes"])

    def _set(self, name: str, value: float | None, *values: str | bool | None) -> None:
        if value is None:
            return
        texts = [str(v).lower() if isinstance(v, bool) else v or "" for v in values]
        labels = zip(LABELS[name].split(), texts, strict=True)
        self.samples[PREFIX + name, frozenset(labels)] = value

    def _count(
        self, name: str, values: Iterable[tuple[str | bool | None, ...]]
    ) -> None:
        for each, count in Counter(values).items():
            self._set(name, count, *each)

    def _both(self, name: str, records: Iterable[Record], key: str) -> None:
        found = Counter(bool(record.get(key)) for record in records)
        for half in (True, False):
            self._set(name, found[half], half)

    def _each(
        self,
        name: str,
        records: Iterable[Record],
        value: Callable[[Record], float | None],
        *keys: str,
    ) -> None:
        for record in records:
            labels = [record.get(key) for key in keys or ("id", "name")]
            self._set(name, value(record), *labels)

    def _peers(self, peers: list[Record]) -> None:
        self._set("peers", len(peers))
        for name, key in {
            "peers_connected": "connected",
            "peers_ssh_enabled": "ssh_enabled",
            "peers_login_expired": "login_expired",
            "peers_approval_required": "approval_required",
        }.items():
            self._both(name, peers, key)
        self._each(
            "peer_last_seen_timestamp",
            peers,
            instant("last_seen"),
            *("id", "name", "hostname", "user_id"),
        )
        self._count("peers_by_os", ((peer.get("os") or "unknown",) for peer in peers))
        self._count(
            "peers_by_country",
            (
                (peer["country_code"], peer.get("city_name"))
                if peer.get("country_code")
                else ("unknown", "unknown")
                for peer in peers
            ),
        )
        self._count(
            "peers_by_group",
            (
                (group["id"], group["name"])
                for peer in peers
                for group in peer.get("groups") or ()
            ),
        )
        for peer in peers:
            connected = bool(peer.get("connected"))
            self._set(
                "peer_connection_status_by_name",
                int(connected),
                peer["name"],
                peer["id"],
                peer.get("user_id") or "unknown",
                connected,
            )

    def _groups(self, groups: list[Record]) -> None:
        self._set("groups", len(groups))
        keys = ("id", "name", "issued")
        self._each("group_peers_count", groups, number("peers_count"), *keys)
        self._each("group_resources_count", groups, number("resources_count"), *keys)
        self._each("group_info", groups, lambda _: 1, *keys)
        self._count(
            "group_resources_by_type",
            (
                (group["id"], group["name"], resource["type"])
                for group in groups
                for resource in group.get("resources") or ()
            ),
        )

    def _users(self, users: list[Record]) -> None:
        self._set("users", len(users))
        self._count("users_by_role", ((u.get("role") or "unknown",) for u in users))
        self._count("users_by_status", ((u.get("status") or "unknown",) for u in users))
        self._count(
            "users_by_issued",
            (("unknown" if u.get("issued") is None else u["issued"],) for u in users),
        )
        self._both("users_service_users", users, "is_service_user")
        self._both("users_blocked", users, "is_blocked")
        self._both("users_restricted", users, "permissions")
        keys = ("id", "email", "name")
        self._each(
            "user_last_login_timestamp",
            users,
            instant("last_login"),
            *keys,
        )
        self._each("user_auto_groups_count", users, length("auto_groups"), *keys)

    def _dns(self, groups: list[Record], settings: Record) -> None:
        self._set("dns_nameserver_groups", len(groups))
        self._count("dns_nameserver_groups_enabled", ((g["enabled"],) for g in groups))
        self._count("dns_nameserver_groups_primary", ((g["primary"],) for g in groups))
        self._each("dns_nameserver_group_domains_count", groups, length("domains"))
        self._each("dns_nameservers", groups, length("nameservers"))
        servers = [s for group in groups for s in group.get("nameservers") or ()]
        self._count("dns_nameservers_by_type", ((s["ns_type"],) for s in servers))
        self._count("dns_nameservers_by_port", ((str(s["port"]),) for s in servers))
        disabled = settings.get("disabled_management_groups") or ()
        self._set("dns_management_disabled_groups_count", len(disabled))

    def _networks(self, networks: list[Record]) -> None:
        self._set("networks", len(networks))
        for key in ("routers", "resources", "policies"):
            self._each(f"network_{key}_count", networks, length(key))
        self._each(
            "network_routing_peers_count", networks, number("routing_peers_count")
        )
        keys = ("id", "name", "description")
        self._each("network_info", networks, lambda _: 1, *keys)

    def _setup_keys(self, keys: list[Record]) -> None:
        self._count("setup_keys", ((key["type"], key["state"]) for key in keys))
        for name in ("valid", "revoked", "ephemeral"):
            self._count(f"setup_keys_{name}", ((bool(key.get(name)),) for key in keys))
        for key in ("used_times", "usage_limit"):
            self._each(f"setup_key_{key}", keys, number(key))
        for key in ("expires", "last_used"):
            self._each(f"setup_key_{key}_timestamp", keys, instant(key))
        self._each(
            "setup_key_info", keys, lambda _: 1, *("id", "name", "type", "state")
        )
        self._each("setup_key_auto_groups_count", keys, length("auto_groups"))

    def _policies(self, policies: list[Record]) -> None:
        self._count("policies", ((policy["enabled"],) for policy in policies))
        self._each("policy_rules_count", policies, length("rules"))
        rules = [rule for policy in policies for rule in policy["rules"] or ()]
        self._count("policy_rules_enabled", ((rule["enabled"],) for rule in rules))
        for key in ("protocol", "action"):
            self._count(f"policy_rules_by_{key}", ((rule[key],) for rule in rules))
        keys = ("id", "name", "description")
        self._each("policy_info", policies, lambda _: 1, *keys)

    def _routes(self, routes: list[Record]) -> None:
        self._count("routes", ((route["enabled"],) for route in routes))
        self._count(
            "routes_by_network_type", ((route["network_type"],) for route in routes)
        )
        self._count("routes_masquerade", ((route["masquerade"],) for route in routes))
        keys = ("id", "network_id", "network_type", "description")
        self._each("route_info", routes, lambda _: 1, *keys)


def length(key: str) -> Callable[[Record], float]:
    """The length of that list of a record."""
    return lambda record: len(record.get(key) or ())


def number(key: str) -> Callable[[Record], float]:
    """That number of a record, 0 where there is none."""
    return lambda record: record.get(key) or 0


def instant(key: str) -> Callable[[Record], int | None]:
    """That time of a record in whole seconds since 1970; None for never."""

    def unix(record: Record) -> int | None:
        text = record.get(key)
        if not text or text < "1970-01-02":
            return None
        zone = "+00:00" if text.endswith("Z") else text[-6:]
        return int(datetime.fromisoformat(text[:19] + zone).timestamp())

    return unix
