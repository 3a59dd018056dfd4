"""Reloading of values from files. The last valid value stays in use."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.token import regular

T = TypeVar("T")

INTERVAL = 1.0
"""The minimum number of seconds between two checks of the files."""

MOST = 1024 * 1024
"""The maximum size of a file in bytes."""

Read = Callable[[Path], bytes]
"""A reader of files; raises OSError, or ValueError for a large or irregular file."""

Load = Callable[[Read, T | None], T]
"""A loader of a value, given the current one; raises ConfigurationError."""


class Reloader(Generic[T]):
    """A value that follows its files. Only hashes of the files are kept.

    Args:
        load: called again if one of the files that it read has changed.
        seconds: a clock.
        report: called with the error of a change, or with None if the change is in use.

    Attributes:
        value: the newest valid value.
        good: True if the files were valid at their last change.
    """

    def __init__(
        self,
        load: Load[T],
        seconds: Callable[[], float],
        report: Callable[[ConfigurationError | None], None],
    ) -> None:
        self._load = load
        self._seconds = seconds
        self._report = report
        self._hashes: dict[Path, str] = {}
        self.good = True
        self.value = self._loaded(None)
        self._looked = seconds()

    def __call__(self) -> T:
        """Return the value after a check of the files, at most once a second."""
        if not 0 <= self._seconds() - self._looked < INTERVAL:
            self.reload()
        return self.value

    def reload(self) -> None:
        """Check the files; use them if they have changed and are valid."""
        self._looked = self._seconds()
        if all(_read(path)[1] == digest for path, digest in self._hashes.items()):
            return
        self._hashes = {}
        try:
            self.value = self._loaded(self.value)
        except ConfigurationError as error:
            self.good = False
            self._report(error)
        else:
            self.good = True
            self._report(None)

    def _loaded(self, before: T | None) -> T:
        """Load the value. Any error is a ConfigurationError: a reload survives it."""
        try:
            return self._load(self._read, before)
        except ConfigurationError:
            raise
        except Exception as error:  # noqa: BLE001 - its text may repeat a secret
            problem = f"internal error: {type(error).__name__}"
            paths = ", ".join(map(str, self._hashes))
            raise ConfigurationError(f"{paths}: {problem}") from None

    def _read(self, path: Path) -> bytes:
        content, self._hashes[path] = _read(path)
        if isinstance(content, Exception):
            raise content
        return content


def _read(path: Path) -> tuple[bytes | OSError | ValueError, str]:
    """Return a file's content and hash; or the error, and the error as text."""
    try:
        content = regular(path, MOST)
    except (OSError, ValueError) as error:
        return error, str(error)
    return content, sha256(content).hexdigest()


def unreadable(path: Path, error: OSError | ValueError) -> ConfigurationError:
    message = error.strerror if isinstance(error, OSError) else str(error)
    return ConfigurationError(f"{path}: {message}", retryable=True)
