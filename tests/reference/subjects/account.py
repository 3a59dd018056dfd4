"""The account's settings, and the version of the management server."""

import re

from tests.reference.fields import Known, flag, instant, number, part, text
from tests.reference.page import Page, Settings
from tests.reference.shapes import thing

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


RECORDS = {
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
    "instance_version": thing(
        "management_current_version",
        "management_update_available",
        shown="management_available_version",
    ),
}


def account(page: Page, known: Known, _settings: Settings) -> None:
    for record in known.get("accounts", []):
        id_ = text(record, "id")
        settings = part(record, "settings")
        page.put("account_info", 1, account_id=id_, domain=text(record, "domain"))
        values = {
            "created_timestamp_seconds": instant(record, "created_at"),
            "network_addresses": _addresses(text(settings, "network_range")),
        }
        for of in ("login", "inactivity"):
            field = f"peer_{of}_expiration"
            values[f"{field}_enabled"] = flag(settings, f"{field}_enabled")
            values[f"{field}_seconds"] = number(settings, field)
        for family, value in values.items():
            page.put(f"account_{family}", value, account_id=id_)
        for prefix, part_, names in (
            ("", settings, SETTINGS),
            ("extra.", part(settings, "extra"), EXTRA),
        ):
            for name in names.split():
                if name in part_:
                    setting = {"account_id": id_, "setting": prefix + name}
                    page.put("account_setting_enabled", flag(part_, name), **setting)
    for server in known.get("instance_version", []):
        available = flag(server, "management_update_available")
        version = text(server, "management_current_version")
        page.put("management_info", 1, version=version)
        page.put("management_update_available", available)
        newer = text(server, "management_available_version")
        if available and newer:
            page.put("management_available_info", 1, version=newer)


def _addresses(network: str) -> int | None:
    """Return the number of peers' addresses in an IPv4 range; None for other texts."""
    byte = "(0|[1-9][0-9]*)"
    match = re.fullmatch(rf"{byte}\.{byte}\.{byte}\.{byte}/([0-9]+)", network)
    if match is None or int(match[5]) > 32:
        return None
    if any(int(match[place]) > 255 for place in (1, 2, 3, 4)):
        return None
    return max(0, (1 << 32 - int(match[5])) - 2)
