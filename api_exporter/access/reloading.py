"""Reloading of values from files. The last valid value stays in use."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from api_exporter.ports import Now
from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.regular_file import read_regular_file

T = TypeVar("T")

CHECK_INTERVAL = 1.0
"""The minimum number of seconds between two checks of the files."""

MAX_FILE_BYTES = 1024 * 1024

ReadFile = Callable[[Path], bytes]
"""A reader of files; raises OSError, or ValueError for a large or irregular file."""


class Reloader(Generic[T]):
    """A value that is loaded again when its files change. It keeps only their hashes.

    Args:
        load: called again, with the current value, if one of the files that it read
            has changed; raises ConfigurationError.
        report: called with the error of a change, or with None if the change is in use.

    Attributes:
        is_valid: True if the files were valid at their last change.
        loaded_at: when the value was loaded, in seconds since 1970.
    """

    def __init__(
        self,
        load: Callable[[ReadFile, T | None], T],
        seconds: Callable[[], float],
        now: Now,
        report: Callable[[ConfigurationError | None], None],
    ) -> None:
        self._load = load
        self._seconds, self._now = seconds, now
        self._report = report
        self._hashes: dict[Path, str] = {}
        self.is_valid = True
        self.value = self._load_value(None)
        self._checked_at = seconds()

    def __call__(self) -> T:
        """Return the value after a check of the files, at most once a second."""
        if not 0 <= self._seconds() - self._checked_at < CHECK_INTERVAL:
            self._check()
        return self.value

    def reload(self) -> None:
        """Check the files; report again what is not valid."""
        self._check(again=not self.is_valid)

    def _check(self, *, again: bool = False) -> None:
        self._checked_at = self._seconds()
        is_same = all(_read(path)[1] == old for path, old in self._hashes.items())
        if is_same and not again:
            return
        self._hashes = {}
        try:
            self.value = self._load_value(self.value)
        except ConfigurationError as error:
            self.is_valid = False
            self._report(error)
        else:
            self.is_valid = True
            self._report(None)

    def _load_value(self, before: T | None) -> T:
        """Load the value. Any error is a ConfigurationError: a reload survives it."""
        try:
            value = self._load(self._read, before)
        except ConfigurationError:
            raise
        except Exception as error:  # noqa: BLE001 - its text may repeat a secret
            problem = f"internal error: {type(error).__name__}"
            paths = ", ".join(map(str, self._hashes))
            raise ConfigurationError(f"{paths}: {problem}") from None
        self.loaded_at = self._now()
        return value

    def _read(self, path: Path) -> bytes:
        content, self._hashes[path] = _read(path)
        if isinstance(content, Exception):
            raise content
        return content


def _read(path: Path) -> tuple[bytes | OSError | ValueError, str]:
    try:
        content = read_regular_file(path, MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        return error, str(error)
    return content, sha256(content).hexdigest()


def unreadable(place: Path | str, error: OSError | ValueError) -> ConfigurationError:
    if isinstance(error, OSError):
        return ConfigurationError(f"{place}: {error.strerror}", retryable=True)
    return ConfigurationError(f"{place}: {error}")
