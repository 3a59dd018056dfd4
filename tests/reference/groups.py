"""Groups."""

from tests.reference.bodies import Known
from tests.reference.fields import distinct, number, objects, text
from tests.reference.joins import connected, has, members, named
from tests.reference.page import Page, Settings


def groups(known: Known, _settings: Settings) -> Page:
    page = Page()
    if not has(known, "groups"):
        return page
    for group in known["groups"]:
        issued = text(group, "issued")
        of = {"group_id": text(group, "id"), "group": text(group, "name")}
        page.add("netbird_api_groups", 1, issued=issued or "unknown")
        page.put("netbird_api_group_info", 1, **of, issued=issued)
        page.put("netbird_api_group_peers", number(group, "peers_count"), **of)
        page.put("netbird_api_group_resources", number(group, "resources_count"), **of)
        for resource in distinct(objects(group, "resources")):
            page.add(
                "netbird_api_group_resources_by_type",
                1,
                **of,
                resource_type=text(resource, "type"),
            )
        if has(known, "peers"):
            listed = members(group) & set(named(known["peers"]))
            there = connected(known, listed)
            page.put("netbird_api_group_peers_connected", there, **of)
            page.put("netbird_api_group_peers_offline", len(listed) - there, **of)
    return page
