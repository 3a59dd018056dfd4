"""Log lines that tell of which account they are."""

from typing import Any

from twisted.logger import Logger


class AccountLogger(Logger):
    """Adds `account` to every line."""

    def __init__(self, account: str) -> None:
        super().__init__(__name__)
        self._account = account

    def emit(self, level: Any, format: str | None = None, **fields: object) -> None:  # noqa: A002 - Twisted
        super().emit(level, format, account=self._account, **fields)


def log_of(account: str) -> Logger:
    """For an account's lines; without a name it is the only one."""
    return AccountLogger(account) if account else Logger(__name__)
