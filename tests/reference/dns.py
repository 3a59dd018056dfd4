"""Name resolution."""

from tests.reference.bodies import Known
from tests.reference.fields import distinct, flag, ids, number, objects, text, texts
from tests.reference.joins import has
from tests.reference.page import Page, Settings, boolean


def dns(known: Known, _settings: Settings) -> Page:
    return Page({**_nameservers(known), **_settings_of_dns(known), **_zones(known)})


def _nameservers(known: Known) -> Page:
    page = Page()
    if not has(known, "nameservers"):
        return page
    page.halves(
        "netbird_api_nameserver_groups",
        (flag(group, "enabled") for group in known["nameservers"]),
        "enabled",
    )
    for group in known["nameservers"]:
        of = {
            "nameserver_group_id": text(group, "id"),
            "nameserver_group": text(group, "name"),
        }
        page.put(
            "netbird_api_nameserver_group_info",
            1,
            **of,
            primary=boolean(flag(group, "primary")),
        )
        values = {
            "enabled": flag(group, "enabled"),
            "nameservers": len(objects(group, "nameservers")),
            "domains": len(texts(group, "domains")),
            "groups": len(ids(group, "groups")),
        }
        for family, value in values.items():
            page.put(f"netbird_api_nameserver_group_{family}", value, **of)
        for server in objects(group, "nameservers"):
            page.add(
                "netbird_api_nameservers",
                1,
                ns_type=text(server, "ns_type"),
                port=str(number(server, "port")),
            )
    return page


def _settings_of_dns(known: Known) -> Page:
    page = Page()
    for settings in known.get("dns_settings", []):
        page.put(
            "netbird_api_dns_disabled_management_groups",
            len(ids(settings, "disabled_management_groups")),
        )
    return page


def _zones(known: Known) -> Page:
    page = Page()
    if not has(known, "dns_zones"):
        return page
    page.halves(
        "netbird_api_dns_zones",
        (flag(zone, "enabled") for zone in known["dns_zones"]),
        "enabled",
    )
    for zone in known["dns_zones"]:
        of = {"dns_zone_id": text(zone, "id"), "dns_zone": text(zone, "name")}
        page.put("netbird_api_dns_zone_info", 1, **of, domain=text(zone, "domain"))
        page.put("netbird_api_dns_zone_enabled", flag(zone, "enabled"), **of)
        for record in distinct(objects(zone, "records")):
            page.add(
                "netbird_api_dns_zone_records",
                1,
                **of,
                record_type=text(record, "type"),
            )
    return page
