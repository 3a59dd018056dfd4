"""Memberships."""

from tests.reference.fields import Known, objects, own, text
from tests.reference.joins import detailed
from tests.reference.page import Page, Settings, cut


def memberships(page: Page, known: Known, settings: Settings) -> None:
    chosen = detailed(known, settings)
    for group in known.get("groups", []):
        last = {cut(text(peer, "id")): peer for peer in objects(group, "peers")}
        for member in last.values():
            id_ = text(member, "id")
            if id_ and (chosen is None or id_ in chosen):
                page.put(
                    "group_member", 1, **own("group", group), **own("peer", member)
                )
