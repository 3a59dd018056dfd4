"""Name resolution: nameserver groups, DNS settings and zones."""

from msgspec import Struct

from api_exporter.collectors.rows import ObjectKind, distinct_count, id_and_name, length
from api_exporter.exposition.text import count_by, labels
from api_exporter.netbird.bodies import DocumentDecoder, ListDecoder
from api_exporter.netbird.members import distinct
from api_exporter.netbird.records import Count, ShownText
from api_exporter.netbird.resources import Resource
from api_exporter.subjects import Subject


class Nameserver(Struct, frozen=True, gc=False, kw_only=True):
    """A DNS server of a nameserver group."""

    ns_type: str = ""
    port: Count = 0


class NameserverGroup(Struct, frozen=True, gc=False, kw_only=True):
    """DNS servers, and the groups whose peers use them (`/api/dns/nameservers`)."""

    id: str
    name: ShownText = ""
    enabled: bool = False
    primary: bool = False
    nameservers: tuple[Nameserver, ...] | None = None
    domains: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None


class DnsSettings(Struct, frozen=True, gc=False, kw_only=True):
    """DNS settings (`/api/dns/settings`). The list holds ids of groups."""

    disabled_management_groups: tuple[str, ...] | None = None


class DnsRecord(Struct, frozen=True, gc=False, kw_only=True):
    """A record of a zone."""

    id: str = ""
    type: str = ""


class DnsZone(Struct, frozen=True, gc=False, kw_only=True):
    """A zone served to peers (`/api/dns/zones`)."""

    id: str
    name: ShownText = ""
    domain: ShownText = ""
    enabled: bool = False
    records: tuple[DnsRecord, ...] | None = None


NAMESERVERS = Resource(
    "nameservers",
    "api/dns/nameservers",
    ListDecoder(NameserverGroup),
    permission="nameservers",
)
DNS_SETTINGS = Resource(
    "dns_settings", "api/dns/settings", DocumentDecoder(DnsSettings), permission="dns"
)
DNS_ZONES = Resource(
    "dns_zones", "api/dns/zones", ListDecoder(DnsZone), permission="dns"
)

NAMESERVER_GROUP = ObjectKind[NameserverGroup](
    NAMESERVERS, id_and_name("nameserver_group")
)

DNS_SETTING = ObjectKind[DnsSettings](DNS_SETTINGS)

ZONE = ObjectKind[DnsZone](DNS_ZONES, id_and_name("dns_zone"))

FAMILIES = (
    NAMESERVER_GROUP.count_enabled(
        "netbird_api_nameserver_groups", "nameserver groups"
    ),
    NAMESERVER_GROUP.info(
        "netbird_api_nameserver_group_info",
        "Properties of a nameserver group, to join on nameserver_group_id (always 1)",
        {"primary": "primary"},
    ),
    NAMESERVER_GROUP.enabled(
        "netbird_api_nameserver_group_enabled", "nameserver group"
    ),
    NAMESERVER_GROUP.field(
        "netbird_api_nameserver_group_nameservers",
        "Number of nameservers in the nameserver group",
        "nameservers",
        length,
        alert="1: there is no second nameserver",
    ),
    NAMESERVER_GROUP.field(
        "netbird_api_nameserver_group_domains",
        "Number of domains that the nameserver group resolves (0 = all domains)",
        "domains",
        length,
    ),
    NAMESERVER_GROUP.field(
        "netbird_api_nameserver_group_groups",
        "Number of groups whose peers use the nameserver group",
        "groups",
        distinct_count,
        alert="0 for an enabled group: no peer uses it",
    ),
    NAMESERVER_GROUP.count(
        "netbird_api_nameservers",
        "Number of nameservers in all nameserver groups by protocol and port",
        {"ns_type": "ns_type", "port": "port"},
        elements=lambda group: group.nameservers or (),
        source="dns/nameservers[].nameservers[].{ns_type,port}",
    ),
    DNS_SETTING.field(
        "netbird_api_dns_disabled_management_groups",
        "Number of groups whose DNS NetBird does not manage",
        "disabled_management_groups",
        distinct_count,
    ),
    ZONE.count_enabled("netbird_api_dns_zones", "DNS zones"),
    ZONE.info(
        "netbird_api_dns_zone_info",
        "Properties of a DNS zone, to join on dns_zone_id (always 1)",
        {"domain": "domain"},
    ),
    ZONE.enabled("netbird_api_dns_zone_enabled", "DNS zone"),
    ZONE.samples(
        "netbird_api_dns_zone_records",
        "Number of records in the DNS zone by type",
        "dns/zones[].records[].type",
        lambda zones: count_by(
            labels(dns_zone_id=zone.id, dns_zone=zone.name, record_type=record.type)
            for zone in zones
            for record in distinct(zone.records)
        ),
    ),
)

SUBJECT = Subject(__name__, (NAMESERVERS, DNS_SETTINGS, DNS_ZONES), FAMILIES)
