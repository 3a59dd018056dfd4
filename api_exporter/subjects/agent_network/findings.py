"""The Agent Network: budgets, months that cost more than a limit, lax settings."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from api_exporter.attention.finding import Finder, Finding, FindingKind, Snapshot
from api_exporter.formatting import duration, list_names, safe_line, with_noun
from api_exporter.subjects.agent_network.consumption import (
    Limit,
    Misses,
    consumption_by_unit,
    enabled_providers,
    listed_ids,
    month_cost,
    policy_misses,
    rule_misses,
    used_ratios,
)
from api_exporter.subjects.agent_network.resources import (
    AGENT_BUDGET_RULES,
    AGENT_POLICIES,
    AGENT_PROVIDERS,
    AGENT_SETTINGS,
    AGENT_USAGE,
)

_PARTS = ("limit_of", "limit_id", "per", "unit", "window_seconds")
"""The parts of a limit's id."""


def _pattern(place: int) -> str:
    parts = ["[^/]*"] * len(_PARTS)
    parts[place] = "([^/]*)"
    return "/".join(parts)


_LIMIT_LABELS = (
    *((name, "object_id", _pattern(place)) for place, name in enumerate(_PARTS)),
    ("limit", "object", "(.+)"),
)

BUDGET_USED_UP = FindingKind(
    "NetBirdAgentBudgetUsedUp",
    "Budget",
    "agent_limit",
    lasts="5m",
    summary="The budget of {{ $labels.limit }} is used up",
    description="A {{ $labels.per }} has used all {{ $labels.unit }} that {{"
    " $labels.limit }} allows in {{ with $labels.window_seconds }}{{ . |"
    " humanizeDuration }}{{ end }}. NetBird denies further requests.",
    own_labels=_LIMIT_LABELS,
)
BUDGET_NEARLY_USED_UP = FindingKind(
    "NetBirdAgentBudgetNearlyUsedUp",
    "Budget",
    "agent_limit",
    lasts="5m",
    summary="The budget of {{ $labels.limit }} is nearly used up",
    description="A {{ $labels.per }} has used nearly all {{ $labels.unit }} that {{"
    " $labels.limit }} allows in {{ with $labels.window_seconds }}{{ . |"
    " humanizeDuration }}{{ end }}.",
    own_labels=_LIMIT_LABELS,
)
COST_HIGH = FindingKind(
    "NetBirdAgentCostHigh",
    "The Agent Network",
    lasts="15m",
    summary="The Agent Network has cost more this month than its threshold",
    description="The Agent Network has cost more this month than dollars.agent_month"
    " of the exporter's thresholds.",
)
TLS_UNVERIFIED = FindingKind(
    "NetBirdAgentTlsUnverified",
    "The certificate of agent provider",
    "agent_provider",
    lasts="1h",
    summary="The certificate of agent provider {{ $labels.agent_provider }} is not"
    " verified",
    description="An attacker on the network can read prompts and the key of agent"
    " provider {{ $labels.agent_provider }}.",
)
WITHOUT_PROVIDER = FindingKind(
    "NetBirdAgentPolicyWithoutProvider",
    "Agent policy",
    "agent_policy",
    lasts="1h",
    summary="Agent policy {{ $labels.agent_policy }} has no enabled provider",
    description="NetBird denies the requests of agent policy {{ $labels.agent_policy"
    " }}.",
)
POLICY_REFERENCE_MISSING = FindingKind(
    "NetBirdAgentReferenceMissing",
    "Agent policy",
    "agent_policy",
    lasts="1h",
    summary="{{ $labels.agent_policy }}{{ $labels.agent_budget_rule }} names missing"
    " objects",
    description="{{ $labels.agent_policy }}{{ $labels.agent_budget_rule }} names"
    " groups, users, providers or guardrails that do not exist.",
)
RULE_REFERENCE_MISSING = replace(
    POLICY_REFERENCE_MISSING, noun="Budget rule", object_type="agent_budget_rule"
)
PROMPTS_UNREDACTED = FindingKind(
    "NetBirdAgentPromptsUnredacted",
    "The Agent Network",
    lasts="1h",
    summary="The Agent Network keeps prompts without redaction",
    description="The access log of the Agent Network contains all that people type.",
)

_NOUNS = {"policy": "The budget of agent policy", "budget_rule": "Budget rule"}


def budgets(snapshot: Snapshot) -> Iterator[Finding]:
    share = snapshot.thresholds.shares["agent_budget_used"]
    inventory = replace(snapshot.inventory, now=snapshot.now)
    by_unit = consumption_by_unit(inventory)
    names = {group.id: group.name for group in inventory.groups or ()}
    for limit, peak in used_ratios(inventory).items():
        if peak <= share:
            continue
        spent = peak >= 1
        min_amount = limit.cap if spent else share * limit.cap
        of_groups = by_unit.get(("group", limit.window_seconds, limit.unit), {})
        groups = [
            names[id_] or id_
            for id_ in (limit.groups if limit.per == "group" else ())
            if id_ in names and id_ in of_groups and of_groups[id_] >= min_amount
        ]
        yield snapshot.finding(
            BUDGET_USED_UP if spent else BUDGET_NEARLY_USED_UP,
            _message(limit, peak, groups),
            object_id=f"{limit.kind}/{limit.id}/{limit.per}/{limit.unit}"
            f"/{limit.window_seconds}",
            name=limit.name or limit.id,
            subject=f"{_NOUNS[limit.kind]} {safe_line(limit.name or limit.id)}",
        )


def _message(limit: Limit, peak: float, groups: Sequence[str]) -> str:
    cap = f"{limit.cap:,.2f} USD"
    if limit.unit == "tokens":
        cap = with_noun(int(limit.cap), "token")
    state = "used up" if peak >= 1 else "nearly used up"
    consumers = with_noun(len(groups), "group") if len(groups) > 1 else f"a {limit.per}"
    verb = "have used up to" if len(groups) > 1 else "has used"
    share = peak if peak >= 1 else min(peak, 0.99)  # not used up is not 100%
    return (
        f"is {state}: {consumers} {verb} {share:,.0%} of {cap}"
        f" in {duration(limit.window_seconds)}{list_names(groups)}."
    )


def cost(snapshot: Snapshot) -> Iterator[Finding]:
    limit = snapshot.thresholds.dollars["agent_month"]
    spent = month_cost(AGENT_USAGE.of(snapshot.inventory) or (), snapshot.now)
    if limit is not None and spent is not None and spent > limit:
        yield snapshot.finding(
            COST_HIGH,
            "has cost more this month than its threshold:"
            f" {spent:,.2f} USD of {limit:,.2f} USD.",
        )


def providers(snapshot: Snapshot) -> Iterator[Finding]:
    for provider in AGENT_PROVIDERS.of(snapshot.inventory) or ():
        if provider.enabled and provider.skip_tls_verification:
            yield snapshot.finding(
                TLS_UNVERIFIED,
                "is not verified: an attacker on the network can read prompts and the"
                " key.",
                provider,
            )


def policies(snapshot: Snapshot) -> Iterator[Finding]:
    ids = enabled_providers(snapshot.inventory)
    for policy in AGENT_POLICIES.of(snapshot.inventory) or ():
        if policy.enabled and not ids & set(policy.destination_provider_ids or ()):
            yield snapshot.finding(
                WITHOUT_PROVIDER,
                "has no enabled provider: NetBird denies its requests.",
                policy,
            )


def references(snapshot: Snapshot) -> Iterator[Finding]:
    ids = listed_ids(snapshot.inventory)
    for policy in AGENT_POLICIES.of(snapshot.inventory) or ():
        if policy.enabled and (missing := policy_misses(ids, policy)):
            guarded = any(kind == "guardrail" for kind, _ in missing)
            yield snapshot.finding(
                POLICY_REFERENCE_MISSING,
                f"names {_missing(missing)}.{_UNRESTRICTED if guarded else ''}",
                policy,
            )
    for rule in AGENT_BUDGET_RULES.of(snapshot.inventory) or ():
        if rule.enabled and (missing := rule_misses(ids, rule)):
            yield snapshot.finding(
                RULE_REFERENCE_MISSING,
                f"names {_missing(missing)}. The rule applies to fewer"
                " groups or users than it names.",
                rule,
            )


_UNRESTRICTED = (
    " A guardrail has the allow-list of models: a policy without its only guardrail is"
    " unrestricted."
)


def _missing(missing: Misses) -> str:
    """Return text such as `1 missing object: group abc`."""
    names = list_names(f"{kind} {id_}" for kind, id_ in missing)
    return f"{with_noun(len(missing), 'missing object')}{names}"


def prompts(snapshot: Snapshot) -> Iterator[Finding]:
    for settings in AGENT_SETTINGS.of(snapshot.inventory) or ():
        # Without the collection of the log no request is kept, and no prompt with it.
        is_kept = settings.enable_log_collection and settings.enable_prompt_collection
        if is_kept and not settings.redact_pii:
            yield snapshot.finding(
                PROMPTS_UNREDACTED,
                "keeps prompts without redaction: its access log contains all that"
                " people type.",
            )


FINDERS = (
    Finder(
        budgets,
        (BUDGET_USED_UP, BUDGET_NEARLY_USED_UP),
        (
            "agent_policies",
            "agent_budget_rules",
            "agent_consumption",
            "groups",
            "users",
            "peers",
        ),
    ),
    Finder(cost, (COST_HIGH,), ("agent_usage",)),
    Finder(providers, (TLS_UNVERIFIED,), ("agent_providers",)),
    Finder(policies, (WITHOUT_PROVIDER,), ("agent_policies", "agent_providers")),
    Finder(
        references,
        (POLICY_REFERENCE_MISSING, RULE_REFERENCE_MISSING),
        (
            "agent_policies",
            "agent_budget_rules",
            "agent_providers",
            "agent_guardrails",
            "groups",
            "users",
            "peers",
        ),
    ),
    Finder(prompts, (PROMPTS_UNREDACTED,), ("agent_settings",)),
)
