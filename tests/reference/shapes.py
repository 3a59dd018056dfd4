"""The fields of each resource's records, and the rules for valid records."""

from collections.abc import Callable, Mapping
from itertools import starmap
from types import MappingProxyType

from tests.reference.fields import parse
from tests.reference.page import MAX_LABEL_BYTES

Kind = Callable[[object], bool]

MAX_INTEGER = 2**53
"""The maximum of an integer: a double holds it exactly."""


def a_word(value: object) -> bool:
    return isinstance(value, str)


def a_yes(value: object) -> bool:
    return isinstance(value, bool)


def a_count(value: object) -> bool:
    return isinstance(value, int) and not a_yes(value) and abs(value) <= MAX_INTEGER


def an_amount(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not a_yes(value)
        and abs(float(value)) <= MAX_INTEGER
    )


def a_time(value: object) -> bool:
    try:
        parse(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return True


def scalar(value: object) -> bool:
    return isinstance(value, str | int | float)


def many(kind: Kind) -> Kind:
    return lambda value: isinstance(value, list) and all(map(kind, value))


def either(*kinds: Kind) -> Kind:
    return lambda value: any(kind(value) for kind in kinds)


def mapping(kind: Kind) -> Kind:
    return lambda value: isinstance(value, dict) and all(map(kind, value.values()))


def thing(
    words: str = "",
    yes: str = "",
    counts: str = "",
    times: str = "",
    *,
    amounts: str = "",
    shown: str = "",
    shown_times: str = "",
    shown_yes: str = "",
    shown_others: Mapping[str, Kind] = MappingProxyType({}),
    **others: Kind,
) -> Kind:
    """Return a check of objects with fields of these types; others are not checked.

    The check removes shown fields of another type.
    """
    unneeded = {
        **dict.fromkeys(shown.split(), a_word),
        **dict.fromkeys(shown_times.split(), a_time),
        **dict.fromkeys(shown_yes.split(), a_yes),
        **shown_others,
    }
    kinds = others | {
        name: kind
        for names, kind in (
            (words, a_word),
            (yes, a_yes),
            (counts, a_count),
            (times, a_time),
            (amounts, an_amount),
        )
        for name in names.split()
    }

    def right(name: str, value: object) -> bool:
        return name not in kinds or kinds[name](value)

    def check(value: object) -> bool:
        if not isinstance(value, dict):
            return False
        for name in value.keys() & unneeded.keys():
            if not unneeded[name](value[name]):
                del value[name]
        return all(starmap(right, value.items()))

    return check


_WORDS = many(a_word)
_NAMED = many(thing("id", shown="name"))
_TYPED = thing("id type")
_GROUPS = many(thing("id"))
_WAY = either(thing(yes="enabled"), scalar)

SETTINGS = (
    "peer_login_expiration_enabled peer_inactivity_expiration_enabled"
    " regular_users_view_blocked groups_propagation_enabled jwt_groups_enabled"
    " routing_peer_dns_resolution_enabled peer_expose_enabled lazy_connection_enabled"
    " auto_update_always metrics_push_enabled agent_network_only embedded_idp_enabled"
    " local_auth_disabled local_mfa_enabled"
)
EXTRA = (
    "peer_approval_enabled user_approval_required network_traffic_logs_enabled"
    " network_traffic_packet_counter_enabled"
)
"""The boolean fields of an account's settings, as in `openapi.yml`."""

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
            "extra_dns_labels": _WORDS,
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
            shown_yes=SETTINGS,
            shown_others={"extra": thing(shown_yes=EXTRA)},
        ),
    ),
    "groups": thing(
        "id name",
        shown="issued",
        counts="peers_count resources_count",
        peers=_NAMED,
        resources=many(_TYPED),
    ),
    "users": thing(
        "id role status",
        "is_current is_service_user is_blocked pending_approval",
        shown="name email issued",
        shown_times="last_login",
        auto_groups=_WORDS,
    ),
    "access_tokens": thing(
        "id", times="expiration_date last_used", shown="name", shown_times="created_at"
    ),
    "setup_keys": thing(
        "id type state",
        "valid ephemeral",
        "used_times usage_limit",
        "expires last_used",
        shown="name",
        auto_groups=_WORDS,
    ),
    "networks": thing(
        "id", shown="name", routers=_WORDS, resources=_WORDS, policies=_WORDS
    ),
    "network_routers": thing("id peer", "enabled", "metric", peer_groups=_WORDS),
    "network_resources": thing(
        "id", "enabled", shown="name type address", groups=_GROUPS
    ),
    "routes": thing(
        "id network_id network_type network peer",
        "enabled masquerade",
        domains=_WORDS,
        peer_groups=_WORDS,
    ),
    "policies": thing(
        "id",
        "enabled",
        shown="name",
        source_posture_checks=_WORDS,
        rules=many(
            thing(
                "id action protocol",
                "enabled",
                sources=_GROUPS,
                destinations=_GROUPS,
                sourceResource=_TYPED,
                destinationResource=_TYPED,
            )
        ),
    ),
    "posture_checks": thing(
        "id", shown="name", checks=thing(nb_version_check=thing("min_version"))
    ),
    "nameservers": thing(
        "id",
        "enabled primary",
        shown="name",
        nameservers=many(thing("ns_type", counts="port")),
        domains=_WORDS,
        groups=_WORDS,
    ),
    "dns_settings": thing(disabled_management_groups=_WORDS),
    "dns_zones": thing("id", "enabled", shown="name domain", records=many(_TYPED)),
    "proxy_services": thing(
        "id mode",
        "enabled private",
        shown="name domain",
        auth=mapping(either(_WAY, many(_WAY))),
        targets=many(thing("access_action", "enabled", shown="path")),
        access_restrictions=thing(allowed_cidrs=_WORDS, allowed_countries=_WORDS),
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
    "instance_version": thing(
        "management_current_version",
        "management_update_available",
        shown="management_available_version",
    ),
    "events": thing("id activity_code", times="timestamp"),
    "user_invites": thing(
        "id", "expired", shown="email name role", shown_times="expires_at"
    ),
    "identity_providers": thing("id type", shown="name"),
    "agent_providers": thing(
        "id", "enabled skip_tls_verification", shown="name provider_id", models=_GROUPS
    ),
    "agent_policies": thing(
        "id",
        "enabled",
        shown="name",
        source_groups=_WORDS,
        destination_provider_ids=_WORDS,
        guardrail_ids=_WORDS,
        limits=_LIMITS,
    ),
    "agent_budget_rules": thing(
        "id",
        "enabled",
        shown="name",
        target_groups=_WORDS,
        target_users=_WORDS,
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
