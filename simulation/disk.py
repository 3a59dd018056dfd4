"""The exporter's disk: real files in memory, and their failures.

`events.file` calls the system through this module. So a write may be cut by the end of
the process or by a full disk.
"""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random
from typing import Any

from api_exporter.events import file

MAX_FREE = 400
"""The most bytes that are free on a nearly full disk."""


class Killed(BaseException):
    """The process was killed during its work."""


class Disk:
    """A folder that simulates a disk.

    Attributes:
        full: whether the disk is nearly or completely full.
        descriptors: the path of each file descriptor that the exporter has open.
    """

    def __init__(self, folder: Path, chance: Random) -> None:
        self.folder = folder
        self._chance = chance
        self.full = False
        self.descriptors: dict[int, str] = {}
        self._kill_kind = ""
        self._calls_left: int | None = None

    def kill(self, kind: str) -> None:
        """Kill the process during its next work with files. A kind of log, such as
        `events`, delays that until the next write to one of its files.
        """
        self._kill_kind = kind
        if not kind:
            self._calls_left = self._chance.randint(1, 12)

    def close_all(self) -> None:
        """Close the descriptors of a process that has ended, as the system does."""
        self._kill_kind, self._calls_left = "", None
        while self.descriptors:
            os.close(self.descriptors.popitem()[0])

    @contextmanager
    def watched(self) -> Iterator[None]:
        """See all calls of the exporter; in the end close what it has left open."""
        vars(file)["os"] = _Calls(self)
        try:
            yield
        finally:
            vars(file)["os"] = os
            self.close_all()

    def run(self, do: Callable[[], Any]) -> Any:
        """Do the work of a thread. Raise Killed if the process ends meanwhile."""
        with self._limited_size() if self.full else nullcontext():
            return do()

    @contextmanager
    def _limited_size(self) -> Iterator[None]:
        """Limit the size of files, so that the system cuts writes."""
        sizes = [f.stat().st_size for f in self.folder.glob("*.log") if f.is_file()]
        limit = self._chance.choice((0, *sizes)) + self._chance.randrange(MAX_FREE)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    def note_write(self, descriptor: int) -> None:
        if self._kill_kind and self._kill_kind in self.descriptors.get(descriptor, ""):
            self._kill_kind, self._calls_left = "", self._chance.randint(1, 6)

    def count_call(self) -> None:
        """Count a system call. Raise Killed at the last one before a kill."""
        if self._calls_left is not None:
            self._calls_left -= 1
            if self._calls_left <= 0:
                raise Killed

    def cut_off(self, data: memoryview) -> memoryview:
        """Return the part of the data that was written before the kill."""
        return data[: self._chance.randint(0, len(data))]


class _Calls:
    """The module `os` as `events.file` uses it."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        if callable(found):
            self._disk.count_call()
        return found

    def open(self, path: Any, *args: Any) -> int:
        self._disk.count_call()
        descriptor = os.open(path, *args)
        self._disk.descriptors[descriptor] = str(path)
        return descriptor

    def close(self, descriptor: int) -> None:
        self._disk.descriptors.pop(descriptor, None)
        os.close(descriptor)

    def write(self, descriptor: int, data: memoryview) -> int:
        self._disk.note_write(descriptor)
        try:
            self._disk.count_call()
        except Killed:
            os.write(descriptor, self._disk.cut_off(data))
            raise
        return os.write(descriptor, data)
