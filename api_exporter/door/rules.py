"""Who may see what. The one place where that is decided."""

from typing import Literal

from msgspec import Struct

from api_exporter.serving.authorization import ALL, Accounts

Verdict = Literal["whole", "bare", "unauthorized", "forbidden", "not_found"]
"""The page; its status alone; 401; 403; 404."""

PULSE = frozenset({"/health", "/ready"})
"""What supervisors ask, who have no credential."""

LISTS = frozenset({"/", "/sd/accounts", "/runbooks"})
"""Pages that tell of each account only to those who may know of it, or of none."""

DISCOVERY = ("/sd", "/sd/accounts")

PROFILES = "/debug"


class Credential(Struct, frozen=True, kw_only=True):
    """What a client has shown, and it was right.

    Attributes:
        name: empty where it has none.
        accounts: those that it opens.
    """

    name: str = ""
    accounts: Accounts


class Rules(Struct, frozen=True):
    """What is open to everybody although there are passwords or tokens.

    Attributes:
        metrics_path: where the metrics are.
        open_paths: served to whoever asks.
    """

    metrics_path: str
    open_paths: frozenset[str] = frozenset()

    def may(
        self, credential: Credential | None, path: str, account: str | None
    ) -> Verdict:
        """What a client gets that asks for a path.

        Args:
            credential: None for a stranger, and for whoever showed a wrong one.
            path: decoded.
            account: the account that is asked for; None where none is named.
        """
        if path in self.open_paths:
            return "whole"
        if credential is None:
            pulse = path in PULSE and account is None
            return "bare" if pulse else "unauthorized"
        if credential.accounts is ALL:
            return "whole"
        if path == PROFILES or path.startswith(f"{PROFILES}/"):
            return "forbidden"
        if account is not None:
            return "whole" if account in credential.accounts else "not_found"
        if path in PULSE:
            return "bare"
        if path in LISTS:
            return "whole"
        everything = path in {self.metrics_path, DISCOVERY[0]}
        return "forbidden" if everything else "not_found"


def rules(metrics_path: str, wanted: frozenset[str]) -> Rules:
    """With what WEB_OPEN_PATHS names; raises ValueError where that cannot be open."""
    for path in sorted(wanted - {metrics_path, "/sd"}):
        raise ValueError(f"{path!r} is neither {metrics_path} nor /sd")
    more = frozenset(DISCOVERY) if "/sd" in wanted else frozenset()
    return Rules(metrics_path, wanted | more)
