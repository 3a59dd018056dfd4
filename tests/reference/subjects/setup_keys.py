"""Setup keys."""

from tests.reference.fields import Known, flag, ids, instant, number, own, text
from tests.reference.page import Page, Settings, boolean
from tests.reference.shapes import WORDS, thing

RECORDS = {
    "setup_keys": thing(
        "id type state",
        "valid ephemeral",
        "used_times usage_limit",
        "expires last_used",
        shown="name",
        auto_groups=WORDS,
    )
}


STATES = ("valid", "expired", "revoked", "overused")


def setup_keys(page: Page, known: Known, _settings: Settings) -> None:
    for key in known.get("setup_keys", []):
        of = own("setup_key", key)
        type_ = text(key, "type")
        state = text(key, "state")
        ephemeral = boolean(flag(key, "ephemeral"))
        page.add("setup_keys", 1, key_type=type_, state=state, ephemeral=ephemeral)
        values = {
            "valid": flag(key, "valid"),
            "expiration_timestamp_seconds": instant(key, "expires"),
            "last_used_timestamp_seconds": instant(key, "last_used"),
            "auto_groups": len(ids(key, "auto_groups")),
            "used_times": number(key, "used_times"),
            "usage_limit": number(key, "usage_limit") or None,  # 0 is no limit
        }
        page.put("setup_key_info", 1, **of, key_type=type_, ephemeral=ephemeral)
        for family, value in values.items():
            page.put(f"setup_key_{family}", value, **of)
        page.states("setup_key_state", STATES, state, "state", **of)
