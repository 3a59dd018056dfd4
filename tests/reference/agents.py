"""Families of the Agent Network that join lists: references and limits."""

from collections.abc import Iterator

from tests.reference.fields import (
    Known,
    Record,
    amount,
    flag,
    ids,
    instant,
    number,
    own,
    part,
    text,
)
from tests.reference.joins import has, members, named
from tests.reference.page import Page, Settings, date


def agent_network(page: Page, known: Known, settings: Settings) -> None:
    if not known.get("agent_providers"):
        return  # no other resource is requested
    _policies(page, known)
    _rules(page, known)
    if has(known, "agent_policies", "agent_budget_rules"):
        _limits(page, known, settings)
    if has(known, "agent_consumption"):
        _consumption(page, known, settings)
    for chosen in known.get("agent_settings", []):
        for denials in known.get("agent_denials", []):
            if flag(chosen, "enable_log_collection"):
                same = date(settings.when("agent_denials")) == date(settings.now)
                denied = number(denials, "total_records") if same else 0
                page.put("agent_denied_requests", denied)


def _policies(page: Page, known: Known) -> None:
    for policy in known.get("agent_policies", []):
        of = own("agent_policy", policy)
        providers = named(known["agent_providers"])
        enabled = [
            id_
            for id_ in ids(policy, "destination_provider_ids")
            if id_ in providers and flag(providers[id_], "enabled")
        ]
        page.put("agent_policy_providers_enabled", len(enabled), **of)
        if has(known, "agent_guardrails", "groups"):
            missing = sum(
                id_ not in named(known[resource])
                for field, resource in (
                    ("source_groups", "groups"),
                    ("destination_provider_ids", "agent_providers"),
                    ("guardrail_ids", "agent_guardrails"),
                )
                for id_ in ids(policy, field)
            )
            page.put("agent_policy_missing_references", missing, **of)


def _rules(page: Page, known: Known) -> None:
    if not has(known, "groups", "users", "peers"):
        return
    for rule in known.get("agent_budget_rules", []):
        missing = set(ids(rule, "target_groups")) - set(named(known["groups"]))
        absent = set(ids(rule, "target_users")) - _listed(known)
        of = own("agent_budget_rule", rule)
        count = len(missing) + len(absent)
        page.put("agent_budget_rule_missing_references", count, **of)


def _limits(page: Page, known: Known, settings: Settings) -> None:
    for limit_of, resource in (
        ("policy", "agent_policies"),
        ("budget_rule", "agent_budget_rules"),
    ):
        for record in known[resource]:
            for limit in _caps(record) if flag(record, "enabled") else ():
                per, unit, window, cap = limit
                of = {"limit_of": limit_of, **own("limit", record), "per": per}
                of["window_seconds"] = str(window)
                page.put(f"agent_limit_{unit}", cap, **of)
                if has(known, "agent_consumption", "groups", "users", "peers"):
                    ratio = _ratio(known, settings, limit_of, record, limit)
                    page.put("agent_limit_used_ratio", ratio, **of, unit=unit)


Cap = tuple[str, str, int, float]


def _caps(record: Record) -> Iterator[Cap]:
    limits = part(record, "limits")
    for name, unit, suffix in (
        ("token_limit", "tokens", ""),
        ("budget_limit", "usd", "_usd"),
    ):
        half = part(limits, name)
        for per in ("group", "user"):
            cap = amount(half, f"{per}_cap{suffix}")
            if flag(half, "enabled") and cap > 0:
                yield per, unit, number(half, "window_seconds"), cap


def _ratio(
    known: Known, settings: Settings, limit_of: str, record: Record, limit: Cap
) -> float | None:
    per, unit, window, cap = limit
    if window < settings.consumption_interval:
        return None
    if limit_of == "policy" and unit == "usd":
        halves = part(record, "limits")
        tokens, budget = part(halves, "token_limit"), part(halves, "budget_limit")
        if flag(tokens, "enabled") and (
            number(tokens, "window_seconds") != number(budget, "window_seconds")
        ):
            return None
    bound = _bound(known, limit_of, record, per)
    if not bound:
        return None
    shares = [0.0]
    for row in _current(known, settings):
        if (
            text(row, "dimension_kind") == per
            and number(row, "window_seconds") == window
            and text(row, "dimension_id") in bound
        ):
            spent = number(row, "tokens_input") + number(row, "tokens_output")
            shares.append(
                (spent if unit == "tokens" else amount(row, "cost_usd")) / cap
            )
    return max(shares)


def _bound(known: Known, limit_of: str, record: Record, per: str) -> set[str]:
    groups = named(known["groups"])
    names = ids(record, "source_groups" if limit_of == "policy" else "target_groups")
    if per == "group":
        return {name for name in names if name in groups}
    users = ids(record, "target_users") if limit_of == "budget_rule" else []
    if limit_of == "budget_rule" and not names and not users:
        return _listed(known)
    bound = {user for user in users if user in _listed(known)}
    peers = named(known["peers"])
    for name in names:
        for member in members(groups[name]) if name in groups else ():
            if member in peers:
                bound |= {member, text(peers[member], "user_id")} - {""}
    return bound


def _listed(known: Known) -> set[str]:
    return set(named(known["users"])) | set(named(known["peers"]))


def _current(known: Known, settings: Settings) -> list[Record]:
    """Return the rows of windows at the response's time; ended windows are empty."""
    found: dict[tuple[str, str, int], Record] = {}
    for row in known["agent_consumption"]:
        window = number(row, "window_seconds")
        begin = instant(row, "window_start_utc") or 0  # windows count from the epoch
        if window <= 0 or begin % window:
            continue
        if begin <= settings.when("agent_consumption") < begin + window:
            key = text(row, "dimension_kind"), text(row, "dimension_id")
            ended: Record = {
                "dimension_kind": key[0],
                "dimension_id": key[1],
                "window_seconds": window,
            }
            found[(*key, window)] = row if settings.now < begin + window else ended
    return list(found.values())


def _consumption(page: Page, known: Known, settings: Settings) -> None:
    for row in _current(known, settings):
        kind, id_ = text(row, "dimension_kind"), text(row, "dimension_id")
        window = {"window_seconds": str(number(row, "window_seconds"))}
        if kind == "group" and has(known, "groups") and id_ in named(known["groups"]):
            of = own("group", named(known["groups"])[id_]) | window
        elif (
            kind == "user"
            and "usage" in settings.personal
            and has(known, "users", "peers")
            and id_ in _listed(known)
        ):
            kind = "consumer"
            of = {"consumer_id": id_, **window}
        else:
            continue
        for direction in ("input", "output"):
            tokens = number(row, f"tokens_{direction}")
            page.put(f"agent_{kind}_tokens", tokens, **of, direction=direction)
        page.put(f"agent_{kind}_cost_usd", amount(row, "cost_usd"), **of)
