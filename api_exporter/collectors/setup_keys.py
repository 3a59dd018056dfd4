"""Setup keys. The exporter neither reads nor shows their secrets."""

from api_exporter.collectors.rows import ObjectKind, distinct_count
from api_exporter.exposition.text import boolean, labels, timestamp
from api_exporter.netbird.records import SetupKey

STATES = ("valid", "expired", "revoked", "overused")
"""The states that NetBird is known to send."""

KEYS = ObjectKind[SetupKey](
    "setup_keys", "setup-keys[]", lambda k: labels(setup_key_id=k.id, setup_key=k.name)
)

ROWS = (
    KEYS.count(
        "netbird_api_setup_keys",
        "Number of setup keys by type, state and whether their peers are ephemeral",
        {"key_type": "type", "state": "state", "ephemeral": "ephemeral"},
    ),
    KEYS.each(
        "netbird_api_setup_key_info",
        "Properties of a setup key, to join on setup_key_id (always 1)",
        "setup-keys[]",
        labels=lambda k: labels(
            setup_key_id=k.id,
            setup_key=k.name,
            key_type=k.type,
            ephemeral=boolean(k.ephemeral),
        ),
    ),
    KEYS.field(
        "netbird_api_setup_key_valid",
        "Whether machines can enrol with the setup key (1 = yes, 0 = no)",
        "valid",
        alert="0 for a key that automation uses",
    ),
    KEYS.field(
        "netbird_api_setup_key_expiration_timestamp_seconds",
        "Time when the setup key expires, in seconds since 1970 (absent if never)",
        "expires",
        timestamp,
        alert="a valid key that expires within days",
    ),
    KEYS.field(
        "netbird_api_setup_key_last_used_timestamp_seconds",
        "Time when a machine last enrolled with the setup key, in seconds since 1970"
        " (absent if never)",
        "last_used",
        timestamp,
        alert="use of a key that should be idle",
    ),
    KEYS.field(
        "netbird_api_setup_key_auto_groups",
        "Number of groups that peers join when they enrol with the setup key",
        "auto_groups",
        distinct_count,
    ),
    KEYS.field(
        "netbird_api_setup_key_used_times",
        "Number of times that machines have enrolled with the setup key",
        "used_times",
    ),
    KEYS.each(
        "netbird_api_setup_key_usage_limit",
        "Number of times that machines may enrol with the setup key (absent if"
        " unlimited)",
        "setup-keys[].usage_limit",
        lambda k: k.usage_limit or None,
        alert="netbird_api_setup_key_used_times close to it",
    ),
    KEYS.states(
        "netbird_api_setup_key_state",
        "Whether the setup key is in this state (1 = yes, 0 = no)",
        "state",
        "state",
        STATES,
        alert="1 for overused, or for expired if the key is still in use",
    ),
)
