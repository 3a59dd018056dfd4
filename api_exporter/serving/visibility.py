"""Visibility: the accounts that a client may see. The default is none."""

from collections.abc import Container

Accounts = Container[str]


class _EveryAccount:
    def __contains__(self, name: object) -> bool:
        return True


ALL_ACCOUNTS: Accounts = _EveryAccount()

NO_ACCOUNTS: Accounts = frozenset()
