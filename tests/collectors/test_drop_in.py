"""The drop_in collector: against the reference, and a claim at a time."""

import json
from datetime import UTC, datetime, timedelta, timezone

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.drop_in import BODIES as DROP_IN_BODIES
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    DnsSettings,
    GroupedPeer,
    GroupOfPeer,
    Peer,
    Policy,
    Rule,
    SetupKey,
    User,
)
from tests.bodies import EVERYTHING, finish
from tests.collectors.incumbent import (
    LABELS,
    LEFT_OUT,
    OF_SCRAPES,
    PREFIX,
)
from tests.collectors.samples import Told, told

NOON = datetime(2026, 5, 22, 12, 0, 0, 999_999, tzinfo=UTC)
BODIES = {resource.name: resource.body for resource in EVERYTHING} | DROP_IN_BODIES


def of(*peers: Peer, personal: frozenset[str] = frozenset()) -> Told:
    return told("drop_in", Inventory(peers=peers, personal=personal), PREFIX)


class NamesTests(SynchronousTestCase):
    def test_names(self) -> None:
        """Of the 74 names 70 are published, and the other 4 are not."""
        names = (LABELS, OF_SCRAPES, LEFT_OUT)
        self.assertEqual([58, 12, 4], [len(some) for some in names])
        self.assertEqual(74, len({*LABELS, *OF_SCRAPES, *LEFT_OUT}))


class DropInTests(SynchronousTestCase):
    maxDiff = None

    def test_unknown(self) -> None:
        """Nothing is said of what is unknown; each resource stands alone."""
        self.assertEqual({}, told("drop_in", Inventory(), PREFIX))
        for resource, families in {
            "peers": {
                "peers",
                "peers_connected",
                "peers_ssh_enabled",
                "peers_login_expired",
                "peers_approval_required",
            },
            "groups": {"groups"},
            "users": {
                "users",
                "users_service_users",
                "users_blocked",
                "users_restricted",
            },
            "nameservers": {"dns_nameserver_groups"},
            "networks": {"networks"},
            "setup_keys": set[str](),
            "policies": set[str](),
            "routes": set[str](),
        }.items():
            found = told("drop_in", Inventory().with_(resource, ()), PREFIX)
            self.assertEqual(families, set(found), resource)
        found = told("drop_in", Inventory(dns_settings=(DnsSettings(),)), PREFIX)
        self.assertEqual({"dns_management_disabled_groups_count": ["0"]}, found)

    def test_last_seen(self) -> None:
        """Seconds are whole, and "never" has no series, in whatever zone."""
        east = timezone(timedelta(hours=1))
        key = '{peer_id="1",peer_name="db",hostname="",user_id="u"}'
        for seen, samples in (
            (NOON, [f"{key} 1779451200"]),
            (datetime(1, 1, 1, tzinfo=UTC), []),
            (datetime(1, 1, 1, 1, tzinfo=east), []),
            (None, []),
        ):
            peer = Peer(id="1", name="db", hostname="H", user_id="u", last_seen=seen)
            self.assertEqual(samples, of(peer).get("peer_last_seen_timestamp", []))

    def test_seconds(self) -> None:
        """A time is cut to its second however many digits it has, as Go cuts it."""
        for resource, field, name in (
            ("peers", "last_seen", "peer_last_seen_timestamp"),
            ("users", "last_login", "user_last_login_timestamp"),
            ("setup_keys", "last_used", "setup_key_last_used_timestamp"),
            ("setup_keys", "expires", "setup_key_expires_timestamp"),
        ):
            for fraction in ("", ".9", ".999999", ".9999995", ".9999999", ".999999999"):
                for zone in ("Z", "+00:00"):
                    time = f"2026-05-22T11:59:59{fraction}{zone}"
                    text = json.dumps([{"id": "1", field: time}]).encode()
                    records = finish(BODIES[resource].decode(text)).records
                    known = Inventory().with_(resource, records)
                    [sample] = told("drop_in", known, PREFIX)[name]
                    self.assertEqual("1779451199", sample.split()[-1], time)

    def test_countries(self) -> None:
        """Without a country the city does not count; without leave it is empty."""
        peers = (
            Peer(id="1", country_code="NO", city_name="Bergen"),
            Peer(id="2", country_code="NO", city_name="Oslo"),
            Peer(id="3", country_code="NO"),
            Peer(id="4", city_name="Atlantis"),
            Peer(id="5"),
        )
        self.assertEqual(
            [
                '{country_code="NO",city_name=""} 3',
                '{country_code="unknown",city_name=""} 2',
            ],
            of(*peers)["peers_by_country"],
        )
        self.assertEqual(
            [
                '{country_code="NO",city_name=""} 1',
                '{country_code="NO",city_name="Bergen"} 1',
                '{country_code="NO",city_name="Oslo"} 1',
                '{country_code="unknown",city_name="unknown"} 2',
            ],
            of(*peers, personal=frozenset({"city"}))["peers_by_country"],
        )

    def test_groups(self) -> None:
        """Groups are counted as the peers name them, ids and names whole, each once a
        peer; one without an id does not count.
        """
        first, second = (GroupOfPeer(id=i, name="a_b") for i in ("g_1", "g_2"))
        peers = (
            GroupedPeer(id="1", groups=(first, second, first)),
            GroupedPeer(id="2", groups=(second, GroupOfPeer(name="adrift"))),
            GroupedPeer(id="3", groups=None),
        )
        self.assertEqual(
            [
                '{group_id="g_1",group_name="a_b"} 1',
                '{group_id="g_2",group_name="a_b"} 2',
            ],
            of(*peers)["peers_by_group"],
        )
        self.assertNotIn("peers_by_group", of(Peer(id="1")))

    def test_status(self) -> None:
        """Whether a peer is connected stands in a label, too; no user is unknown."""
        for connected, text in ((True, "true"), (False, "false")):
            peer = Peer(id="1", name="db", connected=connected)
            self.assertEqual(
                [
                    '{peer_name="db",peer_id="1",user_id="unknown",'
                    f'connected="{text}"}} {int(connected)}'
                ],
                of(peer)["peer_connection_status_by_name"],
            )

    def test_issued(self) -> None:
        """Users without an origin are unknown, with an empty one they are not."""
        users = finish(
            BODIES["users"].decode(
                b'[{"id":"1"},{"id":"2","issued":null},{"id":"3","issued":""}]'
            )
        )
        families = told("drop_in", Inventory().with_("users", users.records), PREFIX)
        self.assertEqual(
            ['{issued=""} 1', '{issued="unknown"} 2'], families["users_by_issued"]
        )
        self.assertEqual(['{role="unknown"} 3'], families["users_by_role"])
        self.assertEqual(['{status="unknown"} 3'], families["users_by_status"])

    def test_personal(self) -> None:
        """Only kinds of personal data that may be told fill their labels."""
        peer = Peer(id="1", hostname="HOST", last_seen=NOON)
        user = User(id="u", name="Ada", email="ada@example.com", last_login=NOON)
        for kinds, hostname, email, name in (
            ("", "", "", ""),
            ("hostname", "HOST", "", ""),
            ("email", "", "ada@example.com", ""),
            ("name", "", "", "Ada"),
        ):
            known = Inventory(personal=frozenset({kinds}), peers=(peer,), users=(user,))
            families = told("drop_in", known, PREFIX)
            self.assertIn(
                f'hostname="{hostname}"', families["peer_last_seen_timestamp"][0]
            )
            key = f'{{user_id="u",user_email="{email}",user_name="{name}"}}'
            self.assertEqual(
                [f"{key} 1779451200"], families["user_last_login_timestamp"]
            )
            self.assertEqual([f"{key} 0"], families["user_auto_groups_count"])

    def test_rules(self) -> None:
        """Rules of policies that are disabled count as well."""
        policy = Policy(
            id="1",
            name="p",
            description="d",
            rules=(Rule(enabled=True, action="accept", protocol="tcp"), Rule()),
        )
        self.assertEqual(
            {
                "policies": ['{enabled="false"} 1'],
                "policy_rules_count": ['{policy_id="1",policy_name="p"} 2'],
                "policy_rules_enabled": ['{enabled="false"} 1', '{enabled="true"} 1'],
                "policy_rules_by_protocol": ['{protocol=""} 1', '{protocol="tcp"} 1'],
                "policy_rules_by_action": ['{action=""} 1', '{action="accept"} 1'],
                "policy_info": ['{policy_id="1",policy_name="p",description="d"} 1'],
            },
            told("drop_in", Inventory(policies=(policy,)), PREFIX),
        )

    def test_setup_keys(self) -> None:
        """A key without a limit has the limit 0, one that never expires no expiry."""
        key = SetupKey(id="1", name="k", revoked=True, last_used=NOON)
        families = told("drop_in", Inventory(setup_keys=(key,)), PREFIX)
        mine = '{key_id="1",key_name="k"}'
        self.assertEqual([f"{mine} 0"], families["setup_key_usage_limit"])
        self.assertEqual(
            [f"{mine} 1779451200"], families["setup_key_last_used_timestamp"]
        )
        self.assertEqual(['{revoked="true"} 1'], families["setup_keys_revoked"])
        self.assertNotIn("setup_key_expires_timestamp", families)
