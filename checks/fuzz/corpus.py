"""The kept inputs: a file for each target, with a Python literal on each line."""

import sys
from ast import literal_eval
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

FOLDER = Path(__file__).parent / "corpus"
MAX_FILE_BYTES = 12_000
"""The most bytes of a file."""


def load(target: str) -> list[bytes]:
    path = FOLDER / f"{target}.txt"
    return list(map(literal_eval, path.read_text().splitlines()))


def keep(target: str, inputs: Iterable[bytes]) -> None:
    """Write as many inputs as the file may hold."""
    text = ""
    for line in (f"{one!r}\n" for one in inputs):
        if len(text) + len(line) <= MAX_FILE_BYTES:
            text += line
    (FOLDER / f"{target}.txt").write_text(text)


def best(attempt: Callable[[bytes], None], inputs: Iterable[bytes]) -> list[bytes]:
    """Return the shortest inputs that together reach all that all inputs reach."""
    reached: set[tuple[str, int, int]] = set()
    kept = []
    for one in sorted(set(inputs), key=lambda one: (len(repr(one)), one)):
        new = steps(attempt, one) - reached
        if new:
            reached |= new
            kept.append(one)
    return kept


def steps(attempt: Callable[[bytes], None], one: bytes) -> set[tuple[str, int, int]]:
    """Return all transitions between lines of the exporter's code."""
    found: set[tuple[str, int, int]] = set()

    def trace(frame: FrameType, *_: object) -> Any:
        name = frame.f_code.co_filename
        if "api_exporter" not in name:
            return None
        before = frame.f_lineno

        def line(frame: FrameType, event: str, *_: object) -> Any:
            nonlocal before
            if event == "line":
                found.add((name, before, frame.f_lineno))
                before = frame.f_lineno
            return line

        return line

    sys.settrace(trace)
    try:
        attempt(one)
    finally:
        sys.settrace(None)
    return found
