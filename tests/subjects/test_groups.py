"""Findings about groups appear, stay away, and end."""

from msgspec.structs import replace

from api_exporter.attention.thresholds import Groups, default_thresholds
from api_exporter.netbird.inventory import Inventory
from tests.attention.looking import FindingsTestCase, group, peer, seen
from tests.inventories import changed, inventory_of

SERVERS = ("servers",)

ROUTERS = replace(
    default_thresholds(), groups=Groups(important=[], routers=["routers"])
)


class GroupsTests(FindingsTestCase):
    OFFLINE = "NetBirdImportantPeerOffline: Group servers has"
    MISSING = "NetBirdImportantGroupMissing: Group"

    def servers(self, *connected: bool) -> Inventory:
        peers = tuple(peer(f"s{n}", connected=on) for n, on in enumerate(connected))
        return inventory_of(
            peers=peers, groups=(group("servers", *(p.id for p in peers)),)
        )

    def test_offline(self) -> None:
        """A finding names the offline peers of an important group."""
        two = self.servers(True, False)
        # An unlisted member is not offline, and a repeated member counts once.
        odd = (group("servers", "s0", "s1", "s1", "of nobody"),)
        for inventory, words in (
            (two, "1 of 2 peers offline: s1."),
            (changed(two, groups=odd), "1 of 2 peers offline: s1."),
            # Peers without series of their own are only counted (`PEER_DETAIL`).
            (changed(two, detail=frozenset()), "1 of 2 peers offline."),
            (self.servers(*3 * [False]), "3 of 3 peers offline: s0, s1, s2."),
            (
                self.servers(True, *4 * [False]),
                "4 of 5 peers offline: s1, s2, s3 and 1 more.",
            ),
        ):
            looked = seen(inventory, chosen=SERVERS)
            self.tells(looked, f"{self.OFFLINE} {words} (since -3600)")
        self.tells(seen(self.servers(True, True), chosen=SERVERS))

    def test_chosen(self) -> None:
        """Names and ids select groups; a missing one is a finding."""
        servers = self.servers(False)
        named = replace(
            default_thresholds(), groups=Groups(important=["servers"], routers=["x"])
        )
        lost = f"{self.OFFLINE} 1 of 1 peer offline: s0. (since -3600)"
        words = "does not exist, but the settings name it as"
        self.tells(servers)  # by default, no group is important
        self.tells(seen(servers, chosen=("g-servers",)), lost)
        self.tells(
            seen(servers, chosen=("databases",)),
            f"{self.MISSING} databases {words} important.",
        )
        for chosen in ((), ("g-servers",)):
            self.tells(
                seen(servers, thresholds=named, chosen=chosen),
                lost,
                f"{self.MISSING} x {words} a group of routing peers.",
            )

    def test_routers(self) -> None:
        """A routing group is down if none of its peers is connected."""
        gates = (peer("a", connected=False), peer("b", connected=False, since=-60))
        down = inventory_of(peers=gates, groups=(group("routers", "a", "b", "gone"),))
        for inventory, peers, time in (
            (down, "connected routing peer", " (since -60)"),
            (changed(down, groups=(group("routers"),)), "routing peer", ""),
        ):
            self.tells(
                seen(inventory, thresholds=ROUTERS),
                f"NetBirdRouterGroupDown: Group routers has no {peers}: networks behind"
                f" this group alone cannot be reached.{time}",
            )
        up = changed(down, peers=(gates[0], peer("b")))
        self.tells(seen(up, thresholds=ROUTERS))

    def test_login(self) -> None:
        """Expired logins of important peers are a finding."""
        for out, words in (
            ((), ""),
            (
                ("s0",),
                "Peer s0 of an important group cannot connect: its login has expired.",
            ),
            (("s0", "s1"), "Logins of 2 important peers have expired: s0, s1."),
        ):
            peers = tuple(
                replace(peer(id_), login_expired=id_ in out) for id_ in ("s0", "s1")
            )
            looked = seen(
                changed(self.servers(True, True), peers=peers), chosen=SERVERS
            )
            line = f"NetBirdImportantLoginExpired: {words}"
            self.tells(looked, words and line)

    def test_login_of_router(self) -> None:
        """An expired login of a routing peer is a finding, important or not."""
        routing = (replace(peer("a"), login_expired=True), peer("b"))
        inventory = inventory_of(peers=routing, groups=(group("routers", "a", "b"),))
        self.tells(
            seen(inventory, thresholds=ROUTERS),
            "NetBirdImportantLoginExpired: Peer a of an important group cannot connect:"
            " its login has expired.",
        )
