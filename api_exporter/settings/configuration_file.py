"""Configuration files: `NAME=value` lines that a shell and systemd read alike.

A line is refused if the two differ, or if one of them would do more than assign a
value. A file therefore means the same wherever it is loaded.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from api_exporter.formatting import with_noun
from api_exporter.settings.errors import ConfigurationError, mask_secrets, quote_value
from api_exporter.settings.regular_file import read_regular_file

_LINE = re.compile(r"(?:export[ \t]+)?(?P<name>[^ \t=]*)(?P<equals>=?)(?P<value>.*)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SETTING_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./?=\[\]-]*")
_SINGLE = re.compile(r"'([^'\\]*)'")
_DOUBLE = re.compile(r'"((?:[^"\\$`]|\\["\\$`])*)"')


MAX_CONFIGURATION_BYTES = 1024 * 1024

MAX_PROBLEMS = 20
"""Maximum number of wrong lines that an error names."""


class Line(NamedTuple):
    """An assignment, and the number of its line."""

    number: int
    name: str
    value: str


def load_file(path: Path, *, regular: bool = False) -> dict[str, str]:
    """Return a file's settings, the last of each name; see `lines`."""
    return {line.name: line.value for line in lines(path, regular=regular)}


def lines(path: Path, *, regular: bool = False) -> list[Line]:
    """Return the assignments of a file, in one read; raises ConfigurationError.

    Args:
        regular: refuse a pipe or device, whose read might never end.
    """
    try:
        text = _decoded(_content(path, regular))
    except OSError as error:
        problem = f"{path}: {error.strerror}"
        raise ConfigurationError(problem, retryable=True) from None
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from None
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
        if more := len(problems[MAX_PROBLEMS:]):
            problems[MAX_PROBLEMS:] = [f"{path}: {with_noun(more, 'more wrong line')}"]
        raise ConfigurationError(*problems)
    return found


def _content(path: Path, regular: bool) -> bytes:
    if regular:
        return read_regular_file(path, MAX_CONFIGURATION_BYTES)
    with path.open("rb") as file:
        content = file.read(MAX_CONFIGURATION_BYTES + 1)
    if len(content) > MAX_CONFIGURATION_BYTES:
        raise ValueError(f"the file has more than {MAX_CONFIGURATION_BYTES} bytes")
    return content


def _decoded(content: bytes) -> str:
    """Return the text of a file, whose line ends must be those of Unix."""
    if content.startswith(BOM_UTF8):
        raise ValueError("it has a byte order mark: save it as UTF-8 without BOM")
    if b"\r\n" in content:
        raise ValueError("it has Windows line ends: save it with Unix line ends")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("the file is not UTF-8 text: save it as UTF-8") from None


def assignment(line: str) -> tuple[str, str]:
    """Return name and value of a line; raises ValueError, which omits the value."""
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", line):
        raise ValueError("the line contains a control character")
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
    if value[0] in " \t":
        raise ValueError(f"{name}: no spaces around =")
    raise ValueError(f"{name}: put the value into quotes; a comment has its own line")


def _not_assigned(word: str, equals: str, rest: str) -> str:
    """Return the error of a line that assigns nothing.

    The line may be a token, or an address with a password: the error omits both.
    """
    if SETTING_NAME.fullmatch(word) and rest.lstrip(" \t").startswith("="):
        return f"{word}: no spaces around ="
    if SETTING_NAME.fullmatch(word):
        return f"{word}: NAME=value is missing its ="
    if not equals or not rest or rest.startswith("=") or "/" in word:
        return "NAME= is missing"
    return f"{quote_value(word)} is not a name"


def name_for_error(line: Line) -> str:
    """Return the name, unless it may be a token: many tokens end in `=`."""
    alone = not line.value.strip("=") and not SETTING_NAME.fullmatch(line.name)
    return "the name" if alone else mask_secrets(line.name)


def with_defaults_from(
    environ: Mapping[str, str], file: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment with the file's settings for variables that are not set.

    An empty variable is not set.
    """
    return {**file, **{k: v for k, v in environ.items() if v.strip() or k not in file}}


def readable_by_all(path: Path) -> bool:
    try:
        return path.stat().st_mode & 0o004 != 0
    except OSError:  # the file was removed after it was read
        return False
