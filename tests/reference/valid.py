"""The fields of records that families of several lists need, and which are valid."""

from tests.reference.page import MAX_LABEL_BYTES
from tests.reference.shapes import GROUPS, NAMED, TYPED, WORDS, Kind, many, thing

_LIMITS = thing(
    token_limit=thing(yes="enabled", counts="group_cap user_cap window_seconds"),
    budget_limit=thing(
        yes="enabled", counts="window_seconds", amounts="group_cap_usd user_cap_usd"
    ),
)

RECORDS: dict[str, Kind] = {
    "peers": thing(
        "id user_id",
        "connected ssh_enabled ephemeral login_expired login_expiration_enabled"
        " approval_required",
        times="last_login",
        shown="name version",
    ),
    "accounts": thing(
        "id",
        settings=thing(
            counts="peer_login_expiration peer_inactivity_expiration",
            shown_yes="peer_login_expiration_enabled",
        ),
    ),
    "users": thing(
        "id role status",
        "is_current is_service_user is_blocked pending_approval",
        auto_groups=WORDS,
    ),
    "access_tokens": thing("id", times="expiration_date last_used", shown="name"),
    "groups": thing(
        "id name",
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
    "agent_providers": thing("id", "enabled skip_tls_verification", models=GROUPS),
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
    "agent_denials": thing(counts="total_records"),
}
"""The fields that joins read and those that cost a record, by resource."""

OBJECTS = frozenset({"agent_settings", "agent_denials"})
"""Resources that are one object instead of a list."""

FIELDS = {
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

ROWS = frozenset({"agent_consumption"})
"""Lists of records without an identity."""

NEVER_NULL = frozenset({"peers", "groups"})
"""Resources whose empty list is never sent as `null`."""


def readable(resource: str, record: object) -> bool:
    """Return whether a record is valid: it has the right types and an identity."""
    if not isinstance(record, dict) or not RECORDS[resource](record):
        return False
    if resource in OBJECTS | ROWS:
        return True
    own = record.get("id")
    return isinstance(own, str) and len(own.encode()) <= MAX_LABEL_BYTES
