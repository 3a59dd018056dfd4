"""Users, and the access tokens of the exporter's own user."""

from collections.abc import Iterator
from functools import partial

from api_exporter.collectors.once import OnceEach
from api_exporter.exposition.each import Blocks, Each
from api_exporter.exposition.text import (
    Family,
    Labels,
    Metric,
    boolean,
    count_true,
    counted,
    labels,
    timestamp,
    timestamps,
)
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import User

READS = ("users", "access_tokens")

USERS = Metric(
    name="netbird_api_users",
    help="Number of users by role, status and whether they are service users.",
    source="users[].role, users[].status, users[].is_service_user",
    alert="more owners or admins than there should be",
)
BLOCKED = Metric(
    name="netbird_api_users_blocked",
    help="Number of users that are blocked.",
    source="users[].is_blocked",
)
PENDING_APPROVAL = Metric(
    name="netbird_api_users_pending_approval",
    help="Number of users that wait for approval.",
    source="users[].pending_approval",
    alert="anything above 0 for long",
)
INFO = Metric(
    name="netbird_api_user_info",
    help="Properties of a user, to be joined by user_id. Always 1.",
    source="users[]",
)
LAST_LOGIN = Metric(
    name="netbird_api_user_last_login_timestamp_seconds",
    help="When the user last logged in; absent when never.",
    source="users[].last_login",
    alert="users who have not logged in for months",
)
AUTO_GROUPS = Metric(
    name="netbird_api_user_auto_groups",
    help="Number of groups that are given to the user's new peers.",
    source="users[].auto_groups",
)
TOKEN_EXPIRATION = Metric(
    name="netbird_api_access_token_expiration_timestamp_seconds",
    help="When an access token of the exporter's own user ends.",
    source="users/{current}/tokens[].expiration_date",
    alert="14 days ahead: without its token the exporter is blind",
)
TOKEN_LAST_USED = Metric(
    name="netbird_api_access_token_last_used_timestamp_seconds",
    help="When an access token of the exporter's own user was last used.",
    source="users/{current}/tokens[].last_used",
)


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the users; those of tokens need the user whose they are."""
    users = inventory.users
    if users is None:
        return
    yield counted(
        USERS,
        ((user.role, user.status, user.is_service_user) for user in users),
        lambda kind: labels(
            role=kind[0], status=kind[1], service_user=boolean(kind[2])
        ),
    )
    yield count_true(BLOCKED, (user.is_blocked for user in users))
    yield count_true(PENDING_APPROVAL, (user.pending_approval for user in users))
    told = inventory.personal
    info = partial(_personal_info, told) if told else _info
    blocks = Blocks(users)
    yield Each(INFO, blocks, lambda u: labels(**info(u)), lambda _: 1, given=told)
    key = OnceEach(_key)
    yield Each(LAST_LOGIN, blocks, key, lambda u: timestamp(u.last_login))
    yield Each(AUTO_GROUPS, blocks, key, lambda u: len(set(u.auto_groups or ())))
    yield from _tokens(inventory)


def _tokens(inventory: Inventory) -> Iterator[Family]:
    tokens, user_id = inventory.access_tokens, inventory.current_user
    if tokens is None or user_id is None:
        return
    keyed = [
        (labels(token_id=token.id, token=token.name, user_id=user_id), token)
        for token in tokens
    ]
    yield timestamps(
        TOKEN_EXPIRATION, ((key, token.expiration_date) for key, token in keyed)
    )
    yield timestamps(TOKEN_LAST_USED, ((key, token.last_used) for key, token in keyed))


def _key(user: User) -> Labels:
    return labels(user_id=user.id)


def _info(user: User) -> dict[str, str]:
    return {
        "user_id": user.id,
        "role": user.role,
        "status": user.status,
        "service_user": boolean(user.is_service_user),
        "issued": user.issued or "",
    }


def _personal_info(told: frozenset[str], user: User) -> dict[str, str]:
    personal = {"name": user.name, "email": user.email}
    return _info(user) | {k: v for k, v in personal.items() if k in told}
