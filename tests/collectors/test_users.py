"""The users collector."""

from collections.abc import Iterable
from datetime import UTC, datetime

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.facts.personal import PERSONAL
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import AccessToken, User
from tests.collectors.samples import Samples, scrape

NOON = datetime(2026, 5, 22, 12, tzinfo=UTC)
ZERO = datetime(1, 1, 1, tzinfo=UTC)


def of(*users: User, personal: Iterable[str] = ()) -> Samples:
    return scrape("users", Inventory(users=users, personal=frozenset(personal)))


class UsersTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Unknown users have no families, and neither have tokens."""
        tokens = (AccessToken(id="t", expiration_date=NOON),)
        self.assertEqual({}, scrape("users", Inventory(access_tokens=tokens)))

    def test_counts(self) -> None:
        """Users are counted by role, status and kind, even unknown words."""
        families = of(
            User(id="1", role="owner", status="active"),
            User(id="2", role="user", status="blocked", is_blocked=True),
            User(
                id="3",
                role="user",
                status="blocked",
                is_blocked=True,
                pending_approval=True,
            ),
            User(id="4", role="wizard", status="asleep", is_service_user=True),
            User(id="5"),
        )
        self.assertEqual(
            [
                '{role="",status="",service_user="false"} 1',
                '{role="owner",status="active",service_user="false"} 1',
                '{role="user",status="blocked",service_user="false"} 2',
                '{role="wizard",status="asleep",service_user="true"} 1',
            ],
            families["users"],
        )
        self.assertEqual(["2"], families["users_blocked"])
        self.assertEqual(["1"], families["users_pending_approval"])

    def test_info(self) -> None:
        """Name and e-mail are labels of the info series only on request."""
        user = User(
            id="auth0|1",
            name="Åse",
            email="ase@example.no",
            role="owner",
            status="active",
            issued="api",
        )
        public = (
            '{user_id="auth0|1",role="owner",status="active",service_user="false",'
            'issued="api"'
        )
        self.assertEqual([public + "} 1"], of(user)["user_info"])
        self.assertEqual(
            [public + ',name="Åse",email="ase@example.no"} 1'],
            of(user, personal=PERSONAL)["user_info"],
        )
        self.assertEqual(
            [
                (
                    '{user_id="2",role="",status="",service_user="true",issued="",name="",'
                    'email=""} 1'
                )
            ],
            of(User(id="2", is_service_user=True), personal=PERSONAL)["user_info"],
        )

    def test_kinds(self) -> None:
        """Names may be published without addresses."""
        [line] = of(User(id="1", name="Å", email="e@x"), personal={"name"})["user_info"]
        self.assertTrue(line.endswith(',issued="",name="Å"} 1'), line)

    def test_last_login(self) -> None:
        """A user without a login has no time of a login."""
        for last_login, samples in (
            (NOON, ['{user_id="1"} 1779451200']),
            (ZERO, None),
            (None, None),
        ):
            families = of(User(id="1", last_login=last_login))
            self.assertEqual(samples, families.get("user_last_login_timestamp_seconds"))

    def test_auto_groups(self) -> None:
        """The groups given to new peers are counted; null is none."""
        for groups, count in ((("a", "b"), 2), ((), 0), (None, 0)):
            families = of(User(id="1", auto_groups=groups))
            self.assertEqual([f'{{user_id="1"}} {count}'], families["user_auto_groups"])


class AccessTokensTests(SynchronousTestCase):
    end = "access_token_expiration_timestamp_seconds"
    use = "access_token_last_used_timestamp_seconds"

    def tokens(
        self, tokens: tuple[AccessToken, ...] | None, *, current: str = "me"
    ) -> dict[str, list[str]]:
        users = (User(id="you"), User(id=current, is_current=current == "me"))
        families = scrape("users", Inventory(users=users, access_tokens=tokens))
        return {name: families[name] for name in (self.end, self.use) & families.keys()}

    def test_own(self) -> None:
        """Tokens belong to the current user; an unused token has no time of use."""
        self.assertEqual(
            {
                self.end: [
                    '{token_id="t1",token="a",user_id="me"} 1779451200',
                    '{token_id="t2",token="a",user_id="me"} 1779451200',
                ],
                self.use: ['{token_id="t1",token="a",user_id="me"} 1779451200'],
            },
            self.tokens(
                (
                    AccessToken(
                        id="t1", name="a", expiration_date=NOON, last_used=NOON
                    ),
                    AccessToken(id="t2", name="a", expiration_date=NOON),
                    AccessToken(id="t3", expiration_date=ZERO, last_used=ZERO),
                )
            ),
        )

    def test_absent(self) -> None:
        """Without tokens, or without a current user, there is no family."""
        tokens = (AccessToken(id="t", expiration_date=NOON, last_used=NOON),)
        self.assertEqual({}, self.tokens(None))
        self.assertEqual({}, self.tokens(()))
        self.assertEqual({}, self.tokens(tokens, current="nobody knows"))
