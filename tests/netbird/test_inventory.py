from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import AGENT_RESOURCES, Inventory
from api_exporter.netbird.records import AccessToken, Peer, User


def known(inventory: Inventory) -> tuple[object, ...]:
    """Return an inventory with some resources and settings."""
    return inventory.personal, inventory.users, inventory.peers


class InventoryTests(SynchronousTestCase):
    def test_with(self) -> None:
        """Replacing or removing a resource leaves all other resources unchanged."""
        peers = (Peer(id="p"),)
        personal = frozenset({"city"})
        before = Inventory(personal=personal, users=())
        after = before.with_("peers", peers)
        self.assertEqual((personal, (), peers), known(after))
        self.assertEqual(known(before), known(after.with_("peers", None)))

    def test_edition(self) -> None:
        """An edition changes when one of its resources is replaced or removed."""
        start = Inventory().with_("peers", ()).with_("groups", ())
        reads = ("peers", "groups")
        for resource, same in (("users", True), ("peers", False), ("groups", False)):
            for records in ((), None):
                after = start.with_(resource, records)
                self.assertEqual(same, after.edition(reads) == start.edition(reads))
        again = Inventory().with_("peers", ()).with_("groups", ())
        self.assertNotEqual(start.edition(reads), again.edition(reads))

    def test_another_user(self) -> None:
        """Access tokens are removed with the current user."""
        tokens = (AccessToken(id="t"),)
        before = Inventory(users=(User(id="a", is_current=True),), access_tokens=tokens)
        for users, kept in (
            ((User(id="b"), User(id="a", name="new", is_current=True)), tokens),
            ((User(id="b", is_current=True),), None),
            ((), None),
            (None, None),
        ):
            self.assertEqual(kept, before.with_("users", users).access_tokens, users)

    def test_gone(self) -> None:
        """Resources that are removed with another one get another edition."""
        before = Inventory(users=(User(id="a", is_current=True),))
        for other in (*AGENT_RESOURCES, "access_tokens"):
            before = before.with_(other, ())
        for resource, others in (
            ("users", ("access_tokens",)),
            ("agent_providers", AGENT_RESOURCES),
        ):
            after = before.with_(resource, ())
            for other in others:
                self.assertIsNone(getattr(after, other))
                self.assertNotEqual(before.edition([other]), after.edition([other]))

    def test_unknown_resource(self) -> None:
        """An unknown resource is an error."""
        self.assertRaises(TypeError, Inventory().with_, "sheep", ())

    def test_current_user(self) -> None:
        """The current user is the marked user with the lowest id, if any is marked."""
        me, you = User(id="me", is_current=True), User(id="you")
        for users, current in (
            (None, None),
            ((), None),
            ((you,), None),
            ((you, me), "me"),
            ((me, User(id="me too", is_current=True)), "me"),
        ):
            self.assertEqual(current, Inventory(users=users).current_user_id)

    def test_partial(self) -> None:
        """A human with the role `user` sees only their own peers."""
        other = User(id="other", role="user")
        for current, expected in (
            (User(id="me", role="user", is_current=True), True),
            (User(id="me", role="user", is_current=True, is_service_user=True), False),
            (User(id="me", role="auditor", is_current=True), False),
            (User(id="me", role="custom", is_current=True), False),
            (User(id="me", role="user"), False),
        ):
            self.assertEqual(expected, Inventory(users=(other, current)).partial_peers)
        for users in ((), None):
            self.assertFalse(Inventory(users=users).partial_peers)
