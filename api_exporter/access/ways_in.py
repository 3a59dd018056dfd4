"""The ways in: what each of them says, and what they are made of.

A way in is a class in a file of its own, and a row in `configuration.WAYS`.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from api_exporter.access.credentials import Credentials
from api_exporter.access.reloading import Read, Reloader
from api_exporter.serving.visibility import Accounts
from api_exporter.settings.definitions import Settings
from api_exporter.settings.errors import ConfigurationError

if TYPE_CHECKING:  # YAML and OpenSSL are for those who want them
    from api_exporter.access.web_config import WebConfig

T = TypeVar("T")

Identity = Accounts | None
"""The accounts that a client may know of; None for a stranger."""

Compare = Callable[[bytes, bytes], Deferred[bool]]
"""Whether a password has a hash; takes long, and is done elsewhere."""

REALM = b'realm="api-exporter"'

_log = Logger()


class File(Protocol):
    """What is reloaded, whatever it holds."""

    good: bool

    def reload(self) -> None: ...


class Sources:
    """The settings, and the files that they name.

    Attributes:
        compare: compares a password with a hash.
        files: those that are followed.
        web: the web configuration file, if there is a good one.
        errors: what is wrong so far.
    """

    def __init__(
        self, settings: Settings, seconds: Callable[[], float], compare: Compare
    ) -> None:
        self.settings = settings
        self.compare = compare
        self.files: list[File] = []
        self.web: Reloader[WebConfig] | None = None
        self.errors: list[ConfigurationError] = []
        self._seconds = seconds

    def follow(
        self,
        setting: str,
        path: Path | None,
        load: Callable[[Path, Read, T | None], T],
    ) -> Reloader[T] | None:
        """A value that follows a setting's file; None without, or where it is wrong."""
        if path is None:
            return None
        report = partial(_log_reload, setting)
        try:
            made = Reloader(partial(load, path), self._seconds, report)
        except ConfigurationError as error:
            told = [f"{setting}: {problem}" for problem in error.problems]
            self.errors.append(ConfigurationError(*told, retryable=error.retryable))
            return None
        self.files.append(made)
        return made


def _log_reload(setting: str, error: ConfigurationError | None) -> None:
    if error is None:
        _log.info("{setting}: it has changed, and is in force", setting=setting)
        return
    _log.error(
        "{setting}: {why}; what was in force before stays",
        setting=setting,
        why="; ".join(error.problems),
    )


class WayIn:
    """A way in. This one asks nobody, and opens nothing."""

    @classmethod
    def configured(cls, sources: Sources) -> Self | None:
        """The way that the settings want, if they do; what is wrong is added to
        the errors.
        """
        raise NotImplementedError

    @property
    def asks(self) -> bool:
        """Whether strangers are kept out."""
        return False

    @property
    def challenge(self) -> bytes:
        """The scheme that a 401 offers (RFC 9110, 11.6.1), if any."""
        return b""

    def opens(self, path: str) -> bool:  # noqa: ARG002 - others look at it
        """Whether everybody sees a page."""
        return False

    def identify(
        self,
        credentials: Credentials,  # noqa: ARG002 - others look at it
        address: str,  # noqa: ARG002
        *,
        patient: bool,  # noqa: ARG002
    ) -> Identity | Deferred[Identity]:
        """Whose credentials these are; may fail with Busy.

        Args:
            patient: whether the client waits behind others.
        """
        return None

    def describe(self) -> str:
        """How somebody comes in, in a line; "" where nobody does."""
        raise NotImplementedError


class Busy(Exception):
    """Too many credentials wait to be looked at."""
