"""Authorization: the only module that decides what a client may see."""

from typing import Literal

from api_exporter.ports import ALL_ACCOUNTS, Accounts

Decision = Literal["full", "status_only", "unauthorized", "forbidden", "not_found"]
"""The response: the page; its status alone; 401; 403; 404."""

PROBE_PATHS = frozenset({"/health", "/ready"})
"""Paths of health probes, which send no credentials."""

SHARED_PAGES = frozenset(
    {"/", "/sd/accounts", "/runbooks", "/status.json", "/status.schema.json"}
)
"""Pages that list only the accounts that the client may see, or no account."""

ACCOUNT_PAGES = frozenset(
    {"/sd", "/findings", "/lookup", "/lookup.csv", "/lookup.json"}
)
"""Pages of one account, beside the metrics."""

DEBUG_PREFIX = "/debug"


def authorize(
    allowed: Accounts | None,
    path: str,
    account: str | None,
    *,
    metrics_path: str,
    has_group: bool,
) -> Decision:
    """Return the decision on a request for a path.

    Args:
        allowed: the client's accounts; None without valid credentials.
        account: the requested account; None if the request names none.
        has_group: whether the request names a group, whose state is no health probe.
    """
    if allowed is None:
        probe = path in PROBE_PATHS and account is None and not has_group
        return "status_only" if probe else "unauthorized"
    if allowed is ALL_ACCOUNTS:
        return "full"
    if path == DEBUG_PREFIX or path.startswith(f"{DEBUG_PREFIX}/"):
        return "forbidden"
    if account is not None:
        return "full" if account in allowed else "not_found"
    if path in PROBE_PATHS:
        return "status_only"
    if path in SHARED_PAGES:
        return "full"
    return "forbidden" if path in ACCOUNT_PAGES | {metrics_path} else "not_found"
