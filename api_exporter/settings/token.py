"""The token that opens the upstream: kept out of sight, checked, read from a file."""

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

from msgspec import Struct

from api_exporter.settings.errors import ConfigurationError


class Token:
    """A secret that no log, traceback or page shows by accident."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def reveal(self) -> str:
        """The secret itself, for the Authorization header."""
        return self._secret

    def __repr__(self) -> str:
        return "<token>"

    def mistyped(self) -> bool:
        """Whether this is a NetBird token whose checksum is wrong.

        Fact: `nbp_`, 30 characters, and the CRC-32 of those in base 62, padded to 6. Of
        any other kind of token nothing can be said.
        """
        if not self._secret.startswith("nbp_"):
            return False
        secret, checksum = self._secret[4:-6], self._secret[-6:]
        return len(secret) != 30 or checksum != base62(crc32(secret.encode()))


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def base62(number: int) -> str:
    """As NetBird writes a checksum: digits of 62, six at least."""
    digits = ""
    while number:
        number, digit = divmod(number, 62)
        digits = _DIGITS[digit] + digits
    return digits.rjust(6, "0")


def token(text: str) -> Token:
    """A bearer token (RFC 6750: visible ASCII, no spaces)."""
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise ValueError("the token contains a space, control or non-ASCII character")
    return Token(text)


TokenSource = Callable[[], Token]
"""Gives the token to use now."""


MOST = 64 * 1024
"""Bytes of a token file, at most."""


class TokenFile(Struct, frozen=True):
    """A file that holds the token and may be replaced at any time."""

    path: Path

    def read(self) -> Token:
        """What the file holds now, without white space around it; raises ValueError."""
        try:
            text = content(self.path, MOST).decode("ascii").strip()
        except UnicodeDecodeError:
            raise ValueError("the file contains a non-ASCII character") from None
        if not text:
            raise ConfigurationError("the file is empty", retryable=True)
        return token(text)


def regular(path: Path, most: int) -> bytes:
    """What a file holds; a pipe or a device could be waited for, or read, for ever.

    Raises OSError where it cannot be read, ValueError where it is none of ours.
    """
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise ValueError("the file is not a regular file")
        content = os.read(opened, most + 1)
    finally:
        os.close(opened)
    if len(content) > most:
        raise ValueError(f"the file has more than {most} bytes")
    return content


def content(path: Path, most: int) -> bytes:
    """The same of a file that a setting names; that may become readable later."""
    try:
        return regular(path, most)
    except OSError as error:
        raise ConfigurationError(str(error.strerror), retryable=True) from None


def token_file(text: str) -> TokenFile:
    """A file that can be read now."""
    file = TokenFile(Path(text))
    file.read()
    return file


class TokenReader:
    """The token of a file, read again for every request.

    A file that cannot be read any more is no reason to stop: the token that it held
    stays in use.

    Args:
        report: called with why, when the file cannot be read, once until it can be.

    Attributes:
        readable: whether it could be read when it was last wanted.
    """

    def __init__(self, file: TokenFile, report: Callable[[str], None]) -> None:
        self._file = file
        self._report = report
        self._newest = file.read()
        self.readable = True

    def __call__(self) -> Token:
        """The newest token that could be read."""
        try:
            self._newest = self._file.read()
            self.readable = True
        except ValueError as error:
            if self.readable:
                self._report(f"{self._file.path}: {error}")
            self.readable = False
        return self._newest
