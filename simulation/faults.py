"""Calls of the exporter that may fail, counted, and one of them made to fail."""

import builtins
import errno
import io
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import Struct

import api_exporter

PACKAGE = str(Path(api_exporter.__file__).parent)
SIMULATION = str(Path(__file__).parent)

NO_THREAD = RuntimeError("can't start new thread")

_FILE_ERRORS = ("EACCES", "EIO", "EMFILE", "ENFILE")

ERRORS: Mapping[str, tuple[str, ...]] = {
    "open": (*_FILE_ERRORS, "ENOSPC"),
    "stat": ("EACCES", "EIO"),
    "list": _FILE_ERRORS,
    "close": ("EIO", "ENOSPC"),
    "resolve": ("EAI_AGAIN", "EAI_NONAME", "EMFILE", "MemoryError"),
    "thread": ("RuntimeError",),
    "memory": ("MemoryError",),
}
"""The errors of the kinds of calls that have broken something before.

Others fail in the simulation: `disk.py` has full disks and kills, `weather.py` the
connections.
"""

_PATCHED: tuple[tuple[str, object, tuple[str, ...]], ...] = (
    ("open", os, ("open",)),
    ("open", io, ("open",)),
    ("open", builtins, ("open",)),
    ("stat", os, ("stat", "fstat", "access")),
    ("list", os, ("scandir", "listdir")),
    ("close", os, ("close",)),
)
"""The functions that are replaced."""


def _error(name: str) -> Exception:
    """Return the error with a name of `ERRORS`."""
    if name.startswith("EAI"):
        number = getattr(socket, name)
        return socket.gaierror(number, "Name or service not known")
    if name in {"MemoryError", "RuntimeError"}:
        return MemoryError() if name == "MemoryError" else NO_THREAD
    return OSError(getattr(errno, name), os.strerror(getattr(errno, name)))


class Site(Struct, frozen=True, order=True):
    """A call that may fail.

    Attributes:
        step: the step of the scenario.
        kind: a key of `ERRORS`.
        place: the line of the package that calls, or what the simulation replaces.
    """

    step: str
    kind: str
    place: str


class Faults:
    """The calls of one run.

    Args:
        folder: only files below it count.
        site: its first call fails; None if all work.
        name: the error's name.
        on_fault: called when the call fails.

    Attributes:
        step: the current step of the scenario.
        sites: all sites so far, with the number of their calls.
        descriptors: the path of each file descriptor that is open.
        counting: whether calls count; a check of invariants calls, too.
    """

    def __init__(
        self, folder: Path, site: Site | None, name: str, on_fault: Callable[[], object]
    ) -> None:
        self.step = "start"
        self.sites: dict[Site, int] = {}
        self.descriptors: dict[int, str] = {}
        self._folder = str(folder)
        self._site = site
        self._name = name
        self._on_fault = on_fault
        self.counting = True

    def check(self, kind: str, place: str) -> None:
        """Count a call, and raise its error."""
        if not self.counting:
            return
        site = Site(self.step, kind, place)
        self.sites[site] = self.sites.get(site, 0) + 1
        if site == self._site and self.sites[site] == 1:
            self._on_fault()
            raise _error(self._name)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Replace the functions of the system."""
        with ExitStack() as stack:
            for kind, module, names in _PATCHED:
                for name in names:
                    call = getattr(module, name)
                    stack.callback(setattr, module, name, call)
                    setattr(module, name, self._replacement(kind, call))
            yield

    def _replacement(self, kind: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def replacement(*args: Any, **kwargs: Any) -> Any:
            path = self._path(args)
            if path is None or not (place := _place()):
                return call(*args, **kwargs)
            place = f"{place} {path.rpartition('/')[2]}".strip()
            if kind == "close":  # The system closes it even if that fails.
                call(*args, **kwargs)
                self.descriptors.pop(args[0], None)
                return self.check(kind, place)
            self.check(kind, place)
            done = call(*args, **kwargs)
            if isinstance(done, int) and kind == "open":
                self.descriptors[done] = str(args[0])
            return _File(done, self, path) if isinstance(done, io.IOBase) else done

        return replacement

    def _path(self, args: tuple[Any, ...]) -> str | None:
        """Return the path that a call is about; None if it does not count."""
        path = self.descriptors.get(args[0]) if type(args[0]) is int else str(args[0])
        return path if path is not None and path.startswith(self._folder) else None


class _File:
    """A file whose end is counted."""

    def __init__(self, file: Any, faults: Faults, path: str) -> None:
        self._file = file
        self._faults = faults
        self._name = path.rpartition("/")[2]

    def __enter__(self) -> "_File":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._faults.check("close", f"{_place()} {self._name}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _place() -> str:
    """Return the line of the package that calls; "" if the simulation does."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(PACKAGE):
            name = file[len(PACKAGE) + 1 : -3]
            return f"{name}:{frame.f_code.co_qualname}:{frame.f_lineno}"
        if file.startswith(SIMULATION):
            return ""
        frame = frame.f_back
    return ""
