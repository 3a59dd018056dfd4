"""Members of groups."""

from tests.reference.bodies import Known
from tests.reference.fields import objects, text
from tests.reference.joins import detailed
from tests.reference.page import Page, Settings, cut


def memberships(known: Known, settings: Settings) -> Page:
    page = Page()
    chosen = detailed(known, settings)
    for group in known.get("groups", []):
        last = {cut(text(peer, "id")): peer for peer in objects(group, "peers")}
        for member in last.values():
            id_ = text(member, "id")
            if id_ and (chosen is None or id_ in chosen):
                page.put(
                    "netbird_api_group_member",
                    1,
                    group_id=text(group, "id"),
                    group=text(group, "name"),
                    peer_id=id_,
                    peer=text(member, "name"),
                )
    return page
