"""The exporter's disk: real files in memory, and their failures.

`logs.file` calls the system through this module. So a write may be cut by the end of
the process or by a full disk, and may hang while the exporter goes on.
"""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from errno import EIO
from pathlib import Path
from random import Random
from threading import Semaphore, Thread
from typing import Any

from api_exporter.logs import file

MAX_FREE = 400
"""The most bytes that are free on a nearly full disk."""

MAX_HANG_SECONDS = 300.0
"""The longest time that one write hangs."""


class Killed(BaseException):
    """The process was killed during its work."""


class Hangs(Exception):
    """The work in a thread hangs.

    Attributes:
        seconds: until the end of the hanging call.
        finish: does the rest of the work; raises Hangs if another call hangs.
    """

    def __init__(self, seconds: float, finish: Callable[[], Any]) -> None:
        super().__init__(seconds)
        self.seconds = seconds
        self.finish = finish


class _Work:
    """Work in a thread of its own, which only runs while the caller waits for it."""

    def __init__(self, disk: "Disk", do: Callable[[], Any]) -> None:
        self._disk = disk
        self._do = do
        self._may_run, self._has_paused = Semaphore(0), Semaphore(0)
        self._thread = Thread(target=self._run, daemon=True)
        self._result: Callable[[], Any] | None = None
        self._is_killed = False
        self._seconds = 0.0
        self._thread.start()

    def _run(self) -> None:
        self._may_run.acquire()
        try:
            result = self._do()
        except BaseException as error:  # noqa: BLE001 - the caller receives it
            raised = error

            def fail() -> Any:
                raise raised

            self._result = fail
        else:
            self._result = lambda: result
        self._has_paused.release()

    def proceed(self) -> Any:
        """Run until the end, and return the result. Raise Hangs if a call hangs."""
        self._disk.working = self
        self._may_run.release()
        self._has_paused.acquire()
        self._disk.working = None
        if self._result is None:
            self._disk.hanging[self] = None
            raise Hangs(self._seconds, self.proceed)
        self._disk.hanging.pop(self, None)
        self._thread.join()
        return self._result()

    def pause(self, seconds: float) -> None:
        """Hang. Raise Killed if the process ends meanwhile."""
        self._seconds = seconds
        self._has_paused.release()
        self._may_run.acquire()
        if self._is_killed:
            raise Killed

    def kill(self) -> None:
        """End the work in its hanging call."""
        self._is_killed = True
        self._may_run.release()
        self._thread.join()


class Disk:
    """A folder that simulates a disk.

    Attributes:
        full: whether the disk is nearly or completely full.
        hang_share: the probability that a call hangs.
        hanging: work that hangs now.
        working: hanging work that proceeds now, or None.
        descriptors: the path of each file descriptor that the exporter has open.
    """

    def __init__(self, folder: Path, chance: Random) -> None:
        self.folder = folder
        self._chance = chance
        self.full = False
        self.hang_share = 0.0
        self.hanging: dict[_Work, None] = {}
        self.working: _Work | None = None
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

    @property
    def is_troubled(self) -> bool:
        """True if the disk is full or hangs."""
        return bool(self.full or self.hang_share or self.hanging)

    @property
    def may_be_killed(self) -> bool:
        """True if the cursor of a log may be behind its lines."""
        return bool(self.is_troubled or self._kill_kind or self._calls_left)

    def close_all(self) -> None:
        """Close the descriptors of a process that has ended, as the system does."""
        self._kill_kind, self._calls_left = "", None
        for work in self.hanging:
            work.kill()
        self.hanging.clear()
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
        """Do the work of a thread. Raise Killed if the process ends meanwhile, and
        Hangs if it hangs.
        """
        if self.hang_share and not self.full:
            return _Work(self, do).proceed()
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

    def call(self, do: Callable[[], Any], cut: Callable[[], object]) -> Any:
        """Make a system call. It may hang; then it may fail after all.

        Args:
            cut: does a part of it.
        """
        if self.working is None or self._chance.random() >= self.hang_share:
            return do()
        try:
            self.working.pause(MAX_HANG_SECONDS ** self._chance.random())
        except Killed:
            cut()
            raise
        how = self._chance.choice((lambda: None, cut, do, do))
        result = how()
        if how is not do:
            raise OSError(EIO, os.strerror(EIO))
        return result

    def cut_off(self, data: memoryview) -> memoryview:
        """Return the part of the data that was written before the kill."""
        return data[: self._chance.randint(0, len(data))]


class _Calls:
    """The module `os` as `logs.file` uses it."""

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

    def fdopen(self, descriptor: int, mode: str) -> Any:
        """Return a file. It closes its descriptor, even where a kill ends its use."""
        self._disk.count_call()
        del self._disk.descriptors[descriptor]
        return os.fdopen(descriptor, mode)

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
        written: int = self._disk.call(
            lambda: os.write(descriptor, data),
            lambda: os.write(descriptor, self._disk.cut_off(data)),
        )
        return written

    def fsync(self, descriptor: int) -> None:
        self._disk.count_call()
        self._disk.call(lambda: os.fsync(descriptor), lambda: None)
