"""The names of netbird-api-exporter 0.2.4, from its description."""

PREFIX = "netbird_"

SUBJECTS = ("groups", "users", "networks", "setup_keys", "policies", "routes")

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
    "policy_rules_enabled": "enabled",
    "policy_rules_by_protocol": "protocol",
    "policy_rules_by_action": "action",
    "policy_info": "policy_id policy_name description",
    "routes": "enabled",
    "routes_by_network_type": "network_type",
    "routes_masquerade": "masquerade",
    "route_info": "route_id network_id network_type description",
    **{f"{subject}_scrape_errors_total": "error_type" for subject in SUBJECTS},
}
"""Every family that a rule makes, with its labels."""

WITHOUT_RULE = {
    "peer_accessible_peers_count",
    "user_permissions",
    "policy_rules_count",
    *(f"{subject}_scrape_duration_seconds" for subject in SUBJECTS),
    "exporter_scrape_duration_seconds",
    "exporter_scrape_errors_total",
}
"""Metrics without a value, of scrapes, or without a source in this exporter."""
