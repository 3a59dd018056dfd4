"""A logger whose lines tell of which account they are."""

from typing import Any

from twisted.logger import Logger


class AccountLogger(Logger):
    """Adds `account` to every line."""

    def __init__(self, account: str, namespace: str) -> None:
        super().__init__(namespace)
        self._account = account

    def emit(self, level: Any, format: str | None = None, **fields: object) -> None:  # noqa: A002 - Twisted
        super().emit(level, format, account=self._account, **fields)


def log_of(account: str, log: Logger) -> Logger:
    """The same log for an account's lines; without a name it is the only one."""
    return AccountLogger(account, log.namespace) if account else log
