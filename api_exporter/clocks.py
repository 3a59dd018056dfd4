"""The clocks of an account, its jitter and its log lines, all of them arguments."""

from typing import Any

from msgspec import Struct
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from api_exporter.ports import Jitter, Now


class Clocks(Struct, frozen=True):
    """The clocks of an account, its jitter and its name.

    Attributes:
        now: the wall time, seconds since the epoch.
        account: its name for log lines; "" if it is the only account.
    """

    clock: IReactorTime
    now: Now
    jitter: Jitter
    account: str


class AccountLogger(Logger):
    """Adds `account` to every line."""

    def __init__(self, account: str, namespace: str) -> None:
        super().__init__(namespace)
        self._account = account

    def emit(self, level: Any, format: str | None = None, **fields: object) -> None:  # noqa: A002 - Twisted
        super().emit(level, format, account=self._account, **fields)


def log_of(account: str, log: Logger) -> Logger:
    """Return a logger for an account's lines; the same logger without a name."""
    return AccountLogger(account, log.namespace) if account else log
