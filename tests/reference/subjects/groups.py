"""Groups and their members."""

from tests.reference.fields import Known, distinct, number, objects, own, text
from tests.reference.joins import connected, has, members, named
from tests.reference.page import Page, Settings
from tests.reference.shapes import NAMED, TYPED, many, thing

RECORDS = {
    "groups": thing(
        "id name",
        shown="issued",
        counts="peers_count resources_count",
        peers=NAMED,
        resources=many(TYPED),
    )
}


def groups(page: Page, known: Known, _settings: Settings) -> None:
    if not has(known, "groups"):
        return
    for group in known["groups"]:
        issued = text(group, "issued")
        of = own("group", group)
        page.add("groups", 1, issued=issued or "unknown")
        page.put("group_info", 1, **of, issued=issued)
        page.put("group_peers", number(group, "peers_count"), **of)
        page.put("group_resources", number(group, "resources_count"), **of)
        for resource in distinct(objects(group, "resources")):
            page.add(
                "group_resources_by_type", 1, **of, resource_type=text(resource, "type")
            )
        if has(known, "peers"):
            listed = members(group) & set(named(known["peers"]))
            there = connected(known, listed)
            page.put("group_peers_connected", there, **of)
            page.put("group_peers_offline", len(listed) - there, **of)
