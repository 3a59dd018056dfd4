"""Keys that machines enrol with. Their secrets are neither read nor published."""

from collections.abc import Iterator

from api_exporter.collectors.once import Once
from api_exporter.exposition.text import (
    Family,
    Metric,
    boolean,
    counted,
    labels,
    states,
    timestamps,
)
from api_exporter.netbird.inventory import Inventory

READS = ("setup_keys",)

STATES = ("valid", "expired", "revoked", "overused")
"""The states that the upstream is known to send."""

KEYS = Metric(
    name="netbird_api_setup_keys",
    help="Number of setup keys by type, state and whether their peers are ephemeral.",
    source="setup-keys[].type, setup-keys[].state, setup-keys[].ephemeral",
)
INFO = Metric(
    name="netbird_api_setup_key_info",
    help="Properties of a setup key, to be joined by setup_key_id. Always 1.",
    source="setup-keys[]",
)
VALID = Metric(
    name="netbird_api_setup_key_valid",
    help="Whether machines can enrol with the key.",
    source="setup-keys[].valid",
    alert="0 for a key that automation uses",
)
EXPIRATION = Metric(
    name="netbird_api_setup_key_expiration_timestamp_seconds",
    help="When the key expires; absent when never.",
    source="setup-keys[].expires",
    alert="a valid key that expires within days",
)
LAST_USED = Metric(
    name="netbird_api_setup_key_last_used_timestamp_seconds",
    help="When a machine last enrolled with the key; absent when never.",
    source="setup-keys[].last_used",
    alert="use of a key that should be idle",
)
AUTO_GROUPS = Metric(
    name="netbird_api_setup_key_auto_groups",
    help="Number of groups that are given to peers that enrol with the key.",
    source="setup-keys[].auto_groups",
)
USED_TIMES = Metric(
    name="netbird_api_setup_key_used_times",
    help="How often the key has been used so far.",
    source="setup-keys[].used_times",
)
USAGE_LIMIT = Metric(
    name="netbird_api_setup_key_usage_limit",
    help="How often the key may be used; absent when unlimited.",
    source="setup-keys[].usage_limit",
    alert="netbird_api_setup_key_used_times close to it",
)
STATE = Metric(
    name="netbird_api_setup_key_state",
    help="The state that the key is in: 1 for that one, 0 for the others.",
    source="setup-keys[].state",
    alert="1 for overused, or for expired where the key is still wanted",
)


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the setup keys."""
    keys = inventory.setup_keys
    if keys is None:
        return
    yield counted(
        KEYS,
        (
            labels(key_type=k.type, state=k.state, ephemeral=boolean(k.ephemeral))
            for k in keys
        ),
    )
    yield Family(
        INFO,
        (
            (
                labels(
                    setup_key_id=k.id,
                    setup_key=k.name,
                    key_type=k.type,
                    ephemeral=boolean(k.ephemeral),
                ),
                1,
            )
            for k in keys
        ),
    )
    keyed = Once((labels(setup_key_id=k.id, setup_key=k.name), k) for k in keys)
    yield Family(VALID, ((key, int(k.valid)) for key, k in keyed))
    yield timestamps(EXPIRATION, ((key, k.expires) for key, k in keyed))
    yield timestamps(LAST_USED, ((key, k.last_used) for key, k in keyed))
    yield Family(
        AUTO_GROUPS, ((key, len(set(k.auto_groups or ()))) for key, k in keyed)
    )
    yield Family(USED_TIMES, ((key, k.used_times) for key, k in keyed))
    yield Family(
        USAGE_LIMIT, ((key, k.usage_limit) for key, k in keyed if k.usage_limit)
    )
    yield states(STATE, "state", STATES, ((key, k.state) for key, k in keyed))
