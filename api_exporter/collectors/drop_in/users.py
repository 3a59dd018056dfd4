"""Users. Their list carries no permissions: nobody is restricted, and there is no
`user_permissions`.
"""

from collections.abc import Iterator
from functools import partial

from api_exporter.collectors.once import OnceEach
from api_exporter.exposition.each import Blocks, Each
from api_exporter.exposition.text import (
    Family,
    Labels,
    Metric,
    counted,
    halves,
    labels,
    single,
    whole,
)
from api_exporter.netbird.records import User

USERS = Metric(
    name="netbird_users",
    help="Number of users, service users included.",
    source="users[]",
)
BY_ROLE = Metric(
    name="netbird_users_by_role",
    help="Number of users by role.",
    source="users[].role",
)
BY_STATUS = Metric(
    name="netbird_users_by_status",
    help="Number of users by status.",
    source="users[].status",
)
BY_ISSUED = Metric(
    name="netbird_users_by_issued",
    help="Number of users by where they come from.",
    source="users[].issued",
)
SERVICE_USERS = Metric(
    name="netbird_users_service_users",
    help="Number of users by whether they are service users.",
    source="users[].is_service_user",
)
BLOCKED = Metric(
    name="netbird_users_blocked",
    help="Number of users by whether they are blocked.",
    source="users[].is_blocked",
)
RESTRICTED = Metric(
    name="netbird_users_restricted",
    help="Number of users by whether they are restricted, which the list never says.",
    source="users[]",
)
LAST_LOGIN = Metric(
    name="netbird_user_last_login_timestamp",
    help="When the user last logged in; absent when never.",
    source="users[].last_login",
)
AUTO_GROUPS = Metric(
    name="netbird_user_auto_groups_count",
    help="Number of groups that are given to the user's new peers.",
    source="users[].auto_groups",
)


def families(users: tuple[User, ...], told: frozenset[str]) -> Iterator[Family]:
    """Names and addresses only where these kinds of personal data may be told."""
    yield single(USERS, len(users))
    yield counted(BY_ROLE, (labels(role=user.role or "unknown") for user in users))
    yield counted(
        BY_STATUS, (labels(status=user.status or "unknown") for user in users)
    )
    yield counted(
        BY_ISSUED,
        (
            labels(issued="unknown" if user.issued is None else user.issued)
            for user in users
        ),
    )
    yield halves(
        SERVICE_USERS, "is_service_user", (user.is_service_user for user in users)
    )
    yield halves(BLOCKED, "is_blocked", (user.is_blocked for user in users))
    yield halves(RESTRICTED, "is_restricted", (False for _ in users))
    blocks = Blocks(users)
    key = OnceEach(partial(_labels, told))
    yield Each(LAST_LOGIN, blocks, key, lambda u: whole(u.last_login), given=told)
    yield Each(AUTO_GROUPS, blocks, key, lambda u: len(u.auto_groups or ()), given=told)


def _labels(told: frozenset[str], user: User) -> Labels:
    return labels(
        user_id=user.id,
        user_email=user.email if "email" in told else "",
        user_name=user.name if "name" in told else "",
    )
