"""What files say, looked at when it is wanted. The last good one stays in force."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from api_exporter.settings.credential import regular
from api_exporter.settings.errors import ConfigurationError

T = TypeVar("T")

INTERVAL = 1.0
"""Seconds between two looks, at least."""

MOST = 1024 * 1024
"""Bytes of a file, at most."""

Read = Callable[[Path], bytes]
"""What a file holds; raises OSError, or ValueError where it is none of ours."""

Load = Callable[[Read, T | None], T]
"""Makes a value of files; raises ConfigurationError.

It is given the value in force, if any.
"""


class Live(Generic[T]):
    """A value that follows its files. Only hashes of them are kept.

    Args:
        load: is called again when one of the files that it read has changed.
        seconds: a clock.
        told: called with the mistakes of a change, or None where it is in force.

    Attributes:
        value: the newest good one.
        fine: whether the newest was good.
    """

    def __init__(
        self,
        load: Load[T],
        seconds: Callable[[], float],
        told: Callable[[ConfigurationError | None], None],
    ) -> None:
        self._load = load
        self._seconds = seconds
        self._told = told
        self._seen: dict[Path, str] = {}
        self.fine = True
        self.value = self._loaded(None)
        self._looked = seconds()

    def __call__(self) -> T:
        """As the files are now, or were a second ago."""
        if not 0 <= self._seconds() - self._looked < INTERVAL:
            self.look()
        return self.value

    def look(self) -> None:
        """Look at the files, and use them if they have changed and are good."""
        self._looked = self._seconds()
        if all(_state(path) == state for path, state in self._seen.items()):
            return
        self._seen = {}
        try:
            self.value = self._loaded(self.value)
        except ConfigurationError as error:
            self.fine = False
            self._told(error)
        else:
            self.fine = True
            self._told(None)

    def _loaded(self, before: T | None) -> T:
        """Whatever a file holds, nobody is kept out: every error is of one kind."""
        try:
            return self._load(self._read, before)
        except ConfigurationError:
            raise
        except Exception as error:  # noqa: BLE001 - its words may repeat a secret
            paths = ", ".join(map(str, self._seen))
            raise ConfigurationError(
                f"{paths}: a defect: {type(error).__name__}"
            ) from None

    def _read(self, path: Path) -> bytes:
        try:
            content = regular(path, MOST)
        except (OSError, ValueError) as error:
            self._seen[path] = str(error)
            raise
        self._seen[path] = sha256(content).hexdigest()
        return content


def _state(path: Path) -> str:
    try:
        return sha256(regular(path, MOST)).hexdigest()
    except (OSError, ValueError) as error:
        return str(error)
