"""Authorization: who may see what. The one place where that is decided."""

from typing import Literal

from api_exporter.serving.visibility import ALL, Accounts

Verdict = Literal["full", "status_only", "unauthorized", "forbidden", "not_found"]
"""The page; its status alone; 401; 403; 404."""

PROBE_PATHS = frozenset({"/health", "/ready"})
"""What supervisors ask, who have no credentials."""

LISTS = frozenset({"/", "/sd/accounts", "/runbooks"})
"""Pages that tell of each account only to those who may know of it, or of none."""

PROFILES = "/debug"


def authorize(
    identity: Accounts | None, path: str, account: str | None, *, metrics_path: str
) -> Verdict:
    """What a client gets that asks for a path.

    Args:
        identity: None for a stranger, and for whoever showed wrong credentials.
        path: decoded.
        account: the account that is asked for; None where none is named.
    """
    if identity is None:
        probe = path in PROBE_PATHS and account is None
        return "status_only" if probe else "unauthorized"
    if identity is ALL:
        return "full"
    if path == PROFILES or path.startswith(f"{PROFILES}/"):
        return "forbidden"
    if account is not None:
        return "full" if account in identity else "not_found"
    if path in PROBE_PATHS:
        return "status_only"
    if path in LISTS:
        return "full"
    return "forbidden" if path in {metrics_path, "/sd", "/findings"} else "not_found"
