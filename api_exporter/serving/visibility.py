"""Visibility: which accounts a client may know of. None, unless somebody says so."""

from collections.abc import Container

Accounts = Container[str]
"""By their names."""


class _EveryAccount:
    def __contains__(self, name: object) -> bool:
        return True


ALL: Accounts = _EveryAccount()

NONE: Accounts = frozenset()
