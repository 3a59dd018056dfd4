"""Name resolution."""

from tests.reference.fields import (
    Known,
    distinct,
    flag,
    ids,
    number,
    objects,
    own,
    text,
    texts,
)
from tests.reference.joins import has
from tests.reference.page import Page, Settings, boolean
from tests.reference.shapes import TYPED, WORDS, many, thing

RECORDS = {
    "nameservers": thing(
        "id",
        "enabled primary",
        shown="name",
        nameservers=many(thing("ns_type", counts="port")),
        domains=WORDS,
        groups=WORDS,
    ),
    "dns_settings": thing(disabled_management_groups=WORDS),
    "dns_zones": thing("id", "enabled", shown="name domain", records=many(TYPED)),
}


def dns(page: Page, known: Known, _settings: Settings) -> None:
    _nameservers(page, known)
    for settings in known.get("dns_settings", []):
        disabled = ids(settings, "disabled_management_groups")
        page.put("dns_disabled_management_groups", len(disabled))
    _zones(page, known)


def _nameservers(page: Page, known: Known) -> None:
    if not has(known, "nameservers"):
        return
    page.halves("nameserver_groups", known["nameservers"], "enabled")
    for group in known["nameservers"]:
        of = own("nameserver_group", group)
        primary = boolean(flag(group, "primary"))
        page.put("nameserver_group_info", 1, **of, primary=primary)
        values = {
            "enabled": flag(group, "enabled"),
            "nameservers": len(objects(group, "nameservers")),
            "domains": len(texts(group, "domains")),
            "groups": len(ids(group, "groups")),
        }
        for family, value in values.items():
            page.put(f"nameserver_group_{family}", value, **of)
        for server in objects(group, "nameservers"):
            port = str(number(server, "port"))
            page.add("nameservers", 1, ns_type=text(server, "ns_type"), port=port)


def _zones(page: Page, known: Known) -> None:
    if not has(known, "dns_zones"):
        return
    page.halves("dns_zones", known["dns_zones"], "enabled")
    for zone in known["dns_zones"]:
        of = own("dns_zone", zone)
        page.put("dns_zone_info", 1, **of, domain=text(zone, "domain"))
        page.put("dns_zone_enabled", flag(zone, "enabled"), **of)
        for record in distinct(objects(zone, "records")):
            page.add("dns_zone_records", 1, **of, record_type=text(record, "type"))
