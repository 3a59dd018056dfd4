"""The peers collector."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.facts.personal import PERSONAL
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import NetBirdAccount, NetBirdSettings, Peer
from tests.collectors.samples import Samples, scrape

NOON = datetime(2026, 5, 22, 12, 0, 0, 250_000, tzinfo=UTC)
NEVER = (
    None,
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
)
DB = '{peer_id="p1",peer="db"}'

ENROLMENTS = [
    f'{{enrolled_by="{by}",connected="{connected}"}}'
    for by in ("setup_key", "user")
    for connected in ("false", "true")
]


def of(*peers: Peer, personal: Iterable[str] = ()) -> Samples:
    return scrape("peers", Inventory(peers=peers, personal=frozenset(personal)))


class TestPeerExporter(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Unknown peers have no families."""
        self.assertEqual({}, scrape("peers", Inventory(accounts=())))

    def test_none(self) -> None:
        """Without a peer counts are 0, and no object has a series."""
        self.assertEqual(
            {
                "peers": ['{connected="true"} 0', '{connected="false"} 0'],
                "peers_login_expired": ["0"],
                "peers_approval_required": ["0"],
                "peers_ssh_enabled": ["0"],
                "peers_ephemeral": ["0"],
                "peers_never_logged_in": ["0"],
                "peers_by_enrolment": [f"{labels} 0" for labels in ENROLMENTS],
            },
            scrape("peers", Inventory(peers=(), accounts=())),
        )

    def test_enrolment(self) -> None:
        """Peers that are not ephemeral are counted by enrolment."""
        families = of(
            Peer(id="1"),
            Peer(id="2", connected=True),
            Peer(id="3", connected=True),
            Peer(id="4", user_id="u", connected=True),
            Peer(id="5", ephemeral=True, connected=True),
            Peer(id="6", ephemeral=True, user_id="u"),
        )
        self.assertEqual(
            [
                f"{labels} {count}"
                for labels, count in zip(ENROLMENTS, (1, 2, 0, 1), strict=True)
            ],
            families["peers_by_enrolment"],
        )

    def test_counts(self) -> None:
        """Peers are counted by each property; an empty property is "unknown"."""
        families = of(
            Peer(id="1", os="Ubuntu 24.04", version="0.77.1", country_code="NO"),
            Peer(id="2", os="Ubuntu 22.04", version="0.77.1", connected=True),
            Peer(id="3", os="unknown", version="unknown", login_expired=True),
            Peer(id="4", os="", approval_required=True, ssh_enabled=True),
            Peer(id="5", os="Windows 11", ssh_enabled=True, ephemeral=True),
        )
        for family, samples in {
            "peers": ['{connected="true"} 1', '{connected="false"} 4'],
            "peers_by_os": ['{os="Ubuntu"} 2', '{os="Windows"} 1', '{os="unknown"} 2'],
            "peers_by_version": ['{version="0.77.1"} 2', '{version="unknown"} 3'],
            "peers_by_country": ['{country="NO"} 1', '{country="unknown"} 4'],
            "peers_login_expired": ["1"],
            "peers_approval_required": ["1"],
            "peers_ssh_enabled": ["2"],
            "peers_ephemeral": ["1"],
        }.items():
            self.assertEqual(samples, families[family], family)

    def test_operating_systems(self) -> None:
        """A system is the words before the first word that begins with a digit."""
        for os, system in (
            ("Debian GNU/Linux 12 (bookworm)", "Debian GNU/Linux"),
            ("Alpine Linux 3.22.1", "Alpine Linux"),
            ("Darwin", "Darwin"),
            ("Windows 7th edition", "Windows"),
            ("Rocky v9", "Rocky v9"),
            (" ", "unknown"),
            ("11", "unknown"),
        ):
            families = of(Peer(id="1", os=os))
            self.assertEqual([f'{{os="{system}"}} 1'], families["peers_by_os"], os)

    def test_never_logged_in(self) -> None:
        """Only a user's peer counts as never logged in: a setup key needs no login."""
        for user_id, last_login, count in (
            ("u1", NOON, "0"),
            ("", NOON, "0"),
            *(("u1", never, "1") for never in NEVER),
            *(("", never, "0") for never in NEVER),
        ):
            families = of(Peer(id="1", user_id=user_id, last_login=last_login))
            self.assertEqual([count], families["peers_never_logged_in"])

    def test_info(self) -> None:
        """Properties are labels of the info series, personal ones only on request."""
        peer = Peer(
            id="p1",
            name='the "db"',
            dns_label="db.example",
            hostname="HOST",
            ip="100.92.0.1",
            ipv6="fd00::1",
            kernel_version="6.8.0",
            connection_ip="203.0.113.1",
            country_code="NO",
            city_name="Bergen",
            serial_number="SN",
            os="Ubuntu 24.04",
            version="0.77.1",
            ui_version="0.77.0",
            user_id="auth0|1",
            ssh_enabled=True,
        )
        public = (
            r'{peer_id="p1",peer="the \"db\"",dns_label="db.example",ip="100.92.0.1",'
            'os="Ubuntu 24.04",version="0.77.1",ui_version="0.77.0",country="NO",'
            'user_id="auth0|1",ssh_enabled="true",ephemeral="false",'
            'ipv6="fd00::1",kernel_version="6.8.0"'
        )
        personal = (
            ',city="Bergen",hostname="HOST",connection_ip="203.0.113.1",'
            'serial_number="SN"'
        )
        self.assertEqual([public + "} 1"], of(peer)["peer_info"])
        self.assertEqual(
            [public + personal + "} 1"], of(peer, personal=PERSONAL)["peer_info"]
        )

    def test_kinds(self) -> None:
        """Only the selected kinds of personal data have a label."""
        peer = Peer(id="1", hostname="HOST", city_name="Bergen", serial_number="SN")
        for kinds, shown in (
            ({"city", "hostname"}, ',city="Bergen",hostname="HOST"} 1'),
            ({"serial_number"}, ',serial_number="SN"} 1'),
            ({"email"}, ',kernel_version=""} 1'),
        ):
            [line] = of(peer, personal=kinds)["peer_info"]
            self.assertTrue(line.endswith(shown), line)

    def test_info_of_little(self) -> None:
        """An unknown property is an empty label, and so is the address `<nil>`."""
        self.assertEqual(
            [
                (
                    '{peer_id="1",peer="",dns_label="",ip="",os="",version="",'
                    'ui_version="",country="",user_id="",ssh_enabled="false",'
                    'ephemeral="false",ipv6="",kernel_version="",city="",hostname="",'
                    'connection_ip="",serial_number=""} 1'
                )
            ],
            of(Peer(id="1", connection_ip="<nil>"), personal=PERSONAL)["peer_info"],
        )

    def test_yes_or_no(self) -> None:
        """A state of a peer is 1 or 0, under the peer's id and name alone."""
        for family, yes in {
            "peer_connected": Peer(id="p1", name="db", connected=True),
            "peer_login_expired": Peer(id="p1", name="db", login_expired=True),
            "peer_approval_required": Peer(id="p1", name="db", approval_required=True),
        }.items():
            self.assertEqual([f"{DB} 1"], of(yes)[family])
            self.assertEqual([f"{DB} 0"], of(Peer(id="p1", name="db"))[family])

    def test_same_name(self) -> None:
        """Two peers with one name have two series."""
        self.assertEqual(
            ['{peer_id="1",peer="x"} 1', '{peer_id="2",peer="x"} 0'],
            of(Peer(id="1", name="x", connected=True), Peer(id="2", name="x"))[
                "peer_connected"
            ],
        )

    def test_instants(self) -> None:
        """Times are seconds with their fraction; "never" has no series."""
        for family, peer in {
            "peer_last_seen_timestamp_seconds": Peer(
                id="p1", name="db", last_seen=NOON
            ),
            "peer_created_timestamp_seconds": Peer(id="p1", name="db", created_at=NOON),
            "peer_last_login_timestamp_seconds": Peer(
                id="p1", name="db", last_login=NOON
            ),
        }.items():
            self.assertEqual([f"{DB} 1779451200.25"], of(peer)[family])
        for never in NEVER:
            families = of(
                Peer(id="p1", last_seen=never, created_at=never, last_login=never)
            )
            self.assertEqual([], [name for name in families if "timestamp" in name])

    def test_many(self) -> None:
        """Thousands of peers are measured in parts without loss."""
        peers = [Peer(id=str(number)) for number in range(2_500)]
        self.assertEqual(2_500, len(of(*peers)["peer_connected"]))


class LoginExpirationTests(SynchronousTestCase):
    family = "peer_login_expiration_timestamp_seconds"
    peer = Peer(
        id="p1",
        name="db",
        user_id="u",
        login_expiration_enabled=True,
        last_login=NOON,
    )

    def expiration(
        self,
        peer: Peer,
        *,
        seconds: int = 3600,
        enabled: bool = True,
    ) -> list[str]:
        account = NetBirdAccount(
            id="a",
            settings=NetBirdSettings(
                peer_login_expiration=seconds, peer_login_expiration_enabled=enabled
            ),
        )
        inventory = Inventory(peers=(peer,), accounts=(account,))
        return scrape("peers", inventory).get(self.family, [])

    def test_expires(self) -> None:
        """A login expires after the lifetime in the account's settings."""
        self.assertEqual([f"{DB} 1779454800.25"], self.expiration(self.peer))
        self.assertEqual([f"{DB} 1779451200.25"], self.expiration(self.peer, seconds=0))
        self.assertEqual([], self.expiration(self.peer, enabled=False))

    def test_several_accounts(self) -> None:
        """The first of several accounts counts, and no series is repeated."""
        accounts = tuple(
            NetBirdAccount(
                id=str(seconds),
                settings=NetBirdSettings(
                    peer_login_expiration=seconds, peer_login_expiration_enabled=True
                ),
            )
            for seconds in (3600, 0)
        )
        found = scrape("peers", Inventory(peers=(self.peer,), accounts=accounts))
        self.assertEqual([f"{DB} 1779454800.25"], found[self.family])

    def test_never_before_1970(self) -> None:
        """A lifetime that makes no sense does not make a negative time."""
        self.assertEqual([], self.expiration(self.peer, seconds=-(2**40)))

    def test_never_expires(self) -> None:
        """Only the login of a user's peer that has this enabled expires."""
        for never in (
            Peer(id="1", login_expiration_enabled=True, last_login=NOON),
            Peer(id="1", user_id="u", last_login=NOON),
            *(
                Peer(id="1", user_id="u", login_expiration_enabled=True, last_login=at)
                for at in NEVER
            ),
        ):
            self.assertEqual([], self.expiration(never))

    def test_accounts_unknown(self) -> None:
        """Only this family is missing while the account is unknown."""
        known = scrape(
            "peers",
            Inventory(
                peers=(self.peer,),
                accounts=(
                    NetBirdAccount(
                        id="a",
                        settings=NetBirdSettings(peer_login_expiration_enabled=True),
                    ),
                ),
            ),
        )
        unknown = scrape("peers", Inventory(peers=(self.peer,)))
        self.assertEqual({self.family}, set(known) - set(unknown))
        self.assertEqual(set(), set(unknown) - set(known))
