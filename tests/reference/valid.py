"""The fields of each resource's records, and the rules for valid records."""

from tests.reference.page import MAX_LABEL_BYTES
from tests.reference.shapes import (
    GROUPS,
    NAMED,
    TYPED,
    WORDS,
    Kind,
    either,
    many,
    mapping,
    scalar,
    thing,
)

_SETTINGS = (
    "peer_login_expiration_enabled peer_inactivity_expiration_enabled"
    " regular_users_view_blocked groups_propagation_enabled jwt_groups_enabled"
    " routing_peer_dns_resolution_enabled peer_expose_enabled lazy_connection_enabled"
    " auto_update_always metrics_push_enabled agent_network_only embedded_idp_enabled"
    " local_auth_disabled local_mfa_enabled"
)

_EXTRA = (
    "peer_approval_enabled user_approval_required network_traffic_logs_enabled"
    " network_traffic_packet_counter_enabled"
)

_WAY = either(thing(yes="enabled"), scalar)

_LIMITS = thing(
    token_limit=thing(yes="enabled", counts="group_cap user_cap window_seconds"),
    budget_limit=thing(
        yes="enabled", counts="window_seconds", amounts="group_cap_usd user_cap_usd"
    ),
)

_USAGE = thing(
    "period_start",
    counts="input_tokens output_tokens cached_input_tokens cache_creation_tokens",
    amounts="input_cost_usd output_cost_usd cached_input_cost_usd"
    " cache_creation_cost_usd",
)

RECORDS: dict[str, Kind] = {
    "peers": thing(
        "id user_id",
        "connected ssh_enabled ephemeral login_expired login_expiration_enabled"
        " approval_required",
        times="last_login",
        shown="name dns_label hostname ip ipv6 connection_ip country_code city_name"
        " serial_number os kernel_version version ui_version",
        shown_times="created_at last_seen",
        shown_others={
            "extra_dns_labels": WORDS,
            "local_flags": thing(shown_yes="remote_jobs_allowed"),
        },
    ),
    "accounts": thing(
        "id",
        shown="domain",
        shown_times="created_at",
        settings=thing(
            counts="peer_login_expiration peer_inactivity_expiration",
            shown="network_range",
            shown_yes=_SETTINGS,
            shown_others={"extra": thing(shown_yes=_EXTRA)},
        ),
    ),
    "instance_version": thing(
        "management_current_version",
        "management_update_available",
        shown="management_available_version",
    ),
    "users": thing(
        "id role status",
        "is_current is_service_user is_blocked pending_approval",
        shown="name email issued",
        shown_times="last_login",
        auto_groups=WORDS,
    ),
    "access_tokens": thing(
        "id", times="expiration_date last_used", shown="name", shown_times="created_at"
    ),
    "user_invites": thing(
        "id", "expired", shown="email name role", shown_times="expires_at"
    ),
    "identity_providers": thing("id type", shown="name"),
    "setup_keys": thing(
        "id type state",
        "valid ephemeral",
        "used_times usage_limit",
        "expires last_used",
        shown="name",
        auto_groups=WORDS,
    ),
    "groups": thing(
        "id name",
        shown="issued",
        counts="peers_count resources_count",
        peers=NAMED,
        resources=many(TYPED),
    ),
    "policies": thing(
        "id",
        "enabled",
        shown="name",
        source_posture_checks=WORDS,
        rules=many(
            thing(
                "id action protocol",
                "enabled",
                sources=GROUPS,
                destinations=GROUPS,
                sourceResource=TYPED,
                destinationResource=TYPED,
            )
        ),
    ),
    "posture_checks": thing(
        "id", shown="name", checks=thing(nb_version_check=thing("min_version"))
    ),
    "networks": thing(
        "id", shown="name", routers=WORDS, resources=WORDS, policies=WORDS
    ),
    "network_routers": thing("id peer", "enabled", "metric", peer_groups=WORDS),
    "network_resources": thing(
        "id", "enabled", shown="name type address", groups=GROUPS
    ),
    "routes": thing(
        "id network_id network_type network peer",
        "enabled masquerade",
        domains=WORDS,
        peer_groups=WORDS,
    ),
    "nameservers": thing(
        "id",
        "enabled primary",
        shown="name",
        nameservers=many(thing("ns_type", counts="port")),
        domains=WORDS,
        groups=WORDS,
    ),
    "dns_settings": thing(disabled_management_groups=WORDS),
    "dns_zones": thing("id", "enabled", shown="name domain", records=many(TYPED)),
    "events": thing("id activity_code", times="timestamp"),
    "proxy_services": thing(
        "id mode",
        "enabled private",
        shown="name domain",
        auth=mapping(either(_WAY, many(_WAY))),
        targets=many(thing("access_action", "enabled", shown="path")),
        access_restrictions=thing(allowed_cidrs=WORDS, allowed_countries=WORDS),
        meta=thing("status", shown_times="certificate_issued_at"),
    ),
    "proxy_domains": thing("id type", "validated", shown="domain"),
    "proxy_clusters": thing("address", "online", "connected_proxies"),
    "proxy_tokens": thing(
        "id",
        "revoked",
        times="expires_at last_used",
        shown="name",
        shown_times="created_at",
    ),
    "agent_providers": thing(
        "id", "enabled skip_tls_verification", shown="name provider_id", models=GROUPS
    ),
    "agent_policies": thing(
        "id",
        "enabled",
        shown="name",
        source_groups=WORDS,
        destination_provider_ids=WORDS,
        guardrail_ids=WORDS,
        limits=_LIMITS,
    ),
    "agent_budget_rules": thing(
        "id",
        "enabled",
        shown="name",
        target_groups=WORDS,
        target_users=WORDS,
        limits=_LIMITS,
    ),
    "agent_guardrails": thing("id"),
    "agent_settings": thing(
        yes="enable_log_collection enable_prompt_collection redact_pii dedicated",
        counts="access_log_retention_days",
    ),
    "agent_consumption": thing(
        "dimension_kind dimension_id",
        counts="window_seconds tokens_input tokens_output",
        times="window_start_utc",
        amounts="cost_usd",
    ),
    "agent_usage": _USAGE,
    "agent_usage_earlier": _USAGE,
    "agent_denials": thing(counts="total_records"),
}
"""The fields that are read, by resource."""

OBJECTS = frozenset(
    {"dns_settings", "instance_version", "agent_settings", "agent_denials"}
)
"""Resources that are one object instead of a list."""

FIELDS = {
    "dns_settings": {"disabled_management_groups"},
    "instance_version": {
        "management_current_version",
        "management_available_version",
        "management_update_available",
    },
    "agent_settings": {
        "enable_log_collection",
        "enable_prompt_collection",
        "redact_pii",
        "dedicated",
        "access_log_retention_days",
    },
    "agent_denials": {"total_records"},
}
"""The fields of these objects. An object without any of them is something else."""

IDENTITIES = {
    "proxy_clusters": "address",
    "agent_usage": "period_start",
    "agent_usage_earlier": "period_start",
}
"""Fields that identify records instead of an id. They may be missing."""

ROWS = frozenset({"agent_consumption"})
"""Lists of records without an identity."""

NEVER_NULL = frozenset({"peers", "groups"})
"""Resources whose empty list is never sent as `null`."""


def identity(resource: str) -> str:
    """Return the field that identifies a resource's records."""
    return IDENTITIES.get(resource, "id")


def readable(resource: str, record: object) -> bool:
    """Return whether a record is valid: it has the right types and an identity."""
    if not isinstance(record, dict) or not RECORDS[resource](record):
        return False
    if resource in OBJECTS | ROWS:
        return True
    own = record.get(identity(resource))
    if own is None:
        return resource in IDENTITIES
    return isinstance(own, str) and len(own.encode()) <= MAX_LABEL_BYTES
