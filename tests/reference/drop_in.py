"""The metrics of netbird-api-exporter 0.2.4 under their own names.

Lists inside of records are counted as they are sent, and a yes/no label has only the
values that occur, but for those of peers and of users, which always have both.
"""

from fractions import Fraction
from math import floor

from tests.reference.bodies import Known
from tests.reference.fields import (
    Record,
    distinct,
    flag,
    instant,
    number,
    objects,
    text,
    texts,
)
from tests.reference.joins import has, told_peers
from tests.reference.page import Page, Settings, boolean


def drop_in(known: Known, settings: Settings) -> Page:
    page = Page()
    if has(known, "peers"):
        _peers(page, known, settings)
    if has(known, "groups"):
        _groups(page, known["groups"])
    if has(known, "users"):
        _users(page, known["users"], settings)
    if has(known, "nameservers"):
        _dns(page, known["nameservers"])
    for record in known.get("dns_settings", []):
        page.put(
            "netbird_dns_management_disabled_groups_count",
            len(texts(record, "disabled_management_groups")),
        )
    if has(known, "networks"):
        _networks(page, known["networks"])
    for key in known.get("setup_keys", []):
        _setup_key(page, key)
    for policy in known.get("policies", []):
        _policy(page, policy)
    for route in known.get("routes", []):
        _route(page, route)
    return page


def _peers(page: Page, known: Known, settings: Settings) -> None:
    everybody = known["peers"]
    page.put("netbird_peers", len(everybody))
    for family, field in (
        ("netbird_peers_connected", "connected"),
        ("netbird_peers_ssh_enabled", "ssh_enabled"),
        ("netbird_peers_login_expired", "login_expired"),
        ("netbird_peers_approval_required", "approval_required"),
    ):
        page.halves(family, (flag(peer, field) for peer in everybody), field)
    for peer in everybody:
        page.add("netbird_peers_by_os", 1, os=text(peer, "os") or "unknown")
        code, city = text(peer, "country_code"), text(peer, "city_name")
        if not code:
            code = city = "unknown"
        page.add(
            "netbird_peers_by_country",
            1,
            country_code=code,
            city_name=city if "city" in settings.personal else "",
        )
        for group in distinct(objects(peer, "groups")):
            if not text(group, "id"):
                continue
            page.add(
                "netbird_peers_by_group",
                1,
                group_id=text(group, "id"),
                group_name=text(group, "name"),
            )
    for peer in told_peers(known, settings):
        of = {"peer_id": text(peer, "id"), "peer_name": text(peer, "name")}
        page.put(
            "netbird_peer_last_seen_timestamp",
            _whole(instant(peer, "last_seen")),
            **of,
            hostname=text(peer, "hostname") if "hostname" in settings.personal else "",
            user_id=text(peer, "user_id"),
        )
        page.put(
            "netbird_peer_connection_status_by_name",
            flag(peer, "connected"),
            **of,
            user_id=text(peer, "user_id") or "unknown",
            connected=boolean(flag(peer, "connected")),
        )


def _groups(page: Page, groups: list[Record]) -> None:
    page.put("netbird_groups", len(groups))
    for group in groups:
        own = {"group_id": text(group, "id"), "group_name": text(group, "name")}
        of = {**own, "issued": text(group, "issued")}
        page.put("netbird_group_info", 1, **of)
        page.put("netbird_group_peers_count", number(group, "peers_count"), **of)
        page.put(
            "netbird_group_resources_count", number(group, "resources_count"), **of
        )
        for resource in objects(group, "resources"):
            page.add(
                "netbird_group_resources_by_type",
                1,
                **own,
                resource_type=text(resource, "type"),
            )


def _users(page: Page, users: list[Record], settings: Settings) -> None:
    page.put("netbird_users", len(users))
    for family, label, field in (
        ("netbird_users_service_users", "is_service_user", "is_service_user"),
        ("netbird_users_blocked", "is_blocked", "is_blocked"),
    ):
        page.halves(family, (flag(user, field) for user in users), label)
    page.halves("netbird_users_restricted", (False for _ in users), "is_restricted")
    for user in users:
        page.add("netbird_users_by_role", 1, role=text(user, "role") or "unknown")
        page.add("netbird_users_by_status", 1, status=text(user, "status") or "unknown")
        issued = text(user, "issued") if "issued" in user else "unknown"
        page.add("netbird_users_by_issued", 1, issued=issued)
        of = {
            "user_id": text(user, "id"),
            "user_email": text(user, "email") if "email" in settings.personal else "",
            "user_name": text(user, "name") if "name" in settings.personal else "",
        }
        page.put(
            "netbird_user_last_login_timestamp",
            _whole(instant(user, "last_login")),
            **of,
        )
        page.put(
            "netbird_user_auto_groups_count", len(texts(user, "auto_groups")), **of
        )


def _dns(page: Page, groups: list[Record]) -> None:
    page.put("netbird_dns_nameserver_groups", len(groups))
    for group in groups:
        of = {"group_id": text(group, "id"), "group_name": text(group, "name")}
        for half in ("enabled", "primary"):
            page.add(
                f"netbird_dns_nameserver_groups_{half}",
                1,
                **{half: boolean(flag(group, half))},
            )
        page.put(
            "netbird_dns_nameserver_group_domains_count",
            len(texts(group, "domains")),
            **of,
        )
        servers = objects(group, "nameservers")
        page.put("netbird_dns_nameservers", len(servers), **of)
        for server in servers:
            page.add(
                "netbird_dns_nameservers_by_type", 1, ns_type=text(server, "ns_type")
            )
            page.add(
                "netbird_dns_nameservers_by_port", 1, port=str(number(server, "port"))
            )


def _networks(page: Page, networks: list[Record]) -> None:
    page.put("netbird_networks", len(networks))
    for network in networks:
        of = {"network_id": text(network, "id"), "network_name": text(network, "name")}
        for field in ("routers", "resources", "policies"):
            page.put(f"netbird_network_{field}_count", len(texts(network, field)), **of)
        page.put(
            "netbird_network_routing_peers_count",
            number(network, "routing_peers_count"),
            **of,
        )
        page.put(
            "netbird_network_info", 1, **of, description=text(network, "description")
        )


def _setup_key(page: Page, key: Record) -> None:
    kind = {"type": text(key, "type"), "state": text(key, "state")}
    of = {"key_id": text(key, "id"), "key_name": text(key, "name")}
    page.add("netbird_setup_keys", 1, **kind)
    for half in ("valid", "revoked", "ephemeral"):
        page.add(f"netbird_setup_keys_{half}", 1, **{half: boolean(flag(key, half))})
    page.put("netbird_setup_key_info", 1, **of, **kind)
    values = {
        "used_times": number(key, "used_times"),
        "usage_limit": number(key, "usage_limit"),
        "expires_timestamp": _whole(instant(key, "expires")),
        "last_used_timestamp": _whole(instant(key, "last_used")),
        "auto_groups_count": len(texts(key, "auto_groups")),
    }
    for family, value in values.items():
        page.put(f"netbird_setup_key_{family}", value, **of)


def _policy(page: Page, policy: Record) -> None:
    of = {"policy_id": text(policy, "id"), "policy_name": text(policy, "name")}
    rules = objects(policy, "rules")
    page.add("netbird_policies", 1, enabled=boolean(flag(policy, "enabled")))
    page.put("netbird_policy_rules_count", len(rules), **of)
    page.put("netbird_policy_info", 1, **of, description=text(policy, "description"))
    for rule in rules:
        page.add(
            "netbird_policy_rules_enabled", 1, enabled=boolean(flag(rule, "enabled"))
        )
        page.add("netbird_policy_rules_by_protocol", 1, protocol=text(rule, "protocol"))
        page.add("netbird_policy_rules_by_action", 1, action=text(rule, "action"))


def _route(page: Page, route: Record) -> None:
    kind = text(route, "network_type")
    page.add("netbird_routes", 1, enabled=boolean(flag(route, "enabled")))
    page.add("netbird_routes_by_network_type", 1, network_type=kind)
    page.add(
        "netbird_routes_masquerade", 1, masquerade=boolean(flag(route, "masquerade"))
    )
    page.put(
        "netbird_route_info",
        1,
        route_id=text(route, "id"),
        network_id=text(route, "network_id"),
        network_type=kind,
        description=text(route, "description"),
    )


def _whole(seconds: Fraction | None) -> int | None:
    return None if seconds is None else floor(seconds)
