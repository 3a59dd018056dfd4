"""The account's settings, and the version of the management server."""

import re

from tests.reference.bodies import Known
from tests.reference.fields import flag, instant, number, part, text
from tests.reference.page import Page, Settings
from tests.reference.shapes import EXTRA, SETTINGS


def account(known: Known, _settings: Settings) -> Page:
    page = Page()
    for record in known.get("accounts", []):
        id_ = text(record, "id")
        settings = part(record, "settings")
        page.put(
            "netbird_api_account_info", 1, account_id=id_, domain=text(record, "domain")
        )
        values = {
            "created_timestamp_seconds": instant(record, "created_at"),
            "network_addresses": _addresses(text(settings, "network_range")),
        }
        for of in ("login", "inactivity"):
            field = f"peer_{of}_expiration"
            values[f"{field}_enabled"] = flag(settings, f"{field}_enabled")
            values[f"{field}_seconds"] = number(settings, field)
        for family, value in values.items():
            page.put(f"netbird_api_account_{family}", value, account_id=id_)
        for prefix, part_, names in (
            ("", settings, SETTINGS),
            ("extra.", part(settings, "extra"), EXTRA),
        ):
            for name in names.split():
                if name in part_:
                    page.put(
                        "netbird_api_account_setting_enabled",
                        flag(part_, name),
                        account_id=id_,
                        setting=prefix + name,
                    )
    for server in known.get("instance_version", []):
        available = flag(server, "management_update_available")
        page.put(
            "netbird_api_management_info",
            1,
            version=text(server, "management_current_version"),
        )
        page.put("netbird_api_management_update_available", available)
        newer = text(server, "management_available_version")
        if available and newer:
            page.put("netbird_api_management_available_info", 1, version=newer)
    return page


def _addresses(network: str) -> int | None:
    """Return the number of peers' addresses in an IPv4 range; None for other texts."""
    byte = "(0|[1-9][0-9]*)"
    match = re.fullmatch(rf"{byte}\.{byte}\.{byte}\.{byte}/([0-9]+)", network)
    if match is None or int(match[5]) > 32:
        return None
    if any(int(match[place]) > 255 for place in (1, 2, 3, 4)):
        return None
    return max(0, (1 << 32 - int(match[5])) - 2)
