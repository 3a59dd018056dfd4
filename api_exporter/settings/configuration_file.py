"""Configuration files: `NAME=value` lines that a shell and systemd read alike.

Where the two differ, or where one of them would do more than take a value, the line is
refused: what is in the file means the same wherever it is loaded.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from api_exporter.plurals import counted
from api_exporter.settings.errors import ConfigurationError, shown

_LINE = re.compile(r"(?:export[ \t]+)?(?P<name>[^ \t=]*)(?P<equals>=?)(?P<value>.*)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SETTING = re.compile(r"[A-Z][A-Z0-9_]*")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./?=\[\]-]*")
_SINGLE = re.compile(r"'([^'\\]*)'")
_DOUBLE = re.compile(r'"((?:[^"\\$`]|\\["\\$`])*)"')


MOST = 1024 * 1024
"""Bytes of a configuration file, at most."""

MOST_PROBLEMS = 20
"""Wrong lines that are named one by one."""


class Line(NamedTuple):
    """An assignment, and the number of its line."""

    number: int
    name: str
    value: str


def load(path: Path) -> dict[str, str]:
    """The settings of a file, the last one of a name; raises ConfigurationError."""
    return {line.name: line.value for line in lines(path)}


def lines(path: Path) -> list[Line]:
    """What a file sets, which is read once; raises ConfigurationError."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST + 1)
    except OSError as error:
        problem = f"{path}: {error.strerror}"
        raise ConfigurationError(problem, retryable=True) from None
    if len(content) > MOST:
        raise ConfigurationError(f"{path}: the file has more than {MOST} bytes")
    try:
        text = content.decode()  # line ends as they are
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: the file is not UTF-8 text") from None
    found = []
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip(" \t")
        if not stripped or stripped.startswith("#"):
            continue
        try:
            name, value = assignment(stripped)
        except ValueError as error:
            problems.append(f"{path}:{number}: {error}")
            continue
        found.append(Line(number, name, value))
    if problems:
        if more := len(problems[MOST_PROBLEMS:]):
            problems[MOST_PROBLEMS:] = [f"{path}: {counted(more, 'more wrong line')}"]
        raise ConfigurationError(*problems)
    return found


def assignment(line: str) -> tuple[str, str]:
    """Name and value of one line; raises ValueError, which never repeats the value."""
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", line):
        raise ValueError(
            "the line contains a control character, such as a carriage return"
        )
    match = _LINE.fullmatch(line)
    assert match is not None  # every part of it may be empty
    name, value = match["name"], match["value"]
    if not match["equals"] or not _NAME.fullmatch(name):
        raise ValueError(_not_assigned(name, match["equals"], value))
    if _PLAIN.fullmatch(value):
        return name, value
    if value.startswith("'"):
        if quoted := _SINGLE.fullmatch(value):
            return name, quoted[1]
        raise ValueError(
            f"{name}: nothing may follow the closing ', and no \\ may be inside"
        )
    if value.startswith('"'):
        if quoted := _DOUBLE.fullmatch(value):
            return name, re.sub(r"\\(.)", r"\1", quoted[1])
        raise ValueError(
            f'{name}: nothing may follow the closing ", and inside \\, $ and ` take'
            " a \\ before them"
        )
    raise ValueError(f"{name}: put the value into quotes; a comment has its own line")


def _not_assigned(word: str, equals: str, rest: str) -> str:
    """What is wrong with a line that assigns nothing.

    A token, or an address with a password, may have lost its name: neither is repeated.
    """
    if SETTING.fullmatch(word):
        return f"{word}: NAME=value is missing its ="
    if not equals or not rest or rest.startswith("=") or "/" in word:
        return "NAME= is missing"
    return f"{shown(word)} is not a name"


def below(environ: Mapping[str, str], file: Mapping[str, str]) -> dict[str, str]:
    """The environment with the file's settings wherever it has none of its own.

    An empty variable counts as not set.
    """
    return {**file, **{k: v for k, v in environ.items() if v.strip() or k not in file}}


def readable_by_all(path: Path) -> bool:
    """Whether anybody on the machine can read the file, and a token in it."""
    try:
        return path.stat().st_mode & 0o004 != 0
    except OSError:  # it has gone since it was read
        return False
