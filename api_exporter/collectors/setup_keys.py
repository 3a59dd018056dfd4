"""Setup keys. Their secrets are neither read nor published."""

from api_exporter.collectors.rows import ObjectKind, distinct
from api_exporter.exposition.text import boolean, labels, timestamp
from api_exporter.netbird.records import SetupKey

STATES = ("valid", "expired", "revoked", "overused")
"""The states that the upstream is known to send."""

KEYS = ObjectKind[SetupKey](
    "setup_keys", "setup-keys[]", lambda k: labels(setup_key_id=k.id, setup_key=k.name)
)

ROWS = (
    KEYS.count(
        "netbird_api_setup_keys",
        "Number of setup keys by type, state and whether their peers are ephemeral.",
        {"key_type": "type", "state": "state", "ephemeral": "ephemeral"},
    ),
    KEYS.each(
        "netbird_api_setup_key_info",
        "Properties of a setup key, to be joined by setup_key_id. Always 1.",
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
        "Whether machines can enrol with the key.",
        "valid",
        alert="0 for a key that automation uses",
    ),
    KEYS.field(
        "netbird_api_setup_key_expiration_timestamp_seconds",
        "When the key expires; absent when never.",
        "expires",
        timestamp,
        alert="a valid key that expires within days",
    ),
    KEYS.field(
        "netbird_api_setup_key_last_used_timestamp_seconds",
        "When a machine last enrolled with the key; absent when never.",
        "last_used",
        timestamp,
        alert="use of a key that should be idle",
    ),
    KEYS.field(
        "netbird_api_setup_key_auto_groups",
        "Number of groups that are given to peers that enrol with the key.",
        "auto_groups",
        distinct,
    ),
    KEYS.field(
        "netbird_api_setup_key_used_times",
        "How often the key has been used so far.",
        "used_times",
    ),
    KEYS.each(
        "netbird_api_setup_key_usage_limit",
        "How often the key may be used; absent when unlimited.",
        "setup-keys[].usage_limit",
        lambda k: k.usage_limit or None,
        alert="netbird_api_setup_key_used_times close to it",
    ),
    KEYS.states(
        "netbird_api_setup_key_state",
        "The state that the key is in: 1 for that one, 0 for the others.",
        "state",
        "state",
        STATES,
        alert="1 for overused, or for expired where the key is still wanted",
    ),
)
