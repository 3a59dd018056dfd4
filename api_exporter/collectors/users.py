"""Users, invites, identity providers, and the exporter's own access tokens."""

from collections.abc import Iterable

from api_exporter.collectors.rows import ObjectKind, distinct_count, personal_kinds
from api_exporter.exposition.text import Labels, boolean, labels, timestamp
from api_exporter.netbird.facts.personal import INVITE, USER, personal_labels
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import AccessToken, IdentityProvider, User, UserInvite

USERS = ObjectKind[User](
    "users", "users[]", lambda user: labels(user_id=user.id), in_blocks=True
)


def _info(kinds: frozenset[str], user: User) -> Labels:
    return labels(
        user_id=user.id,
        role=user.role,
        status=user.status,
        service_user=boolean(user.is_service_user),
        issued=user.issued or "",
        **personal_labels(USER, user, kinds),
    )


Token = tuple[str, AccessToken]
"""The id of the token's user, and the token."""


def _tokens(inventory: Inventory) -> Iterable[Token]:
    user, tokens = inventory.current_user_id, inventory.access_tokens or ()
    return [] if user is None else [(user, token) for token in tokens]


ACCESS_TOKENS = ObjectKind[Token](
    "users",
    "users/{current}/tokens[]",
    lambda own: labels(token_id=own[1].id, token=own[1].name, user_id=own[0]),
    find=_tokens,
    needs=("access_tokens",),
)

INVITES = ObjectKind[UserInvite](
    "user_invites", "users/invites[]", lambda invite: labels(user_invite_id=invite.id)
)
IDENTITY_PROVIDERS = ObjectKind[IdentityProvider](
    "identity_providers", "identity-providers[]"
)


def _invite(kinds: frozenset[str], invite: UserInvite) -> Labels:
    return labels(
        user_invite_id=invite.id,
        role=invite.role,
        **personal_labels(INVITE, invite, kinds),
    )


ROWS = (
    USERS.count(
        "netbird_api_users",
        "Number of users by role, status and whether they are service users",
        {"role": "role", "status": "status", "service_user": "is_service_user"},
        alert="more owners or admins than expected",
    ),
    USERS.count_true(
        "netbird_api_users_blocked", "Number of users that are blocked", "is_blocked"
    ),
    USERS.count_true(
        "netbird_api_users_pending_approval",
        "Number of users that wait for approval",
        "pending_approval",
        alert="anything above 0 for long",
    ),
    USERS.joined(
        "netbird_api_user_info",
        "Properties of a user, to join on user_id (always 1)",
        "users[]",
        personal_kinds,
        labels=_info,
    ),
    USERS.field(
        "netbird_api_user_last_login_timestamp_seconds",
        "Time when the user last logged in, in seconds since 1970 (absent if never)",
        "last_login",
        timestamp,
        alert="users who have not logged in for months",
    ),
    USERS.field(
        "netbird_api_user_auto_groups",
        "Number of groups that new peers of the user join",
        "auto_groups",
        distinct_count,
    ),
    ACCESS_TOKENS.each(
        "netbird_api_access_token_expiration_timestamp_seconds",
        "Time when an access token of the exporter's own user expires, in seconds"
        " since 1970",
        "users/{current}/tokens[].expiration_date",
        lambda own: timestamp(own[1].expiration_date),
        alert="14 days before: without a valid token the exporter has no data",
    ),
    ACCESS_TOKENS.each(
        "netbird_api_access_token_last_used_timestamp_seconds",
        "Time when an access token of the exporter's own user was last used, in"
        " seconds since 1970",
        "users/{current}/tokens[].last_used",
        lambda own: timestamp(own[1].last_used),
    ),
    INVITES.count_true_and_false(
        "netbird_api_user_invites",
        "Number of open invites by whether they have expired",
        "expired",
        alert="expired invites: NetBird does not remove them",
    ),
    INVITES.joined(
        "netbird_api_user_invite_info",
        "Properties of an invite, to join on user_invite_id (always 1)",
        "users/invites[]",
        personal_kinds,
        labels=_invite,
    ),
    INVITES.field(
        "netbird_api_user_invite_expiration_timestamp_seconds",
        "Time when the invite expires, in seconds since 1970",
        "expires_at",
        timestamp,
    ),
    IDENTITY_PROVIDERS.count(
        "netbird_api_identity_providers",
        "Number of identity providers by type",
        {"idp_type": "type"},
    ),
    IDENTITY_PROVIDERS.each(
        "netbird_api_identity_provider_info",
        "Properties of an identity provider (always 1)",
        "identity-providers[]",
        labels=lambda provider: labels(
            identity_provider_id=provider.id,
            identity_provider=provider.name,
            idp_type=provider.type,
        ),
    ),
)
