"""The exporter's disk: real files, in memory, and what goes wrong with them.

What is written goes through here as far as `events.file` asks the system for it: so a
process may be killed within a write, and the disk may be full in the middle of a line.
"""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from api_exporter.events import file

ROOM = 400
"""Bytes that are left on a disk that is nearly full, at most."""


class Killed(BaseException):
    """The process has ended in the middle of what it did."""


class Disk:
    """A folder.

    Attributes:
        full: whether there is no room.
        descriptors: those that the exporter has, and of which file.
    """

    def __init__(self, folder: Path, chance: Random) -> None:
        self.folder = folder
        self._chance = chance
        self.full = False
        self.descriptors: dict[int, str] = {}
        self._kills = ""
        self._calls_left: int | None = None

    def kill(self, kind: str) -> None:
        """The process ends in the next work with files, or in the next write to a log
        of some kind and what belongs to it.
        """
        self._kills = kind
        if not kind:
            self._calls_left = self._chance.randint(1, 12)

    def down(self) -> None:
        """What the system does when a process has ended."""
        self._kills, self._calls_left = "", None
        while self.descriptors:
            os.close(self.descriptors.popitem()[0])

    def left_over(self) -> list[str]:
        """Files that are open and will not be used again: a log's is closed by the end
        of the process.
        """
        names = [*self.descriptors.values()]
        for name in {name for name in names if name.endswith(".log")}:
            names.remove(name)
        return names

    def work(self, do: Callable[[], Any]) -> Any:
        """What a thread does; raises Killed where the process ended in it."""
        vars(file)["os"] = _Calls(self)
        try:
            with self._short() if self.full else _roomy():
                return do()
        finally:
            vars(file)["os"] = os

    @contextmanager
    def _short(self) -> Iterator[None]:
        """Files cannot grow, or hardly: what does not fit is cut."""
        sizes = [f.stat().st_size for f in self.folder.glob("*.log") if f.is_file()]
        most = self._chance.choice((0, *sizes)) + self._chance.randrange(ROOM)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    def written(self, descriptor: int) -> None:
        """Something is to be written to a file."""
        if self._kills and self._kills in self.descriptors.get(descriptor, ""):
            self._kills, self._calls_left = "", self._chance.randint(1, 6)

    def call(self) -> None:
        """The system is asked for something; raises Killed where it is the last."""
        if self._calls_left is not None:
            self._calls_left -= 1
            if self._calls_left <= 0:
                raise Killed

    def some(self, data: memoryview) -> memoryview:
        """As much of it as was written."""
        return data[: self._chance.randint(0, len(data))]


class _Calls:
    """The module `os` for `events.file`."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        if callable(found):
            self._disk.call()
        return found

    def open(self, path: Any, *args: Any) -> int:
        self._disk.call()
        descriptor = os.open(path, *args)
        self._disk.descriptors[descriptor] = str(path)
        return descriptor

    def close(self, descriptor: int) -> None:
        self._disk.descriptors.pop(descriptor, None)
        os.close(descriptor)

    def write(self, descriptor: int, data: memoryview) -> int:
        self._disk.written(descriptor)
        try:
            self._disk.call()
        except Killed:
            os.write(descriptor, self._disk.some(data))
            raise
        return os.write(descriptor, data)


@contextmanager
def _roomy() -> Iterator[None]:
    yield
