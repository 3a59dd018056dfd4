"""Visibility: the accounts that a client may see. The default is none."""

from collections.abc import Container

Accounts = Container[str]
"""Names of accounts."""


class _EveryAccount:
    def __contains__(self, name: object) -> bool:
        return True


ALL: Accounts = _EveryAccount()

NONE: Accounts = frozenset()
