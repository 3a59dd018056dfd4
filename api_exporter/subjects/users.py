"""Users, invites, identity providers, and the exporter's own access tokens."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from api_exporter.attention.finding import Finder, Finding, FindingKind, Snapshot
from api_exporter.attention.thresholds import DAY, HOUR, SOON, VERY_SOON, Lifetime
from api_exporter.collectors.rows import (
    ObjectKind,
    distinct_count,
    id_and_name,
    personal_kinds,
)
from api_exporter.exposition.text import Labels, boolean, labels, timestamp
from api_exporter.netbird.bodies import ListDecoder
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    Instant,
    ShownInstant,
    ShownText,
    User,
    personal_labels,
)
from api_exporter.netbird.resources import CURRENT_USER, MINUTE, Resource
from api_exporter.subjects import Subject


class UserInvite(Struct, frozen=True, gc=False, kw_only=True):
    """An invitation that is not accepted yet (`/api/users/invites`)."""

    id: str
    email: ShownText = ""
    name: ShownText = ""
    role: ShownText = ""
    expired: bool = False
    expires_at: ShownInstant = None


class IdentityProvider(Struct, frozen=True, gc=False, kw_only=True):
    """A provider that authenticates users (`/api/identity-providers`)."""

    id: str
    name: ShownText = ""
    type: str = ""


class AccessToken(Struct, frozen=True, gc=False, kw_only=True):
    """A token of the NetBird API (`/api/users/{id}/tokens`)."""

    id: str
    name: ShownText = ""
    created_at: ShownInstant = None
    expiration_date: Instant = None
    last_used: Instant = None


USERS = Resource("users", "api/users", ListDecoder(User), permission="users")
ACCESS_TOKENS = Resource(
    "access_tokens",
    "api/users/{current_user}/tokens",
    ListDecoder(AccessToken),
    permission="pats",
)
USER_INVITES = Resource(
    "user_invites",
    "api/users/invites",
    ListDecoder(UserInvite),
    15 * MINUTE,
    absence="invite links are only available with embedded identity provider",
    permission="users",
    place=6,
)
IDENTITY_PROVIDERS = Resource(
    "identity_providers",
    "api/identity-providers",
    ListDecoder(IdentityProvider),
    60 * MINUTE,
    permission="identity_providers",
    place=6,
)

USER_FIELDS = {"name": "name", "email": "email"}

INVITE_FIELDS = {"email": "email", "name": "name"}
"""The kind of personal data in fields of a user and of an invite."""

USER = ObjectKind[User](USERS, lambda user: labels(user_id=user.id))


def _info(kinds: frozenset[str], user: User) -> Labels:
    return labels(
        user_id=user.id,
        role=user.role,
        status=user.status,
        service_user=boolean(user.is_service_user),
        issued=user.issued or "",
        **personal_labels(USER_FIELDS, user, kinds),
    )


Token = tuple[str, AccessToken]
"""The id of the token's user, and the token."""


def _tokens(inventory: Inventory) -> Iterable[Token]:
    user, tokens = inventory.current_user_id, ACCESS_TOKENS.of(inventory) or ()
    return [] if user is None else [(user, token) for token in tokens]


def own_token(inventory: Inventory) -> AccessToken | None:
    """Return the exporter's token: the last used one of its user; None if unknown.

    Each request of the exporter updates the time of its use. Of tokens with one time,
    the order of the list does not decide: it may change.
    """
    tokens = ACCESS_TOKENS.of(inventory) or ()
    newest = max(
        tokens, key=lambda t: (timestamp(t.last_used) or 0.0, t.id), default=None
    )
    if newest is None or (len(tokens) > 1 and timestamp(newest.last_used) is None):
        return None
    return newest


def _own_token(inventory: Inventory) -> Iterable[Token]:
    own, user = own_token(inventory), inventory.current_user_id
    return [] if own is None or user is None else [(user, own)]


ACCESS_TOKEN = ObjectKind[Token](
    USERS,
    lambda own: labels(token_id=own[1].id, token=own[1].name, user_id=own[0]),
    find=_tokens,
    needs=("access_tokens",),
)

OWN_TOKEN = ObjectKind[Token](
    USERS, ACCESS_TOKEN.key, find=_own_token, needs=("access_tokens",)
)
INVITE = ObjectKind[UserInvite](
    USER_INVITES, lambda invite: labels(user_invite_id=invite.id)
)

IDENTITY_PROVIDER = ObjectKind[IdentityProvider](
    IDENTITY_PROVIDERS, id_and_name("identity_provider")
)


def _invite(kinds: frozenset[str], invite: UserInvite) -> Labels:
    return labels(
        user_invite_id=invite.id,
        role=invite.role,
        **personal_labels(INVITE_FIELDS, invite, kinds),
    )


FAMILIES = (
    USER.count(
        "netbird_api_users",
        "Number of users by role, status and whether they are service users",
        {"role": "role", "status": "status", "service_user": "is_service_user"},
        alert="more owners or admins than expected",
    ),
    USER.count_true(
        "netbird_api_users_blocked", "Number of users that are blocked", "is_blocked"
    ),
    USER.count_true(
        "netbird_api_users_pending_approval",
        "Number of users that wait for approval",
        "pending_approval",
        alert="anything above 0 for long",
    ),
    USER.joined(
        "netbird_api_user_info",
        "Properties of a user, to join on user_id (always 1)",
        "users[]",
        personal_kinds,
        labels=_info,
    ),
    USER.field(
        "netbird_api_user_last_login_timestamp_seconds",
        "Time when the user last logged in, in seconds since 1970 (absent if never)",
        "last_login",
        timestamp,
        alert="users who have not logged in for months",
    ),
    USER.field(
        "netbird_api_user_auto_groups",
        "Number of groups that new peers of the user join",
        "auto_groups",
        distinct_count,
    ),
    ACCESS_TOKEN.each(
        "netbird_api_access_token_expiration_timestamp_seconds",
        "Time when an access token of the exporter's own user expires, in seconds"
        " since 1970",
        "users/{current}/tokens[].expiration_date",
        lambda own: timestamp(own[1].expiration_date),
    ),
    ACCESS_TOKEN.each(
        "netbird_api_access_token_last_used_timestamp_seconds",
        "Time when an access token of the exporter's own user was last used, in"
        " seconds since 1970",
        "users/{current}/tokens[].last_used",
        lambda own: timestamp(own[1].last_used),
    ),
    OWN_TOKEN.each(
        "api_exporter_access_token_expiration_timestamp_seconds",
        "Time when the exporter's own access token expires, in seconds since 1970: the"
        " last used one of its user",
        "users/{current}/tokens[].expiration_date",
        lambda own: timestamp(own[1].expiration_date),
        alert="14 days before: without a valid token the exporter has no data",
    ),
    INVITE.count_true_and_false(
        "netbird_api_user_invites",
        "Number of open invites by whether they have expired",
        "expired",
        alert="expired invites: NetBird does not remove them",
    ),
    INVITE.joined(
        "netbird_api_user_invite_info",
        "Properties of an invite, to join on user_invite_id (always 1)",
        "users/invites[]",
        personal_kinds,
        labels=_invite,
    ),
    INVITE.field(
        "netbird_api_user_invite_expiration_timestamp_seconds",
        "Time when the invite expires, in seconds since 1970",
        "expires_at",
        timestamp,
    ),
    IDENTITY_PROVIDER.count(
        "netbird_api_identity_providers",
        "Number of identity providers by type",
        {"idp_type": "type"},
    ),
    IDENTITY_PROVIDER.info(
        "netbird_api_identity_provider_info",
        "Properties of an identity provider (always 1)",
        {"idp_type": "type"},
    ),
)


_TOKEN_LABELS = (("token_id", "object_id", "(.+)"), ("token", "object", "(.+)"))

ACCESS_TOKEN_SOON = FindingKind(
    "ApiExporterTokenExpiresSoon",
    "Access token",
    "access_token",
    lasts="1h",
    summary="Access token {{ $labels.token }} of the exporter expires soon",
    description="The exporter's token expires soon, or has expired: create a new one.",
    own_labels=_TOKEN_LABELS,
)
ACCESS_TOKEN_VERY_SOON = FindingKind(
    "ApiExporterTokenExpiresVerySoon",
    "Access token",
    "access_token",
    lasts="5m",
    summary="Access token {{ $labels.token }} of the exporter expires very soon",
    description="The exporter's token expires very soon, or has expired: create a new"
    " one.",
    own_labels=_TOKEN_LABELS,
)
OTHER_TOKEN_SOON = FindingKind(
    "ApiExporterOtherTokenExpiresSoon",
    "Access token",
    "access_token",
    lasts="1h",
    summary="Access token {{ $labels.token }} expires soon",
    description="Another program used this token within a day, or the exporter did"
    " before it got a new one. The token expires soon, or has expired.",
    own_labels=_TOKEN_LABELS,
)
TOKEN_NOT_WATCHED = FindingKind(
    "ApiExporterTokenNotWatched",
    "The exporter's token",
    lasts="1h",
    summary="The exporter's token has an unknown expiry date",
    description="{{ $labels.instance }} cannot list the tokens of its user: no alert"
    " warns before the token expires.",
)
USER_AWAITS_APPROVAL = FindingKind(
    "NetBirdUserAwaitsApproval",
    "User",
    "user",
    lasts="2h",
    summary="A user waits for approval",
    description="User {{ $labels.user_id }} has waited for approval for two hours.",
    many=("{} users", "wait for approval"),
)
INVITE_EXPIRED = FindingKind(
    "NetBirdInviteExpired",
    "Invite",
    "user_invite",
    lasts="1h",
    summary="An invite has expired",
    description="Invite {{ $labels.user_invite_id }} cannot be accepted any more.",
    many=("{} invites", "have expired and cannot be accepted"),
)
"""Users and invites have no name in findings: it is personal data."""


_USED_SECONDS = DAY + HOUR
"""A token is in use for so long after its last use. A daily program may be late."""


def access_tokens(snapshot: Snapshot) -> Iterator[Finding]:
    """Report expiring access tokens of the exporter's own user that are in use.

    Others are never critical: the exporter does not need them. One of them may be the
    exporter's former token.
    """
    days, own = snapshot.thresholds.days, own_token(snapshot.inventory)
    for token in ACCESS_TOKENS.of(snapshot.inventory) or ():
        end, used = timestamp(token.expiration_date), timestamp(token.last_used)
        if end is None or used is None or snapshot.now - used >= _USED_SECONDS:
            continue
        life = Lifetime(timestamp(token.created_at), end)
        limit = days["access_token_very_soon"] * DAY
        if life.is_near_end(snapshot.now, limit, VERY_SOON):
            kind, soon = ACCESS_TOKEN_VERY_SOON, "expires very soon"
        elif life.is_near_end(snapshot.now, days["access_token_soon"] * DAY, SOON):
            kind, soon = ACCESS_TOKEN_SOON, "expires soon"
        else:
            continue
        if end <= snapshot.now:
            soon = "has expired"
        message = f"of the exporter {soon}: create a new token."
        if own is None or token.id != own.id:
            kind = OTHER_TOKEN_SOON
            users = "another program uses it, or the exporter did before"
            message = f"{soon}: {users} it got a new one."
        yield snapshot.finding(kind, message, token, until=end)


def unwatched_token(snapshot: Snapshot) -> Iterator[Finding]:
    tokens = snapshot.states.get(ACCESS_TOKENS.name)
    sources = (snapshot.states.get(name) for name in (CURRENT_USER, USERS.name))
    is_user_unknown = snapshot.inventory.current_user_id is None and all(
        one is None or one.supported is False or one.up is True for one in sources
    )
    if tokens is not None and (tokens.supported is False or is_user_unknown):
        yield snapshot.finding(
            TOKEN_NOT_WATCHED,
            "has an unknown expiry date: no alert warns before the token expires.",
        )


def user_approvals(snapshot: Snapshot) -> Iterator[Finding]:
    # They are reported at once: the start is unknown.
    for user in snapshot.inventory.users or ():
        if user.pending_approval:
            yield snapshot.finding(
                USER_AWAITS_APPROVAL, "waits for approval.", object_id=user.id
            )


def invites(snapshot: Snapshot) -> Iterator[Finding]:
    for invite in USER_INVITES.of(snapshot.inventory) or ():
        if invite.expired:
            yield snapshot.finding(
                INVITE_EXPIRED,
                "has expired and cannot be accepted.",
                object_id=invite.id,
                since=timestamp(invite.expires_at),
            )


FINDERS = (
    Finder(
        access_tokens,
        (ACCESS_TOKEN_SOON, ACCESS_TOKEN_VERY_SOON, OTHER_TOKEN_SOON),
        ("access_tokens",),
    ),
    Finder(unwatched_token, (TOKEN_NOT_WATCHED,)),
    Finder(user_approvals, (USER_AWAITS_APPROVAL,), ("users",)),
    Finder(invites, (INVITE_EXPIRED,), ("user_invites",)),
)

SUBJECT = Subject(
    __name__,
    (USERS, ACCESS_TOKENS, USER_INVITES, IDENTITY_PROVIDERS),
    FAMILIES,
    FINDERS,
)
