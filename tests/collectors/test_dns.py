"""The dns collector."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    DnsRecord,
    DnsSettings,
    DnsZone,
    Nameserver,
    NameserverGroup,
)
from tests.collectors.samples import scrape

INNER = '{nameserver_group_id="n1",nameserver_group="inner"}'


class DnsTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Unknown resources have no families, each without effect on the others."""
        for inventory, families in (
            (Inventory(), set()),
            (Inventory(nameservers=()), {"nameserver_groups"}),
            (
                Inventory(dns_settings=(DnsSettings(),)),
                {"dns_disabled_management_groups"},
            ),
            (Inventory(dns_zones=()), {"dns_zones"}),
        ):
            self.assertEqual(families, set(scrape("dns", inventory)))

    def test_nameserver_groups(self) -> None:
        """A nameserver group has sizes; a null list is an empty one."""
        public = NameserverGroup(
            id="n1",
            name="inner",
            enabled=True,
            primary=True,
            nameservers=(
                Nameserver(ns_type="udp", port=53),
                Nameserver(ns_type="udp", port=53),
                Nameserver(ns_type="pigeon", port=5353),
            ),
            domains=("a.example", "b.example"),
            groups=("g",),
        )
        self.assertEqual(
            {
                "nameserver_groups": ['{enabled="true"} 1', '{enabled="false"} 0'],
                "nameserver_group_info": [
                    (
                        '{nameserver_group_id="n1",nameserver_group="inner",'
                        'primary="true"} 1'
                    )
                ],
                "nameserver_group_enabled": [f"{INNER} 1"],
                "nameserver_group_nameservers": [f"{INNER} 3"],
                "nameserver_group_domains": [f"{INNER} 2"],
                "nameserver_group_groups": [f"{INNER} 1"],
                "nameservers": [
                    '{ns_type="pigeon",port="5353"} 1',
                    '{ns_type="udp",port="53"} 2',
                ],
            },
            scrape("dns", Inventory(nameservers=(public,))),
        )
        self.assertEqual(
            {
                "nameserver_groups": ['{enabled="true"} 0', '{enabled="false"} 1'],
                "nameserver_group_info": [
                    (
                        '{nameserver_group_id="n1",nameserver_group="inner",'
                        'primary="false"} 1'
                    )
                ],
                "nameserver_group_enabled": [f"{INNER} 0"],
                "nameserver_group_nameservers": [f"{INNER} 0"],
                "nameserver_group_domains": [f"{INNER} 0"],
                "nameserver_group_groups": [f"{INNER} 0"],
            },
            scrape(
                "dns",
                Inventory(nameservers=(NameserverGroup(id="n1", name="inner"),)),
            ),
        )

    def test_nameservers_of_all_groups(self) -> None:
        """Nameservers are counted over all groups."""
        groups = tuple(
            NameserverGroup(id=id_, nameservers=(Nameserver(ns_type="udp", port=53),))
            for id_ in ("n1", "n2")
        )
        self.assertEqual(
            ['{ns_type="udp",port="53"} 2'],
            scrape("dns", Inventory(nameservers=groups))["nameservers"],
        )

    def test_settings(self) -> None:
        """Groups whose DNS is not managed are counted; null is none."""
        for groups, count in ((("a", "b"), "2"), ((), "0"), (None, "0")):
            settings = DnsSettings(disabled_management_groups=groups)
            self.assertEqual(
                {"dns_disabled_management_groups": [count]},
                scrape("dns", Inventory(dns_settings=(settings,))),
            )

    def test_zones(self) -> None:
        """A zone has its domain and state; records are counted by type, if any."""
        zones = (
            DnsZone(
                id="z1",
                name="svc",
                domain="svc.internal",
                enabled=True,
                records=(
                    DnsRecord(type="A"),
                    DnsRecord(type="CNAME"),
                    DnsRecord(type="A"),
                ),
            ),
            DnsZone(id="z2", name="svc", records=(DnsRecord(type="A"),)),
            DnsZone(id="z3", name="empty"),
        )
        self.assertEqual(
            {
                "dns_zones": ['{enabled="true"} 1', '{enabled="false"} 2'],
                "dns_zone_info": [
                    '{dns_zone_id="z1",dns_zone="svc",domain="svc.internal"} 1',
                    '{dns_zone_id="z2",dns_zone="svc",domain=""} 1',
                    '{dns_zone_id="z3",dns_zone="empty",domain=""} 1',
                ],
                "dns_zone_enabled": [
                    '{dns_zone_id="z1",dns_zone="svc"} 1',
                    '{dns_zone_id="z2",dns_zone="svc"} 0',
                    '{dns_zone_id="z3",dns_zone="empty"} 0',
                ],
                "dns_zone_records": [
                    '{dns_zone_id="z1",dns_zone="svc",record_type="A"} 2',
                    '{dns_zone_id="z1",dns_zone="svc",record_type="CNAME"} 1',
                    '{dns_zone_id="z2",dns_zone="svc",record_type="A"} 1',
                ],
            },
            scrape("dns", Inventory(dns_zones=zones)),
        )
