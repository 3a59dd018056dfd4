"""Who is in which group."""

from tests.reference.bodies import Known
from tests.reference.fields import distinct, objects, text
from tests.reference.joins import detailed
from tests.reference.page import Page, Settings


def memberships(known: Known, settings: Settings) -> Page:
    page = Page()
    chosen = detailed(known, settings)
    for group in known.get("groups", []):
        for member in distinct(objects(group, "peers")):
            if chosen is None or text(member, "id") in chosen:
                page.put(
                    "netbird_api_group_member",
                    1,
                    group_id=text(group, "id"),
                    group=text(group, "name"),
                    peer_id=text(member, "id"),
                    peer=text(member, "name"),
                )
    return page
