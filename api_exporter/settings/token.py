"""The token of the NetBird API: hidden, checked, and read from a file."""

import re
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

from msgspec import Struct

from api_exporter.settings.errors import ConfigurationError
from api_exporter.settings.regular_file import read_regular_file


class Token:
    """A secret that no log, traceback or page shows by accident."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def reveal(self) -> str:
        """Return the secret itself, for the Authorization header."""
        return self._secret

    def __repr__(self) -> str:
        return "<token>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and other._secret == self._secret

    def __hash__(self) -> int:
        return hash(self._secret)

    def doubt(self) -> str:
        """Return why this may be no access token, or "". It is used nevertheless."""
        if self.mistyped():
            return (
                "the checksum of the token is wrong: check the token for typing errors"
            )
        found = (why for form, why in _DOUBTS.items() if form.match(self._secret))
        return next(found, "")

    def mistyped(self) -> bool:
        """Return whether this is a NetBird token with a wrong checksum.

        Fact: `nbp_`, 30 characters, and their CRC-32 in base 62, padded to 6. Other
        tokens have no known checksum.
        """
        if not self._secret.startswith("nbp_"):
            return False
        secret, checksum = self._secret[4:-6], self._secret[-6:]
        return len(secret) != 30 or checksum != base62(crc32(secret.encode()))


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def base62(number: int) -> str:
    """Return a checksum as NetBird writes it: base 62, at least six digits."""
    digits = ""
    while number:
        number, digit = divmod(number, 62)
        digits = _DIGITS[digit] + digits
    return digits.rjust(6, "0")


_INSTEAD = "use an access token of a service user"

_DOUBTS = {
    re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"): (
        f"the token has the form of a setup key: {_INSTEAD}"
    ),
    re.compile("eyJ"): (
        "the token has the form of a dashboard login, which expires within hours:"
        f" {_INSTEAD}"
    ),
    re.compile("nbx_"): (
        f"the token has the form of a reverse proxy's token: {_INSTEAD}"
    ),
    re.compile("bmJwX"): "the token has the form of base64 of nbp_…: decode the token",
    re.compile(r"~?/[\w.-]+/[\w./-]+$|~/"): (
        "the token has the form of a path: UPSTREAM_API_TOKEN_FILE takes the path of a"
        " file"
    ),
}
"""Other things that have the form of a token, and their warnings."""

_DECORATIONS = {
    re.compile("[\"'`]|.*[\"'`]$"): "leave out the quotes around the token",
    re.compile(r"[{\[]"): "the value is JSON: leave out all but the token",
    re.compile(r"<.*>$"): "the value is a placeholder: put your token in its place",
    re.compile(r"(authorization: *)?(token|bearer)\b", re.IGNORECASE): (
        "leave out the prefix before the token"
    ),
    re.compile(r"(export +)?\w+ *[=:]"): "leave out the name before the token",
}
"""Text that was copied together with a token, and the words of the error."""


def parse_token(text: str) -> Token:
    """Parse a bearer token.

    Fact: RFC 6750, section 2.1, allows these characters (`b64token`).
    """
    if re.fullmatch(r"[A-Za-z0-9._~+/-]+=*", text):
        return Token(text)
    for decoration, hint in _DECORATIONS.items():
        if decoration.match(text):
            raise ValueError(hint)
    if re.fullmatch(r"[\x21-\x7e]+", text):
        raise ValueError(
            "a token has letters, digits and - . _ ~ + / only, and = at its end"
        )
    raise ValueError("the token contains a space, control or non-ASCII character")


TokenSource = Callable[[], Token]


MAX_TOKEN_BYTES = 64 * 1024


class TokenFile(Struct, frozen=True):
    """A file that holds the token and may be replaced at any time."""

    path: Path

    def read(self) -> Token:
        """Return the current token without surrounding spaces; raises ValueError."""
        try:
            text = read_setting_file(self.path, MAX_TOKEN_BYTES).decode("ascii").strip()
        except UnicodeDecodeError:
            raise ValueError("the file contains a non-ASCII character") from None
        return parse_token(text)


def read_setting_file(path: Path, max_bytes: int) -> bytes:
    """Return the content of a file that a setting names.

    An OSError is a retryable error, and so is an empty file: it is being written.
    """
    try:
        content = read_regular_file(path, max_bytes)
    except OSError as error:
        raise ConfigurationError(str(error.strerror), retryable=True) from None
    if not content.strip():
        raise ConfigurationError("the file is empty", retryable=True)
    return content


def token_file(text: str) -> TokenFile:
    file = TokenFile(Path(text))
    file.read()
    return file


class TokenReader:
    """The token of a file, read again for every request.

    If the file cannot be read, the last token stays in use.

    Args:
        report: called with the reason when the file becomes unreadable.
    """

    def __init__(self, file: TokenFile, report: Callable[[str], None]) -> None:
        self._file = file
        self._report = report
        self._newest = file.read()
        self.readable = True
        self.on_changed: Callable[[], object] = lambda: None

    def __call__(self) -> Token:
        """Return the newest token that could be read."""
        try:
            before, self._newest = self._newest, self._file.read()
            self.readable = True
            if self._newest != before:
                self.on_changed()
        except ValueError as error:
            if self.readable:
                self._report(f"{self._file.path}: {error}")
            self.readable = False
        return self._newest
