"""Which accounts a client may know of: none, unless somebody says so. Pure."""

from collections.abc import Container

Accounts = Container[str]
"""By their names."""


class _All:
    def __contains__(self, name: object) -> bool:
        return True


ALL: Accounts = _All()

NONE: Accounts = frozenset()
