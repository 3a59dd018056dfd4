"""Reloading: a value that follows its files. The last good one stays in force."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.token import regular

T = TypeVar("T")

INTERVAL = 1.0
"""Seconds between two looks at the files, at least."""

MOST = 1024 * 1024
"""Bytes of a file, at most."""

Read = Callable[[Path], bytes]
"""What a file holds; raises OSError, or ValueError where it is none of ours."""

Load = Callable[[Read, T | None], T]
"""Makes a value of files, given the one in force; raises ConfigurationError."""


class Reloader(Generic[T]):
    """A value that follows its files. Only hashes of them are kept.

    Args:
        load: is called again when one of the files that it read has changed.
        seconds: a clock.
        report: called with the mistakes of a change, or None where it is in force.

    Attributes:
        value: the newest good one.
        good: whether the newest was good.
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
        """As the files are now, or were a second ago."""
        if not 0 <= self._seconds() - self._looked < INTERVAL:
            self.reload()
        return self.value

    def reload(self) -> None:
        """Look at the files, and use them if they have changed and are good."""
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
        """Whatever a file holds, nobody is kept out: every error is of one kind."""
        try:
            return self._load(self._read, before)
        except ConfigurationError:
            raise
        except Exception as error:  # noqa: BLE001 - its words may repeat a secret
            problem = f"internal error: {type(error).__name__}"
            paths = ", ".join(map(str, self._hashes))
            raise ConfigurationError(f"{paths}: {problem}") from None

    def _read(self, path: Path) -> bytes:
        content, self._hashes[path] = _read(path)
        if isinstance(content, Exception):
            raise content
        return content


def _read(path: Path) -> tuple[bytes | OSError | ValueError, str]:
    """What a file holds, and its hash; or why it cannot be read, twice."""
    try:
        content = regular(path, MOST)
    except (OSError, ValueError) as error:
        return error, str(error)
    return content, sha256(content).hexdigest()


def unreadable(path: Path, error: OSError | ValueError) -> ConfigurationError:
    message = error.strerror if isinstance(error, OSError) else str(error)
    return ConfigurationError(f"{path}: {message}", retryable=True)
