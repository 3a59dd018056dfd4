"""Configuration files: `NAME=value` lines that a shell and systemd read alike.

Where the two differ, or where one of them would do more than take a value, the line is
refused: what is in the file means the same wherever it is loaded.
"""

import re
from collections.abc import Mapping
from pathlib import Path

_LINE = re.compile(
    r"(?:export\s+)?(?P<name>[^\s=]*)(?P<equals>=?)(?P<value>.*)", re.DOTALL
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./?=\[\]-][A-Za-z0-9_@%+:,./?=\[\]~*^!{}-]*")
_SINGLE = re.compile(r"'([^'\\]*)'")
_DOUBLE = re.compile(r'"((?:[^"\\$`]|\\["\\$`])*)"')


class ConfigurationError(Exception):
    """What is wrong with a configuration file: a line for each wrong line."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load(path: Path) -> dict[str, str]:
    """The settings of a file; raises ConfigurationError."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ConfigurationError([f"{path}: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise ConfigurationError([f"{path}: it is not UTF-8 text"]) from None
    found: dict[str, str] = {}
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        try:
            name, value = assignment(stripped)
        except ValueError as error:
            problems.append(f"{path}:{number}: {error}")
            continue
        found[name] = value
    if problems:
        raise ConfigurationError(problems)
    return found


def assignment(line: str) -> tuple[str, str]:
    """Name and value of one line; raises ValueError, which never repeats the value."""
    match = _LINE.fullmatch(line)
    assert match is not None  # every part of it may be empty
    name, value = match["name"], match["value"]
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name")
    if not match["equals"]:
        raise ValueError(f"{name}: NAME=value is missing its =")
    if not value or _PLAIN.fullmatch(value):
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


def below(environ: Mapping[str, str], file: Mapping[str, str]) -> dict[str, str]:
    """The environment with the file's settings wherever it has none of its own."""
    return {**file, **environ}


def readable_by_all(path: Path) -> bool:
    """Whether anybody on the machine can read the file, and a token in it."""
    return path.stat().st_mode & 0o004 != 0
