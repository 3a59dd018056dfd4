"""The Agent Network: providers, limits and usage."""

from collections.abc import Iterator
from fractions import Fraction

from tests.reference.fields import (
    Known,
    Record,
    amount,
    flag,
    ids,
    instant,
    number,
    objects,
    own,
    part,
    text,
)
from tests.reference.joins import has, members, named
from tests.reference.page import Page, Settings, date
from tests.reference.shapes import GROUPS, WORDS, thing

_LIMITS = thing(
    token_limit=thing(yes="enabled", counts="group_cap user_cap window_seconds"),
    budget_limit=thing(
        yes="enabled", counts="window_seconds", amounts="group_cap_usd user_cap_usd"
    ),
)


_USAGE = thing(
    "period_start",
    counts="input_tokens output_tokens cached_input_tokens cache_creation_tokens",
    amounts="input_cost_usd output_cost_usd cached_input_cost_usd"
    " cache_creation_cost_usd",
)


RECORDS = {
    "agent_providers": thing(
        "id", "enabled skip_tls_verification", shown="name provider_id", models=GROUPS
    ),
    "agent_policies": thing(
        "id",
        "enabled",
        shown="name",
        source_groups=WORDS,
        destination_provider_ids=WORDS,
        guardrail_ids=WORDS,
        limits=_LIMITS,
    ),
    "agent_budget_rules": thing(
        "id",
        "enabled",
        shown="name",
        target_groups=WORDS,
        target_users=WORDS,
        limits=_LIMITS,
    ),
    "agent_guardrails": thing("id"),
    "agent_settings": thing(
        yes="enable_log_collection enable_prompt_collection redact_pii dedicated",
        counts="access_log_retention_days",
    ),
    "agent_consumption": thing(
        "dimension_kind dimension_id",
        counts="window_seconds tokens_input tokens_output",
        times="window_start_utc",
        amounts="cost_usd",
    ),
    "agent_usage": _USAGE,
    "agent_usage_earlier": _USAGE,
    "agent_denials": thing(counts="total_records"),
}


SETTINGS = (
    *("enable_log_collection", "enable_prompt_collection", "redact_pii"),
    "dedicated",
)
KINDS = ("input", "output", "cached_input", "cache_creation")


def agent_network(page: Page, known: Known, settings: Settings) -> None:
    _providers(page, known)
    if not known.get("agent_providers"):
        return  # no other resource is requested
    _policies(page, known)
    _rules(page, known)
    if has(known, "agent_policies", "agent_budget_rules"):
        _limits(page, known, settings)
    if has(known, "agent_consumption"):
        _consumption(page, known, settings)
    _usage(page, known, settings)
    for chosen in known.get("agent_settings", []):
        for name in SETTINGS:
            page.put("agent_setting_enabled", flag(chosen, name), setting=name)
        days = number(chosen, "access_log_retention_days")
        if days > 0:
            page.put("agent_access_log_retention_seconds", 86400 * days)
        for denials in known.get("agent_denials", []):
            if flag(chosen, "enable_log_collection"):
                same = date(settings.when("agent_denials")) == date(settings.now)
                denied = number(denials, "total_records") if same else 0
                page.put("agent_denied_requests", denied)


def _providers(page: Page, known: Known) -> None:
    if not has(known, "agent_providers"):
        return
    providers = known["agent_providers"]
    page.halves("agent_providers", providers, "enabled")
    for provider in providers:
        of = own("agent_provider", provider)
        catalog = text(provider, "provider_id")
        page.put("agent_provider_info", 1, **of, catalog_id=catalog)
        page.put("agent_provider_enabled", flag(provider, "enabled"), **of)
        verified = not flag(provider, "skip_tls_verification")
        page.put("agent_provider_tls_verified", verified, **of)
        page.put("agent_provider_models", len(objects(provider, "models")), **of)


def _policies(page: Page, known: Known) -> None:
    if not has(known, "agent_policies"):
        return
    policies = known["agent_policies"]
    page.halves("agent_policies", policies, "enabled")
    providers = named(known["agent_providers"])
    for policy in policies:
        of = own("agent_policy", policy)
        page.put("agent_policy_enabled", flag(policy, "enabled"), **of)
        enabled = [
            id_
            for id_ in ids(policy, "destination_provider_ids")
            if id_ in providers and flag(providers[id_], "enabled")
        ]
        page.put("agent_policy_providers_enabled", len(enabled), **of)
        if has(known, "agent_guardrails", "groups"):
            missing = 0
            for field, resource in (
                ("source_groups", "groups"),
                ("destination_provider_ids", "agent_providers"),
                ("guardrail_ids", "agent_guardrails"),
            ):
                there = named(known[resource])
                missing += sum(id_ not in there for id_ in ids(policy, field))
            page.put("agent_policy_missing_references", missing, **of)


def _rules(page: Page, known: Known) -> None:
    if not has(known, "agent_budget_rules"):
        return
    rules = known["agent_budget_rules"]
    page.halves("agent_budget_rules", rules, "enabled")
    for rule in rules:
        of = own("agent_budget_rule", rule)
        page.put("agent_budget_rule_enabled", flag(rule, "enabled"), **of)
        if has(known, "groups", "users", "peers"):
            groups = set(named(known["groups"]))
            missing = set(ids(rule, "target_groups")) - groups
            absent = set(ids(rule, "target_users")) - _listed(known)
            number_ = len(missing) + len(absent)
            page.put("agent_budget_rule_missing_references", number_, **of)


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
    page.put("agent_consumption_rows", len(known["agent_consumption"]))
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


def _usage(page: Page, known: Known, settings: Settings) -> None:
    """Put the usage. Earlier days count in the month of their request."""
    if not has(known, "agent_usage"):
        return
    asked, now = date(settings.when("agent_usage")), date(settings.now)
    same_day, same_month = asked == now, asked[:7] == now[:7]
    today = known["agent_usage"]
    earlier = known.get("agent_usage_earlier", [])
    if asked.endswith("-01"):
        earlier = []
    for period, buckets in (
        ("day", today if same_day else []),
        ("month", [*earlier, *today] if same_month else []),
    ):
        for kind in KINDS:
            of = {"period": period, "kind": kind}
            for unit in ("tokens", "cost_usd"):
                name = f"{kind}_{unit}"
                total = sum(Fraction(amount(bucket, name)) for bucket in buckets)
                page.put(f"agent_usage_{unit}", total, **of)
