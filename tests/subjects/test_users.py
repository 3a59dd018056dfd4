"""Findings about users and access tokens appear, stay away, and end."""

from msgspec.structs import replace

from api_exporter.netbird.records import User
from api_exporter.netbird.resource_state import NotRead, ResourceState
from api_exporter.subjects.users import AccessToken, UserInvite
from api_exporter.subjects.watch import unknown_resources
from tests.attention.looking import DAY, HOUR, FindingsTestCase, at, seen
from tests.inventories import inventory_of

SOURCES = ("current_user", "users")


class UsersExpiryTests(FindingsTestCase):
    def test_access_token(self) -> None:
        """The exporter's token is a finding for 14 days, and a worse one for three."""
        for left, used, alert, words in (
            (14 * DAY, 0, "", ""),
            (14 * DAY - 1, 0, "Soon", "expires soon"),
            (3 * DAY, 0, "Soon", "expires soon"),
            (3 * DAY - 1, 0, "VerySoon", "expires very soon"),
            (1, 0, "VerySoon", "expires very soon"),
            (0, 0, "VerySoon", "has expired"),
            (DAY, DAY + HOUR - 1, "VerySoon", "expires very soon"),
            (DAY, DAY + HOUR, "", ""),
        ):
            token = AccessToken(
                id="t", name="mine", expiration_date=at(left), last_used=at(-used)
            )
            line = (
                f"ApiExporterTokenExpires{alert}: Access token mine of the exporter"
                f" {words}: create a new token."
                f" ({'until' if left else 'since'} {left:.0f})"
            )
            tokens = (AccessToken(id="of unknown end"), token)
            self.tells(inventory_of(users=(), access_tokens=tokens), alert and line)

    def test_other_token(self) -> None:
        """Another token than the exporter's has its own words: at most a warning.

        It is another program's, or the exporter's own until it was given a new one.
        """
        own = AccessToken(
            id="o", name="own", expiration_date=at(90 * DAY), last_used=at(0)
        )
        for left, words in ((10 * DAY, "expires soon"), (DAY, "expires very soon")):
            other = AccessToken(
                id="t", name="theirs", expiration_date=at(left), last_used=at(-60)
            )
            self.tells(
                inventory_of(users=(), access_tokens=(other, own)),
                f"ApiExporterOtherTokenExpiresSoon: Access token theirs {words}:"
                " another program uses it, or the exporter did before it got a new one."
                f" (until {left:.0f})",
            )


class UsersTests(FindingsTestCase):
    def test_user_approvals(self) -> None:
        """Users that wait are counted, not named."""
        user = User(id="u", name="Eve", pending_approval=True)
        for users, words in (
            ((user, User(id="v")), "1 user waits for approval."),
            ((user, replace(user, id="w")), "2 users wait for approval."),
            ((), ""),
        ):
            line = f"NetBirdUserAwaitsApproval: {words}"
            self.tells(inventory_of(users=users), words and line)

    def test_invites(self) -> None:
        """Expired invites are findings in one line."""
        known, unknown = (
            UserInvite(id=f"{time}", expired=True, expires_at=time)
            for time in (at(-60), None)
        )
        later = replace(known, id="4", expires_at=at(-30))
        valid = UserInvite(id="3", expires_at=at(60))
        for invites, words in (
            ((later, known, unknown, valid), "3 invites have expired"),
            ((known,), "1 invite has expired"),
        ):
            self.tells(
                inventory_of(user_invites=invites),
                f"NetBirdInviteExpired: {words} and cannot be accepted. (since -60)",
            )


class TokenTests(FindingsTestCase):
    def test_not_watched(self) -> None:
        """A token with an unknown expiry is a finding if the tokens are requested."""
        line = (
            "ApiExporterTokenNotWatched: The exporter's token has an unknown expiry"
            " date: no alert warns before the token expires."
        )
        unread = ResourceState(interval=600)
        refused = replace(unread, not_read=NotRead.REFUSED)
        for states, expected in (
            ({"access_tokens": refused, "current_user": unread}, line),
            ({"access_tokens": unread, "current_user": unread}, ""),
            # Nothing says whose token it is: an old server, with `users` off or refused
            ({"access_tokens": unread, "current_user": refused}, line),
            ({"access_tokens": unread} | dict.fromkeys(SOURCES, refused), line),
            ({"access_tokens": unread, "current_user": refused, "users": unread}, ""),
            ({"current_user": refused}, ""),
        ):
            looked = seen(inventory_of(access_tokens=()), states=states)
            self.tells(looked, expected)
            unread_users = states.get("users") is unread
            unknown = ("users",) if unread_users else ()
            self.assertEqual(unknown, unknown_resources(looked))
