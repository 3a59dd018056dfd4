"""Policies and posture checks."""

import re

from tests.reference.fields import (
    Known,
    Record,
    distinct,
    flag,
    ids,
    number,
    objects,
    own,
    part,
    text,
)
from tests.reference.joins import has, members, named
from tests.reference.page import Page, Settings, boolean
from tests.reference.shapes import GROUPS, TYPED, WORDS, many, thing

RECORDS = {
    "policies": thing(
        "id",
        "enabled",
        shown="name",
        source_posture_checks=WORDS,
        rules=many(
            thing(
                "id action protocol",
                "enabled",
                sources=GROUPS,
                destinations=GROUPS,
                sourceResource=TYPED,
                destinationResource=TYPED,
            )
        ),
    ),
    "posture_checks": thing(
        "id", shown="name", checks=thing(nb_version_check=thing("min_version"))
    ),
}


Release = tuple[int, int, int]


def policies(page: Page, known: Known, _settings: Settings) -> None:
    if has(known, "policies"):
        page.halves("policies", known["policies"], "enabled")
        for policy in known["policies"]:
            _policy(page, known, policy)
    if has(known, "posture_checks"):
        page.put("posture_checks", len(known["posture_checks"]))
        for check in known["posture_checks"]:
            _check(page, known, check)


def _policy(page: Page, known: Known, policy: Record) -> None:
    of = own("policy", policy)
    rules = distinct(objects(policy, "rules"))
    enabled = [rule for rule in rules if flag(rule, "enabled")]
    for rule in rules:
        kind = {name: text(rule, name) for name in ("action", "protocol")}
        page.add("policy_rules", 1, **kind, enabled=boolean(flag(rule, "enabled")))
    page.put("policy_info", 1, **of)
    page.put("policy_enabled", flag(policy, "enabled"), **of)
    page.put("policy_enabled_rules", len(enabled), **of)
    if has(known, "groups"):
        empty = sum(
            _empty(known, objects(rule, side), part(rule, single))
            for rule in enabled
            for side, single in (
                ("sources", "sourceResource"),
                ("destinations", "destinationResource"),
            )
        )
        page.put("policy_empty_sides", empty if flag(policy, "enabled") else 0, **of)


def _empty(known: Known, groups: list[Record], resource: Record) -> bool:
    """Return whether a side of a rule has neither peers nor resources."""
    if text(resource, "id"):
        return False
    listed = named(known["groups"])
    sizes = [
        number(listed[id_], "peers_count") + number(listed[id_], "resources_count")
        for id_ in (text(group, "id") for group in groups)
        if id_ in listed
    ]
    return not any(size > 0 for size in sizes)


def _check(page: Page, known: Known, check: Record) -> None:
    id_ = text(check, "id")
    of = own("posture_check", check)
    page.put("posture_check_info", 1, **of)
    if not has(known, "policies"):
        return
    users = [
        policy
        for policy in known["policies"]
        if flag(policy, "enabled") and id_ in ids(policy, "source_posture_checks")
    ]
    page.put("posture_check_policies", len(users), **of)
    minimum = part(part(check, "checks"), "nb_version_check")
    oldest = _release(text(minimum, "min_version"))
    if oldest is None or not has(known, "groups", "peers"):
        return
    sources = {
        text(group, "id")
        for policy in users
        for rule in distinct(objects(policy, "rules"))
        if flag(rule, "enabled")
        for group in objects(rule, "sources")
    }
    concerned: set[str] = set()
    for group in known["groups"]:
        if text(group, "id") in sources:
            concerned |= members(group)
    below = 0
    for peer in known["peers"]:
        release = _release(text(peer, "version"))
        if text(peer, "id") in concerned and release is not None:
            below += release < oldest
    page.put("posture_check_peers_below_min_version", below, **of)


def _release(version: str) -> Release | None:
    match = re.fullmatch(r"v?([0-9]{1,99})\.([0-9]{1,99})\.([0-9]{1,99})", version)
    return match and (int(match[1]), int(match[2]), int(match[3]))
