from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory, Reading, joined_once
from api_exporter.netbird.records import (
    CurrentUser,
    Group,
    Member,
    NetBirdAccount,
    Peer,
    Permissions,
    User,
)
from api_exporter.subjects.users import AccessToken
from tests.inventories import changed, inventory_of


class InventoryTests(SynchronousTestCase):
    def test_another_user(self) -> None:
        """Access tokens are removed with the current user."""
        tokens = (AccessToken(id="t"),)
        before = inventory_of(
            users=(User(id="a", is_current=True),), access_tokens=tokens
        )
        for users, kept in (
            ((User(id="b"), User(id="a", name="new", is_current=True)), tokens),
            ((User(id="b", is_current=True),), None),
            ((), None),
            (None, None),
        ):
            self.assertEqual(
                kept,
                before.replacing("users", users).records.get("access_tokens"),
                users,
            )

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
            self.assertEqual(current, inventory_of(users=users).current_user_id)

    def test_offline_machines(self) -> None:
        """Machines that PEER_DETAIL hides are not among those that are offline."""
        shown, hidden = Peer(id="a", name="a"), Peer(id="b", name="b")
        group = Group(id="g", name="servers", peers=(Member(id="a"),))
        known = inventory_of(peers=(shown, hidden), groups=(group,))
        self.assertEqual([shown, hidden], known.offline_machines)
        people = Peer(id="c", user_id="u"), Peer(id="d", ephemeral=True)
        others = changed(known, peers=(*people, Peer(id="e", connected=True)))
        self.assertEqual([], others.offline_machines)
        detail = changed(known, detail=frozenset({"servers"}))
        self.assertEqual([shown], detail.offline_machines)

    def test_another_account(self) -> None:
        """A list of other accounts removes all else; the former ones are kept."""
        mine, other = NetBirdAccount(id="a"), NetBirdAccount(id="b")
        for records, is_other in (
            ((other,), True),
            ((other, mine), False),
            ((), False),
        ):
            before = inventory_of(peers=()).replacing("accounts", (mine,))
            for accounts in ((mine,), None):
                before = before.replacing("accounts", accounts)
                after = before.replacing("accounts", records)
                self.assertEqual(is_other, after.peers is None, records)
                self.assertEqual(is_other, after.former_accounts == 1)

    def test_current_mark(self) -> None:
        """Without the mark in the list of users, the permissions name the user."""
        users = User(id="me", is_current=True), User(id="other")
        inventory = inventory_of(users=users, current_user=(CurrentUser(id="you"),))
        self.assertEqual("me", inventory.current_user_id)
        after = inventory.without_current_mark()
        self.assertEqual("you", after.current_user_id)
        self.assertEqual(["me", "other"], [user.id for user in after.users or ()])
        self.assertIsNone(inventory_of().without_current_mark().users)

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
            found = inventory_of(users=(other, current))
            self.assertEqual(expected, "peers" in found.withheld)
        for users in ((), None):
            self.assertEqual(frozenset(), inventory_of(users=users).withheld)

    def test_restricted(self) -> None:
        """A restricted user sees all peers only if that is granted."""
        for modules, restricted, expected in (
            ({"peers": {"read": True}}, True, False),  # usage_viewer
            ({"peers": {"read": True}}, False, False),
            ({"peers": {"read": False}}, True, True),
            ({"peers": {"read": False}}, False, True),
            ({"users": {"read": True}}, True, True),
            (None, True, True),
            (None, False, False),
        ):
            known = Permissions(is_restricted=restricted, modules=modules)
            user = CurrentUser(id="me", permissions=known)
            found = inventory_of(current_user=(user,))
            self.assertEqual(expected, "peers" in found.withheld)

    def test_whole_again(self) -> None:
        """The peers are not withheld if no user says any more that some are missing."""
        before = inventory_of(users=(User(id="me", role="user", is_current=True),))
        denied = Permissions(modules={"users": {"read": False}})
        after = before.replacing(
            "current_user", (CurrentUser(id="me", permissions=denied),)
        )
        self.assertEqual({"peers"}, before.withheld)
        self.assertNotIn("peers", after.withheld)

    def test_joined_once(self) -> None:
        """A join is computed once for the same records, read again or not."""
        joined: list[int] = []

        @joined_once
        def count_peers(inventory: Inventory) -> int:
            joined.append(len(inventory.peers or ()))
            return joined[-1]

        before = inventory_of(peers=(Peer(id="a"),))
        after = before.replacing("peers", (Peer(id="a"), Peer(id="b")))
        counts = [count_peers(one) for one in (before, before, after, before, after)]
        self.assertEqual([1, 1, 2, 1, 2], counts)
        unchanged = after.read("peers", Reading(began=1, ended=2))
        self.assertEqual((2, [1, 2]), (count_peers(unchanged), joined))
