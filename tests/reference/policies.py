"""Policies and posture checks."""

import re

from tests.reference.bodies import Known
from tests.reference.fields import (
    Record,
    distinct,
    flag,
    ids,
    number,
    objects,
    part,
    text,
)
from tests.reference.joins import has, members, named
from tests.reference.page import Page, Settings, boolean

Release = tuple[int, int, int]


def policies(known: Known, _settings: Settings) -> Page:
    page = Page()
    if has(known, "policies"):
        page.halves(
            "netbird_api_policies",
            (flag(policy, "enabled") for policy in known["policies"]),
            "enabled",
        )
        for policy in known["policies"]:
            _policy(page, known, policy)
    if has(known, "posture_checks"):
        page.put("netbird_api_posture_checks", len(known["posture_checks"]))
        for check in known["posture_checks"]:
            _check(page, known, check)
    return page


def _policy(page: Page, known: Known, policy: Record) -> None:
    of = {"policy_id": text(policy, "id"), "policy": text(policy, "name")}
    rules = distinct(objects(policy, "rules"))
    enabled = [rule for rule in rules if flag(rule, "enabled")]
    for rule in rules:
        page.add(
            "netbird_api_policy_rules",
            1,
            action=text(rule, "action"),
            protocol=text(rule, "protocol"),
            enabled=boolean(flag(rule, "enabled")),
        )
    page.put("netbird_api_policy_info", 1, **of)
    page.put("netbird_api_policy_enabled", flag(policy, "enabled"), **of)
    page.put("netbird_api_policy_enabled_rules", len(enabled), **of)
    if has(known, "groups"):
        empty = sum(
            _empty(known, objects(rule, side), part(rule, single))
            for rule in enabled
            for side, single in (
                ("sources", "sourceResource"),
                ("destinations", "destinationResource"),
            )
        )
        page.put(
            "netbird_api_policy_empty_sides",
            empty if flag(policy, "enabled") else 0,
            **of,
        )


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
    of = {"posture_check_id": id_, "posture_check": text(check, "name")}
    page.put("netbird_api_posture_check_info", 1, **of)
    if not has(known, "policies"):
        return
    users = [
        policy
        for policy in known["policies"]
        if flag(policy, "enabled") and id_ in ids(policy, "source_posture_checks")
    ]
    page.put("netbird_api_posture_check_policies", len(users), **of)
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
    page.put("netbird_api_posture_check_peers_below_min_version", below, **of)


def _release(version: str) -> Release | None:
    match = re.fullmatch(r"v?([0-9]{1,99})\.([0-9]{1,99})\.([0-9]{1,99})", version)
    return match and (int(match[1]), int(match[2]), int(match[3]))
