"""Files that are written: each of them by one account, and for one purpose."""

import os
from collections.abc import Iterable, Iterator

from api_exporter.settings.parsers import STANDARD_OUTPUT
from api_exporter.settings.table import EVENTS_CURSOR_FILE, EVENTS_FILE
from api_exporter.settings.values import AccountSettings


def shared(accounts: Iterable[AccountSettings]) -> list[str]:
    """A line for each file that is written twice."""
    users: dict[str, list[str]] = {}
    for account in accounts:
        for path, user in _written(account):
            users.setdefault(path, []).append(user)
    return [
        f"{' and '.join(found)}: each needs a file of its own, not {path!r}"
        for path, found in users.items()
        if len(found) > 1
    ]


def _written(account: AccountSettings) -> Iterator[tuple[str, str]]:
    """The files of an account, and what they are."""
    if account.events_file is None:
        return
    whose = f" of {account.name}" if account.name else ""
    if account.events_file != STANDARD_OUTPUT:
        yield os.path.realpath(account.events_file), f"{EVENTS_FILE.name}{whose}"
    cursor = os.path.realpath(account.events_cursor)
    yield cursor, f"{EVENTS_CURSOR_FILE.name}{whose}"
