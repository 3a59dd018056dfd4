"""Keys that machines enrol with."""

from collections.abc import Iterator

from api_exporter.exposition.text import (
    Family,
    Labels,
    Metric,
    boolean,
    counted,
    labels,
    timestamp,
)
from api_exporter.netbird.records import Instant, SetupKey

KEYS = Metric(
    name="netbird_setup_keys",
    help="Number of setup keys by type and state.",
    source="setup-keys[].type, setup-keys[].state",
)
VALID = Metric(
    name="netbird_setup_keys_valid",
    help="Number of setup keys by whether machines can enrol with them.",
    source="setup-keys[].valid",
)
REVOKED = Metric(
    name="netbird_setup_keys_revoked",
    help="Number of setup keys by whether they are revoked.",
    source="setup-keys[].revoked",
)
EPHEMERAL = Metric(
    name="netbird_setup_keys_ephemeral",
    help="Number of setup keys by whether their peers are ephemeral.",
    source="setup-keys[].ephemeral",
)
USED_TIMES = Metric(
    name="netbird_setup_key_used_times",
    help="How often the key has been used so far.",
    source="setup-keys[].used_times",
)
USAGE_LIMIT = Metric(
    name="netbird_setup_key_usage_limit",
    help="How often the key may be used; 0 when unlimited.",
    source="setup-keys[].usage_limit",
)
EXPIRES = Metric(
    name="netbird_setup_key_expires_timestamp",
    help="When the key expires; absent when never.",
    source="setup-keys[].expires",
)
LAST_USED = Metric(
    name="netbird_setup_key_last_used_timestamp",
    help="When a machine last enrolled with the key; absent when never.",
    source="setup-keys[].last_used",
)
INFO = Metric(
    name="netbird_setup_key_info",
    help="Properties of a setup key. Always 1.",
    source="setup-keys[]",
)
AUTO_GROUPS = Metric(
    name="netbird_setup_key_auto_groups_count",
    help="Number of groups that are given to peers that enrol with the key.",
    source="setup-keys[].auto_groups",
)


def families(keys: tuple[SetupKey, ...]) -> Iterator[Family]:
    yield counted(KEYS, (labels(type=key.type, state=key.state) for key in keys))
    yield counted(VALID, (labels(valid=boolean(key.valid)) for key in keys))
    yield counted(REVOKED, (labels(revoked=boolean(key.revoked)) for key in keys))
    yield counted(EPHEMERAL, (labels(ephemeral=boolean(key.ephemeral)) for key in keys))
    yield Family(USED_TIMES, ((_labels(key), key.used_times) for key in keys))
    yield Family(USAGE_LIMIT, ((_labels(key), key.usage_limit) for key in keys))
    yield _instants(EXPIRES, ((key, key.expires) for key in keys))
    yield _instants(LAST_USED, ((key, key.last_used) for key in keys))
    yield Family(
        INFO,
        (
            (
                labels(
                    key_id=key.id, key_name=key.name, type=key.type, state=key.state
                ),
                1,
            )
            for key in keys
        ),
    )
    yield Family(
        AUTO_GROUPS, ((_labels(key), len(key.auto_groups or ())) for key in keys)
    )


def _instants(metric: Metric, instants: Iterator[tuple[SetupKey, Instant]]) -> Family:
    return Family(
        metric,
        (
            (_labels(key), int(seconds))
            for key, instant in instants
            if (seconds := timestamp(instant)) is not None
        ),
    )


def _labels(key: SetupKey) -> Labels:
    return labels(key_id=key.id, key_name=key.name)
