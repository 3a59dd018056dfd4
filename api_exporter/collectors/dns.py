"""Name resolution: nameserver groups, DNS settings and zones."""

from api_exporter.collectors.rows import ObjectKind, distinct_count, length
from api_exporter.exposition.text import boolean, count_by, labels
from api_exporter.netbird.facts.members import distinct
from api_exporter.netbird.records import DnsSettings, DnsZone, NameserverGroup

NAMESERVER_GROUPS = ObjectKind[NameserverGroup](
    "nameservers",
    "dns/nameservers[]",
    lambda group: labels(nameserver_group_id=group.id, nameserver_group=group.name),
)
DNS_SETTINGS = ObjectKind[DnsSettings]("dns_settings", "dns/settings")
ZONES = ObjectKind[DnsZone](
    "dns_zones",
    "dns/zones[]",
    lambda zone: labels(dns_zone_id=zone.id, dns_zone=zone.name),
)

ROWS = (
    NAMESERVER_GROUPS.count_true_and_false(
        "netbird_api_nameserver_groups",
        "Number of nameserver groups by whether they are enabled",
        "enabled",
    ),
    NAMESERVER_GROUPS.each(
        "netbird_api_nameserver_group_info",
        "Properties of a nameserver group, to join on nameserver_group_id (always 1)",
        "dns/nameservers[]",
        labels=lambda group: labels(
            nameserver_group_id=group.id,
            nameserver_group=group.name,
            primary=boolean(group.primary),
        ),
    ),
    NAMESERVER_GROUPS.field(
        "netbird_api_nameserver_group_enabled",
        "Whether the nameserver group is enabled (1 = yes, 0 = no)",
        "enabled",
    ),
    NAMESERVER_GROUPS.field(
        "netbird_api_nameserver_group_nameservers",
        "Number of nameservers in the nameserver group",
        "nameservers",
        length,
        alert="1: there is no second nameserver",
    ),
    NAMESERVER_GROUPS.field(
        "netbird_api_nameserver_group_domains",
        "Number of domains that the nameserver group resolves (0 = all domains)",
        "domains",
        length,
    ),
    NAMESERVER_GROUPS.field(
        "netbird_api_nameserver_group_groups",
        "Number of groups whose peers use the nameserver group",
        "groups",
        distinct_count,
        alert="0 for an enabled group: no peer uses it",
    ),
    NAMESERVER_GROUPS.count(
        "netbird_api_nameservers",
        "Number of nameservers in all nameserver groups by protocol and port",
        {"ns_type": "ns_type", "port": "port"},
        elements=lambda group: group.nameservers or (),
        source="dns/nameservers[].nameservers[].{ns_type,port}",
    ),
    DNS_SETTINGS.field(
        "netbird_api_dns_disabled_management_groups",
        "Number of groups whose DNS NetBird does not manage",
        "disabled_management_groups",
        distinct_count,
    ),
    ZONES.count_true_and_false(
        "netbird_api_dns_zones",
        "Number of DNS zones by whether they are enabled",
        "enabled",
    ),
    ZONES.each(
        "netbird_api_dns_zone_info",
        "Properties of a DNS zone, to join on dns_zone_id (always 1)",
        "dns/zones[]",
        labels=lambda zone: labels(
            dns_zone_id=zone.id, dns_zone=zone.name, domain=zone.domain
        ),
    ),
    ZONES.field(
        "netbird_api_dns_zone_enabled",
        "Whether the DNS zone is enabled (1 = yes, 0 = no)",
        "enabled",
    ),
    ZONES.family(
        "netbird_api_dns_zone_records",
        "Number of records in the DNS zone by type",
        "dns/zones[].records[].type",
        lambda metric, zones: count_by(
            metric,
            (
                labels(dns_zone_id=zone.id, dns_zone=zone.name, record_type=record.type)
                for zone in zones
                for record in distinct(zone.records)
            ),
        ),
    ),
)
