"""Setup keys. The exporter neither reads nor shows their secrets."""

from collections.abc import Iterator

from msgspec import Struct

from api_exporter.attention.finding import Finder, Finding, FindingKind, Snapshot
from api_exporter.attention.thresholds import DAY, SOON, Lifetime
from api_exporter.collectors.rows import ObjectKind, distinct_count, id_and_name
from api_exporter.exposition.text import timestamp
from api_exporter.formatting import with_noun
from api_exporter.netbird.bodies import ListDecoder
from api_exporter.netbird.records import Choice, Count, Instant, ShownText
from api_exporter.netbird.resources import MINUTE, Resource
from api_exporter.subjects import Subject


class SetupKey(Struct, frozen=True, gc=False, kw_only=True):
    """A key that machines enrol with (`/api/setup-keys`). Its secret is not read.

    Attributes:
        state: that of a revoked key is `expired` after its expiry.
    """

    id: str
    name: ShownText = ""
    type: str = ""
    state: str = ""
    valid: bool = False
    revoked: Choice = None
    ephemeral: bool = False
    used_times: Count = 0
    usage_limit: Count = 0
    expires: Instant = None
    last_used: Instant = None
    auto_groups: tuple[str, ...] | None = None


SETUP_KEYS = Resource(
    "setup_keys",
    "api/setup-keys",
    ListDecoder(SetupKey),
    5 * MINUTE,
    permission="setup_keys",
    place=3,
)

STATES = ("valid", "expired", "revoked", "overused")
"""The states that NetBird is known to send."""

KEY = ObjectKind[SetupKey](SETUP_KEYS, id_and_name("setup_key"))

FAMILIES = (
    KEY.count(
        "netbird_api_setup_keys",
        "Number of setup keys by type, state and whether their peers are ephemeral",
        {"key_type": "type", "state": "state", "ephemeral": "ephemeral"},
    ),
    KEY.info(
        "netbird_api_setup_key_info",
        "Properties of a setup key, to join on setup_key_id (always 1)",
        {"key_type": "type", "ephemeral": "ephemeral"},
    ),
    KEY.field(
        "netbird_api_setup_key_valid",
        "Whether machines can enrol with the setup key (1 = yes, 0 = no)",
        "valid",
        alert="0 for a key that automation uses",
    ),
    KEY.field(
        "netbird_api_setup_key_expiration_timestamp_seconds",
        "Time when the setup key expires, in seconds since 1970 (absent if never)",
        "expires",
        timestamp,
        alert="a valid key that expires within days",
    ),
    KEY.field(
        "netbird_api_setup_key_last_used_timestamp_seconds",
        "Time when a machine last enrolled with the setup key, in seconds since 1970"
        " (absent if never)",
        "last_used",
        timestamp,
        alert="use of a key that should be idle",
    ),
    KEY.field(
        "netbird_api_setup_key_auto_groups",
        "Number of groups that peers join when they enrol with the setup key",
        "auto_groups",
        distinct_count,
    ),
    KEY.field(
        "netbird_api_setup_key_used_times",
        "Number of times that machines have enrolled with the setup key",
        "used_times",
    ),
    KEY.each(
        "netbird_api_setup_key_usage_limit",
        "Number of times that machines may enrol with the setup key (absent if"
        " unlimited)",
        "setup-keys[].usage_limit",
        lambda k: k.usage_limit or None,
        alert="netbird_api_setup_key_used_times close to it",
    ),
    KEY.states(
        "netbird_api_setup_key_state",
        "Whether the setup key is in this state (1 = yes, 0 = no)",
        "state",
        "state",
        STATES,
        alert="1 for overused, or for expired if the key is still in use",
    ),
)


EXPIRES_SOON = FindingKind(
    "NetBirdSetupKeyExpiresSoon",
    "Setup key",
    "setup_key",
    lasts="1h",
    summary="Setup key {{ $labels.setup_key }} expires soon",
    description="Setup key {{ $labels.setup_key }} expires soon, or has expired:"
    " machines used this key recently.",
)
USED_UP = FindingKind(
    "NetBirdSetupKeyNearlyUsedUp",
    "Setup key",
    "setup_key",
    lasts="15m",
    summary="Setup key {{ $labels.setup_key }} is used up, or nearly",
    description="Machines have used all uses of setup key {{ $labels.setup_key }}, or"
    " nearly all.",
)


def findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Report the expiry of keys in use, and reusable keys that are used up."""
    days, share = snapshot.thresholds.days, snapshot.thresholds.shares["setup_key_used"]
    for key in SETUP_KEYS.of(snapshot.inventory) or ():
        if key.type != "reusable" or key.revoked or key.state == "revoked":
            continue
        used = timestamp(key.last_used)
        in_use = used is not None and snapshot.now - used < days["in_use"] * DAY
        end = timestamp(key.expires)
        # The NetBird API does not say when a key was created.
        life = None if end is None else Lifetime(None, end)
        limit = days["setup_key_soon"] * DAY
        if in_use and life and life.is_near_end(snapshot.now, limit, SOON):
            state = "expires soon" if life.ends_at > snapshot.now else "has expired"
            yield snapshot.finding(
                EXPIRES_SOON,
                f"{state}: machines used this key recently.",
                key,
                until=end,
            )
        spent = key.usage_limit and key.used_times / key.usage_limit >= share
        nearly = "nearly " if key.used_times < key.usage_limit else ""
        if spent and (in_use or key.state == "valid"):
            yield snapshot.finding(
                USED_UP,
                f"is {nearly}used up: {key.used_times:,} of"
                f" {with_noun(key.usage_limit, 'use')}.",
                key,
                since=used,
            )


FINDERS = (Finder(findings, (EXPIRES_SOON, USED_UP), ("setup_keys",)),)

SUBJECT = Subject(__name__, (SETUP_KEYS,), FAMILIES, FINDERS)
