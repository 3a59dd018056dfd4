"""Users, and the access tokens of the exporter's own user."""

from tests.reference.bodies import Known
from tests.reference.fields import flag, ids, instant, text
from tests.reference.joins import has
from tests.reference.page import Page, Settings, boolean


def users(known: Known, settings: Settings) -> Page:
    page = Page()
    _invites(page, known, settings)
    for provider in known.get("identity_providers", []):
        kind = text(provider, "type")
        page.add("netbird_api_identity_providers", 1, idp_type=kind)
        page.put(
            "netbird_api_identity_provider_info",
            1,
            identity_provider_id=text(provider, "id"),
            identity_provider=text(provider, "name"),
            idp_type=kind,
        )
    if not has(known, "users"):
        return page
    page.put(
        "netbird_api_users_blocked", sum(flag(u, "is_blocked") for u in known["users"])
    )
    page.put(
        "netbird_api_users_pending_approval",
        sum(flag(user, "pending_approval") for user in known["users"]),
    )
    for user in known["users"]:
        id_ = text(user, "id")
        of = {
            "role": text(user, "role"),
            "status": text(user, "status"),
            "service_user": boolean(flag(user, "is_service_user")),
        }
        personal = {
            kind: text(user, kind)
            for kind in ("name", "email")
            if kind in settings.personal
        }
        page.add("netbird_api_users", 1, **of)
        page.put(
            "netbird_api_user_info",
            1,
            user_id=id_,
            **of,
            issued=text(user, "issued"),
            **personal,
        )
        page.put(
            "netbird_api_user_last_login_timestamp_seconds",
            instant(user, "last_login"),
            user_id=id_,
        )
        page.put(
            "netbird_api_user_auto_groups", len(ids(user, "auto_groups")), user_id=id_
        )
    current = min(
        (text(user, "id") for user in known["users"] if flag(user, "is_current")),
        default="",
    )
    for token in known.get("access_tokens", []):
        of = {
            "token_id": text(token, "id"),
            "token": text(token, "name"),
            "user_id": current,
        }
        page.put(
            "netbird_api_access_token_expiration_timestamp_seconds",
            instant(token, "expiration_date"),
            **of,
        )
        page.put(
            "netbird_api_access_token_last_used_timestamp_seconds",
            instant(token, "last_used"),
            **of,
        )
    return page


def _invites(page: Page, known: Known, settings: Settings) -> None:
    if not has(known, "user_invites"):
        return
    invites = known["user_invites"]
    expired = [flag(invite, "expired") for invite in invites]
    page.halves("netbird_api_user_invites", expired, "expired")
    for invite in invites:
        id_ = text(invite, "id")
        personal = {
            kind: text(invite, kind)
            for kind in ("email", "name")
            if kind in settings.personal
        }
        page.put(
            "netbird_api_user_invite_info",
            1,
            user_invite_id=id_,
            role=text(invite, "role"),
            **personal,
        )
        page.put(
            "netbird_api_user_invite_expiration_timestamp_seconds",
            instant(invite, "expires_at"),
            user_invite_id=id_,
        )
