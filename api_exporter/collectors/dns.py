"""Name resolution: nameserver groups, DNS settings and zones."""

from collections.abc import Iterator

from api_exporter.collectors.once import Once
from api_exporter.exposition.text import (
    Family,
    Metric,
    boolean,
    counted,
    halves,
    labels,
    single,
)
from api_exporter.netbird.facts.members import distinct
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import DnsZone, NameserverGroup

READS = ("nameservers", "dns_settings", "dns_zones")

NAMESERVER_GROUPS = Metric(
    name="netbird_api_nameserver_groups",
    help="Number of nameserver groups by whether they are enabled.",
    source="dns/nameservers[].enabled",
)
NAMESERVER_GROUP_INFO = Metric(
    name="netbird_api_nameserver_group_info",
    help="Properties of a nameserver group, to be joined by its id. Always 1.",
    source="dns/nameservers[]",
)
NAMESERVER_GROUP_ENABLED = Metric(
    name="netbird_api_nameserver_group_enabled",
    help="Whether the nameserver group is enabled.",
    source="dns/nameservers[].enabled",
)
NAMESERVER_GROUP_NAMESERVERS = Metric(
    name="netbird_api_nameserver_group_nameservers",
    help="Number of nameservers in the group.",
    source="dns/nameservers[].nameservers",
    alert="1: no second one to turn to",
)
NAMESERVER_GROUP_DOMAINS = Metric(
    name="netbird_api_nameserver_group_domains",
    help="Number of domains that the group resolves; 0 for all of them.",
    source="dns/nameservers[].domains",
)
NAMESERVER_GROUP_GROUPS = Metric(
    name="netbird_api_nameserver_group_groups",
    help="Number of groups of peers that get these nameservers.",
    source="dns/nameservers[].groups",
    alert="0 for an enabled group: nobody uses it",
)
NAMESERVERS = Metric(
    name="netbird_api_nameservers",
    help="Number of nameservers in all groups by protocol and port.",
    source="dns/nameservers[].nameservers[].{ns_type,port}",
)
DISABLED_MANAGEMENT_GROUPS = Metric(
    name="netbird_api_dns_disabled_management_groups",
    help="Number of groups whose DNS is not managed.",
    source="dns/settings.disabled_management_groups",
)
ZONES = Metric(
    name="netbird_api_dns_zones",
    help="Number of DNS zones by whether they are enabled.",
    source="dns/zones[].enabled",
)
ZONE_INFO = Metric(
    name="netbird_api_dns_zone_info",
    help="Properties of a DNS zone, to be joined by dns_zone_id. Always 1.",
    source="dns/zones[]",
)
ZONE_ENABLED = Metric(
    name="netbird_api_dns_zone_enabled",
    help="Whether the DNS zone is enabled.",
    source="dns/zones[].enabled",
)
ZONE_RECORDS = Metric(
    name="netbird_api_dns_zone_records",
    help="Number of records in the zone by type.",
    source="dns/zones[].records[].type",
)


def measure(inventory: Inventory) -> Iterator[Family | None]:
    """All families of the three resources, each as soon as it is known."""
    if inventory.nameservers is not None:
        yield from _nameservers(inventory.nameservers)
    for settings in inventory.dns_settings or ():
        disabled = len(set(settings.disabled_management_groups or ()))
        yield single(DISABLED_MANAGEMENT_GROUPS, disabled)
    if inventory.dns_zones is not None:
        yield from _zones(inventory.dns_zones)


def _nameservers(groups: tuple[NameserverGroup, ...]) -> Iterator[Family]:
    yield halves(NAMESERVER_GROUPS, "enabled", (group.enabled for group in groups))
    yield Family(
        NAMESERVER_GROUP_INFO,
        (
            (
                labels(
                    nameserver_group_id=group.id,
                    nameserver_group=group.name,
                    primary=boolean(group.primary),
                ),
                1,
            )
            for group in groups
        ),
    )
    keyed = Once(
        (labels(nameserver_group_id=group.id, nameserver_group=group.name), group)
        for group in groups
    )
    yield Family(
        NAMESERVER_GROUP_ENABLED, ((key, int(group.enabled)) for key, group in keyed)
    )
    yield Family(
        NAMESERVER_GROUP_NAMESERVERS,
        ((key, len(group.nameservers or ())) for key, group in keyed),
    )
    yield Family(
        NAMESERVER_GROUP_DOMAINS,
        ((key, len(group.domains or ())) for key, group in keyed),
    )
    yield Family(
        NAMESERVER_GROUP_GROUPS,
        ((key, len(set(group.groups or ()))) for key, group in keyed),
    )
    yield counted(
        NAMESERVERS,
        (
            labels(ns_type=server.ns_type, port=str(server.port))
            for group in groups
            for server in group.nameservers or ()
        ),
    )


def _zones(zones: tuple[DnsZone, ...]) -> Iterator[Family]:
    yield halves(ZONES, "enabled", (zone.enabled for zone in zones))
    yield Family(
        ZONE_INFO,
        (
            (labels(dns_zone_id=zone.id, dns_zone=zone.name, domain=zone.domain), 1)
            for zone in zones
        ),
    )
    yield Family(
        ZONE_ENABLED,
        (
            (labels(dns_zone_id=zone.id, dns_zone=zone.name), int(zone.enabled))
            for zone in zones
        ),
    )
    yield counted(
        ZONE_RECORDS,
        (
            labels(dns_zone_id=zone.id, dns_zone=zone.name, record_type=record.type)
            for zone in zones
            for record in distinct(zone.records)
        ),
    )
