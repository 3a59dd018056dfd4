"""Nameserver groups, which are the groups here, and DNS settings."""

from collections.abc import Iterator

from api_exporter.exposition.text import (
    Family,
    Labels,
    Metric,
    boolean,
    counted,
    labels,
    single,
)
from api_exporter.netbird.records import DnsSettings, NameserverGroup

NAMESERVER_GROUPS = Metric(
    name="netbird_dns_nameserver_groups",
    help="Number of nameserver groups.",
    source="dns/nameservers[]",
)
ENABLED = Metric(
    name="netbird_dns_nameserver_groups_enabled",
    help="Number of nameserver groups by whether they are enabled.",
    source="dns/nameservers[].enabled",
)
PRIMARY = Metric(
    name="netbird_dns_nameserver_groups_primary",
    help="Number of nameserver groups by whether they are primary.",
    source="dns/nameservers[].primary",
)
DOMAINS = Metric(
    name="netbird_dns_nameserver_group_domains_count",
    help="Number of domains that the nameserver group resolves; 0 for all of them.",
    source="dns/nameservers[].domains",
)
NAMESERVERS = Metric(
    name="netbird_dns_nameservers",
    help="Number of nameservers in the nameserver group.",
    source="dns/nameservers[].nameservers",
)
BY_TYPE = Metric(
    name="netbird_dns_nameservers_by_type",
    help="Number of nameservers in all groups by protocol.",
    source="dns/nameservers[].nameservers[].ns_type",
)
BY_PORT = Metric(
    name="netbird_dns_nameservers_by_port",
    help="Number of nameservers in all groups by port.",
    source="dns/nameservers[].nameservers[].port",
)
DISABLED = Metric(
    name="netbird_dns_management_disabled_groups_count",
    help="Number of groups whose DNS is not managed.",
    source="dns/settings.disabled_management_groups",
)


def families(groups: tuple[NameserverGroup, ...]) -> Iterator[Family]:
    yield single(NAMESERVER_GROUPS, len(groups))
    yield counted(ENABLED, (labels(enabled=boolean(g.enabled)) for g in groups))
    yield counted(PRIMARY, (labels(primary=boolean(g.primary)) for g in groups))
    yield Family(DOMAINS, ((_labels(g), len(g.domains or ())) for g in groups))
    yield Family(NAMESERVERS, ((_labels(g), len(g.nameservers or ())) for g in groups))
    yield counted(
        BY_TYPE,
        (
            labels(ns_type=server.ns_type)
            for g in groups
            for server in g.nameservers or ()
        ),
    )
    yield counted(
        BY_PORT,
        (
            labels(port=str(server.port))
            for g in groups
            for server in g.nameservers or ()
        ),
    )


def disabled(settings: DnsSettings) -> Family:
    """How many groups' DNS is not managed."""
    return single(DISABLED, len(settings.disabled_management_groups or ()))


def _labels(group: NameserverGroup) -> Labels:
    return labels(group_id=group.id, group_name=group.name)
