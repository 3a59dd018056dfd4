"""Fuzz target: configuration files and their settings.

* Only ConfigurationError is raised, with one line for each mistake, and without a
  token.
* An accepted line has the value that a plain parser of shell quotes returns.
* A quoted value keeps its meaning.
"""

import io
import re
from typing import Any, cast

from api_exporter.settings.configuration_file import assignment, lines
from api_exporter.settings.definitions import SETTINGS
from api_exporter.settings.environment import read_settings
from api_exporter.settings.errors import ConfigurationError

TOKEN = b"nbp_s3cr3tCanary"

TOKEN_IN_NAME = re.compile(rb"s3cr3tCanary[^ \t=\n]*=[^=\n]")
"""A part of the token in a setting's name that has a value."""

SEEDS = (
    b"UPSTREAM_API_URL=https://api.netbird.io\nUPSTREAM_API_TOKEN=" + TOKEN + b"\n",
    b'# comment\n export A=\'b c\'\nB="\\$x \\\\ \\` \\""\n',
    b"UPSTREAM_API_TOKEN=" + TOKEN + b"\nHTTPS_PROXY=http://me:s3cr3tCanary@p:1\n",
    b"UPSTREAM_API_TOKEN = " + TOKEN + b"\n" + TOKEN + b"\nA=$B\nC='d\n",
    *(
        b"UPSTREAM_API_URL=https://x\nUPSTREAM_API_TOKEN=%b\n%b='%b'\n"
        % (TOKEN, setting.name.encode(), (setting.default or "1").encode())
        for setting in SETTINGS
    ),
)


class File:
    """A file with its bytes in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __str__(self) -> str:
        return "config"

    def open(self, _: str) -> io.BytesIO:
        return io.BytesIO(self._content)


def unquoted(value: str) -> str:
    """Return the value of a shell word, parsed character by character."""
    found, quote, place = "", "", 0
    while place < len(value):
        character = value[place]
        if character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote = character
        elif quote == '"' and character == "\\" and value[place + 1] in '$`"\\':
            place += 1
            found += value[place]
        else:
            found += character
        place += 1
    assert not quote, value
    return found


def check(error: ConfigurationError, secret: str) -> None:
    assert error.problems
    for problem in error.problems:
        assert problem.isprintable(), problem
        assert not secret or secret not in problem, problem
        assert len(problem) < 2000, problem


def attempt(data: bytes) -> None:
    try:
        found = lines(cast("Any", File(data)))
    except ConfigurationError as error:
        check(error, "" if TOKEN_IN_NAME.search(data) else "s3cr3tCanary")
        return
    text = data.decode().split("\n")
    for line in found:
        written = text[line.number - 1].strip(" \t").partition("=")[2]
        assert unquoted(written) == line.value, (written, line)
        quoted = re.sub(r'([\\"$`])', r"\\\1", line.value)
        assert assignment(f'{line.name}="{quoted}"') == (line.name, line.value)
    values = {
        line.name: line.value
        for line in found
        if not line.name.endswith(("_FILE", "_DIR"))  # they would be read
    }
    try:
        read_settings(values)
    except ConfigurationError as error:
        secret = values.get("UPSTREAM_API_TOKEN", "").strip()
        check(error, secret if len(secret) > len(TOKEN) / 2 else "")
