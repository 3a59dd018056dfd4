"""Findings about peers appear, stay away, and end."""

from msgspec.structs import replace

from api_exporter.attention.thresholds import with_changes
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import NetBirdAccount, NetBirdSettings, Peer
from tests.attention.looking import (
    DAY,
    HOUR,
    NOW,
    FindingsTestCase,
    at,
    findings,
    group,
    peer,
    seen,
)
from tests.inventories import changed, inventory_of


class PeersExpiryTests(FindingsTestCase):
    def logins(self, lifetime: float, *peers: Peer) -> Inventory:
        """Return an account with this lifetime of logins, and peers with a login."""
        settings = NetBirdSettings(
            peer_login_expiration_enabled=True, peer_login_expiration=round(lifetime)
        )
        return inventory_of(
            accounts=(NetBirdAccount(id="a", settings=settings),),
            peers=tuple(
                replace(one, user_id="u", login_expiration_enabled=True)
                for one in peers
            ),
        )

    def test_logins(self) -> None:
        """Logins of connected peers are a finding in the day before they expire."""
        inventory = self.logins(
            10 * DAY,
            *(
                replace(peer(id_), last_login=at(left - 10 * DAY), connected=there)
                for id_, left, there in (
                    ("soon", DAY - 1, True),
                    ("sooner", 1, True),
                    ("later", 2 * DAY, True),
                    ("over", 0, True),
                    ("away", 60, False),
                )
            ),
        )
        alert = "NetBirdLoginExpiresSoon:"
        self.tells(
            inventory,
            f"{alert} Logins of 2 connected peers expire soon: soon, sooner. (until 1)",
        )
        self.tells(
            seen(inventory, now=NOW + 2),
            f"{alert} Connected peer soon must log in within 24 hours: its login"
            " expires. (until 86399)",
        )
        self.tells(seen(inventory, now=NOW + 3 * DAY))

    def test_lifetime(self) -> None:
        """Soon means a tenth of the lifetime, at most a day."""
        for lifetime, left, hours in (
            (DAY, 60, None),
            (3 * DAY - 1, 60, None),
            (3 * DAY, 0.3 * DAY - 1, 8),
            (3 * DAY, 0.3 * DAY, None),
            (7 * DAY, 0.7 * DAY - 1, 17),
            (7 * DAY, 0.7 * DAY, None),
            (180 * DAY, DAY - 1, 24),
            (180 * DAY, DAY, None),
        ):
            mine = replace(peer("laptop"), last_login=at(left - lifetime))
            inventory = self.logins(lifetime, mine)
            line = (
                "NetBirdLoginExpiresSoon: Connected peer laptop must log in within"
                f" {hours} hours: its login expires. (until {left:g})"
            )
            self.tells(inventory, line if hours else "")
            [account] = inventory.accounts or ()
            off = replace(account.settings, peer_login_expiration_enabled=False)
            never = replace(account, settings=off)
            self.tells(changed(inventory, accounts=(never,)))


class PeersTests(FindingsTestCase):
    def test_peer_approvals(self) -> None:
        """A peer that waits is a finding two hours after its registration."""
        new = Peer(id="n", approval_required=True, created_at=at(0))
        old = replace(new, id="o", created_at=None)
        late = replace(new, id="m", created_at=at(HOUR))
        both = "2 peers wait for approval: m, n. (since 0)"
        for peers, passed, words in (
            ((late, new), 3 * HOUR, both),
            ((new, peer("fine")), 2 * HOUR - 1, ""),
            ((new, peer("fine")), 2 * HOUR, "Peer n waits for approval. (since 0)"),
            ((old, new), 0, "Peer o waits for approval."),
        ):
            looked = seen(inventory_of(peers=peers), now=NOW + passed)
            self.tells(looked, words and f"NetBirdPeerAwaitsApproval: {words}")


class FleetTests(FindingsTestCase):
    def fleet(
        self,
        connected: int,
        *lost: float,
        users: tuple[int, int] = (0, 0),
        **fields: object,
    ) -> Inventory:
        """Return peers by their enrolment and by the time of their loss.

        Args:
            connected: the number of connected peers that a setup key has enrolled.
            lost: for each lost peer with a setup key, how many seconds ago it was lost.
            users: numbers of peers with a person's login: connected, and lost just now.
        """
        there, gone = users
        keyed = [peer(f"k{n}") for n in range(connected)]
        keyed += [
            peer(f"l{n}", connected=False, since=-ago) for n, ago in enumerate(lost)
        ]
        peers = [replace(one, **fields) for one in keyed]
        peers += [replace(peer(f"u{n}"), user_id="u") for n in range(there)]
        peers += [
            replace(peer(f"g{n}", connected=False, since=-60), user_id="u")
            for n in range(gone)
        ]
        return inventory_of(peers=tuple(peers))

    def drop(self, inventory: Inventory, passed: float = 0) -> float | None:
        """Return how many seconds ago the fleet dropped, or None."""
        began = seen(inventory, now=NOW + passed).drop_at
        return None if began is None else NOW - began

    def test_dropped(self) -> None:
        """A third of the peers lost within ten minutes are one finding."""
        inventory = self.fleet(10, 900, 800, 700, 600, 500)
        self.tells(
            inventory,
            "NetBirdFleetDropped: Many peers lost their connection within ten minutes:"
            " 10 of 15 peers are connected. (since -900)",
        )
        self.assertEqual(900, self.drop(inventory, 3300))
        self.assertIsNone(self.drop(inventory, 3301))
        for case in (
            self.fleet(8, 60, 60, 60, 60),  # four of twelve
            self.fleet(11, *5 * [60]),  # less than a third
            self.fleet(10, *range(60, 60 + 5 * 301, 301)),  # one by one
            self.fleet(0, *5 * [7200]),  # long ago
            self.fleet(0, *5 * [-7200]),  # by a clock that is wrong
            self.fleet(10, *5 * [60], ephemeral=True),
            self.fleet(6, users=(8, 4)),  # four laptops of twelve are closed
            self.fleet(6, users=(0, 60)),  # all go home
            self.fleet(0, users=(0, 60)),  # the same without a peer with a setup key
            self.fleet(0),
        ):
            self.tells(case)

    def test_share(self) -> None:
        """An operator's own share counts as lost when exactly so many are."""
        for share, there, lost, drop in (
            *((0.5, 6, 6, NOW - 60), (0.5, 7, 6, None)),
            *((0.7, 3, 7, NOW - 60), (0.8, 2, 8, NOW - 60)),
        ):
            own = with_changes(b'{"shares": {"fleet_lost": %a}}' % share)
            looked = seen(self.fleet(there, *lost * [60]), thresholds=own)
            self.assertEqual(drop, looked.drop_at, (share, there))
        own = with_changes(b'{"shares": {"fleet_lost": 0.01, "all_lost": 0.28}}')
        inventory = self.fleet(53, *4 * [60], users=(1, 17))  # 21 of 75
        self.assertEqual(NOW - 60, seen(inventory, thresholds=own).drop_at)

    def test_window(self) -> None:
        """Peers that were lost exactly ten minutes apart were not lost at once."""
        for seconds, since in ((599, 700), (600, None)):
            inventory = self.fleet(10, 700, *4 * [700 - seconds])
            self.assertEqual(since, self.drop(inventory), seconds)

    def test_begin(self) -> None:
        """A peer that was lost minutes before does not begin the drop."""
        for before, drop, since in (
            ((600,), 54 * [300], 300),
            ((600, 590), 54 * [300], 300),
            ((310,), 54 * [300], 310),  # within a minute
            ((360,), 54 * [300], 360),
            ((), [*range(250, 300)], 299),  # NetBird notices them one after the other
        ):
            inventory = self.fleet(20, *before, *drop)
            self.assertEqual(since, self.drop(inventory), (before, since))

    def test_second_drop(self) -> None:
        """A second drop within the hour is found, with or without the first one."""
        second = 7 * [300]
        for name, inventory, since in (
            ("a small loss before it", self.fleet(10, *4 * [3000], *second), 300),
            ("losses one by one", self.fleet(10, 3800, 3100, 2400, *second), 300),
            ("a first drop", self.fleet(6, *7 * [3000], *second), 3000),
        ):
            self.assertEqual(since, self.drop(inventory), name)
            self.assertEqual(300, self.drop(inventory, 1300), name)
        self.assertEqual(900, self.drop(self.fleet(6, *7 * [900], *second)))

    def test_all(self) -> None:
        """Half of all peers are a finding, with a third of those with a key."""
        for keyed, lost, users, since in (
            (2, 1, (18, 19), 60),
            (2, 1, (19, 19), None),  # less than half
            (2, 1, (0, 18), None),  # 19 in all
            (3, 1, (0, 60), None),  # a quarter of those by key
            (1, 0, (0, 60), None),
        ):
            inventory = self.fleet(keyed, *lost * [60], users=users)
            self.assertEqual(since, self.drop(inventory), (keyed, lost, users))

    def test_held_back(self) -> None:
        """During a drop, only findings that began before it are shown."""
        inventory = self.fleet(4, 7200, *6 * [60])
        for members, passed, alerts in (
            (("l0", "k0"), 0, ["FleetDropped", "ImportantPeerOffline"]),
            # It was incomplete before.
            (("l0", "l1"), 0, ["FleetDropped", "ImportantPeerOffline"]),
            (("l1", "l2"), 0, ["FleetDropped"]),
            (("l1", "l2"), 2 * HOUR, ["ImportantPeerOffline"]),
        ):
            looked = seen(
                changed(inventory, groups=(group("servers", *members),)),
                now=NOW + passed,
                chosen=("servers", "nobody's"),
            )
            self.assertEqual(
                [f"NetBird{alert}" for alert in (*alerts, "ImportantGroupMissing")],
                [one.alert for one in findings(looked)],
                members,
            )
