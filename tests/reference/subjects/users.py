"""Users, and the access tokens of the exporter's own user."""

from tests.reference.fields import Known, flag, ids, instant, own, text
from tests.reference.joins import has
from tests.reference.page import Page, Settings, boolean
from tests.reference.shapes import WORDS, thing

RECORDS = {
    "users": thing(
        "id role status",
        "is_current is_service_user is_blocked pending_approval",
        shown="name email issued",
        shown_times="last_login",
        auto_groups=WORDS,
    ),
    "access_tokens": thing(
        "id", times="expiration_date last_used", shown="name", shown_times="created_at"
    ),
    "user_invites": thing(
        "id", "expired", shown="email name role", shown_times="expires_at"
    ),
    "identity_providers": thing("id type", shown="name"),
}


def users(page: Page, known: Known, settings: Settings) -> None:
    _invites(page, known, settings)
    for provider in known.get("identity_providers", []):
        kind = text(provider, "type")
        page.add("identity_providers", 1, idp_type=kind)
        of = own("identity_provider", provider)
        page.put("identity_provider_info", 1, **of, idp_type=kind)
    if not has(known, "users"):
        return
    for family, field in (
        ("users_blocked", "is_blocked"),
        ("users_pending_approval", "pending_approval"),
    ):
        page.put(family, sum(flag(user, field) for user in known["users"]))
    for user in known["users"]:
        id_ = text(user, "id")
        of = {
            "role": text(user, "role"),
            "status": text(user, "status"),
            "service_user": boolean(flag(user, "is_service_user")),
        }
        page.add("users", 1, **of)
        of |= {"issued": text(user, "issued")} | settings.shown(user, "name", "email")
        page.put("user_info", 1, user_id=id_, **of)
        page.time("user_last_login", user, "last_login", user_id=id_)
        page.put("user_auto_groups", len(ids(user, "auto_groups")), user_id=id_)
    current = min(
        (text(user, "id") for user in known["users"] if flag(user, "is_current")),
        default="",
    )
    for token in known.get("access_tokens", []):
        of = {**own("token", token), "user_id": current}
        page.time("access_token_expiration", token, "expiration_date", **of)
        page.time("access_token_last_used", token, "last_used", **of)
    used = [one for one in known.get("access_tokens", []) if instant(one, "last_used")]
    tokens = known.get("access_tokens", [])
    own_tokens = tokens if len(tokens) == 1 else used
    if own_tokens:
        token = max(own_tokens, key=lambda one: instant(one, "last_used") or 0)
        of = {**own("token", token), "user_id": current}
        page.time("own_access_token_expiration", token, "expiration_date", **of)


def _invites(page: Page, known: Known, settings: Settings) -> None:
    if not has(known, "user_invites"):
        return
    page.halves("user_invites", known["user_invites"], "expired")
    for invite in known["user_invites"]:
        of = {"user_invite_id": text(invite, "id")}
        personal = settings.shown(invite, "email", "name")
        page.put("user_invite_info", 1, **of, role=text(invite, "role"), **personal)
        page.time("user_invite_expiration", invite, "expires_at", **of)
