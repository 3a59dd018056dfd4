"""Agent Network: the cost of language models, and how full budgets are."""

from deploy.grafana.board import board
from deploy.grafana.panels import THRESHOLDS, UNKNOWN, bars, lines, look, stat
from deploy.grafana.queries import TARGET, label, of, one, or_zero, total

_COST = "netbird_api_agent_usage_cost_usd"

_TOKENS = "netbird_api_agent_usage_tokens"

_WINDOWS = {"3600": "hour", "86400": "day", "2592000": "30 days"}

_LIMIT = ("limit_id", "limit", "limit_of", "per", "unit", "window")

_FULL = {None: "blue", THRESHOLDS.shares["agent_budget_used"]: "orange", 1: "red"}


def _used() -> str:
    """Return the share of each budget that is used, with its window in words."""
    used = label(
        of("netbird_api_agent_limit_used_ratio"),
        "window",
        "$1 s",
        "window_seconds",
        "(.*)",
    )
    for seconds, words in _WINDOWS.items():
        used = label(used, "window", words, "window_seconds", seconds)
    return one(used, *_LIMIT)


def _hourly(series: str, *by: str) -> str:
    """Return the growth in an hour of what begins again each day."""
    now, before = one(series, *by), one(f"{series} offset 1h", *by)
    return f"({now} - {before} >= 0 or {now} and {before})"


def made() -> str:
    day, month = 'period="day"', 'period="month"'
    money = look("currencyUSD", decimals=2, colour="text", empty=UNKNOWN)
    count = look("short", colour="text", empty=UNKNOWN)
    budget = "{{limit}}: {{unit}} of a {{per}}, {{window}} {{account}}"
    missing = [
        or_zero(
            total(
                of(f"netbird_api_agent_{kind}_missing_references"), f"agent_{kind}_id"
            ),
            f"sum by ({TARGET}) ({of(f'netbird_api_agent_{every}')}) == 0",
        )
        for kind, every in (("policy", "policies"), ("budget_rule", "budget_rules"))
    ]
    tokens = of(_TOKENS, day)
    denied = of("netbird_api_agent_denied_requests")
    group = ("group_id", "group", "direction")
    used = of("netbird_api_agent_group_tokens", 'window_seconds="86400"')
    return board(
        "agent-network",
        "Agent Network",
        "Cost, tokens and budgets of NetBird's gateway to language models.",
        [
            stat(
                "Cost today",
                (0, 0, 8, 3),
                "US dollars since 00:00 UTC.",
                {"": total(of(_COST, day), "kind")},
                money,
            ),
            stat(
                "Cost this month",
                (8, 0, 8, 3),
                "US dollars since the first of the month, UTC.",
                {"": total(of(_COST, month), "kind")},
                money,
            ),
            stat(
                "Tokens today",
                (16, 0, 8, 3),
                "Tokens of prompts and answers since 00:00 UTC.",
                {"": total(of(_TOKENS, day, 'kind=~"input|output"'), "kind")},
                count,
            ),
            stat(
                "Denied today",
                (0, 3, 8, 3),
                "Requests that were denied since 00:00 UTC.",
                {"": total(denied)},
                count,
            ),
            stat(
                "Providers",
                (8, 3, 8, 3),
                "Providers that are enabled.",
                {"": total(of("netbird_api_agent_providers", 'enabled="true"'))},
                count,
            ),
            stat(
                "Missing references",
                (16, 3, 8, 3),
                "Groups, users, providers and guardrails that policies and rules name,"
                " and that do not exist.",
                {"": f"({missing[0]}) + ({missing[1]})"},
                look("none", limits={None: "text", 1: "orange"}, empty=UNKNOWN),
            ),
            bars(
                "How full each budget is",
                (0, 6, 12, 11),
                "The largest share that a group or user has used in this window.",
                {budget: f"sort_desc({_used()})"},
                look(
                    "percentunit",
                    decimals=0,
                    limits=_FULL,
                    least=0,
                    most=1,
                    empty="No budget is known",
                ),
            ),
            lines(
                "Budgets over time",
                (12, 6, 12, 11),
                "The same, over time. From the line on, requests are denied.",
                {budget: _used()},
                "percentunit",
                decimals=0,
                limits={None: "transparent", 1: "red"},
                empty="No budget is known",
                thresholdsStyle={"mode": "line"},
                axisSoftMax=1.2,
            ),
            lines(
                "Tokens an hour, by group",
                (0, 17, 12, 8),
                "Growth within an hour of the tokens of each group's day.",
                {"{{group}} {{direction}}": _hourly(used, *group)},
                "short",
                empty="No group with a budget of a day is known",
            ),
            lines(
                "Cost an hour, by kind",
                (12, 17, 12, 8),
                "Growth within an hour, in US dollars.",
                {"{{kind}}": f"sum by (kind) ({_hourly(of(_COST, day), 'kind')})"},
                "currencyUSD",
                stacked=True,
                empty="No cost is known",
            ),
            lines(
                "Tokens an hour, by kind",
                (0, 25, 12, 8),
                "Growth within an hour. The kinds overlap.",
                {"{{kind}}": f"sum by (kind) ({_hourly(tokens, 'kind')})"},
                "short",
                empty="No tokens are known",
            ),
            lines(
                "Denied an hour",
                (12, 25, 12, 8),
                "Requests that were denied within an hour.",
                {"denied": f"sum({_hourly(denied)})"},
                colours={"denied": "orange"},
                steps=True,
                stacked=True,
                empty="No access log is known",
            ),
        ],
    )
