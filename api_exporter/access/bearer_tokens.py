"""Bearer tokens: WEB_BEARER_TOKENS_FILE has one in each line."""

import re
from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

from msgspec import Struct

from api_exporter.access.reloading import ReadFile, unreadable
from api_exporter.formatting import with_noun
from api_exporter.ports import ALL_ACCOUNTS, Accounts
from api_exporter.settings.errors import ConfigurationError

MIN_LENGTH = 16

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_PREFIX = "sha256:"


class Tokens(Struct, frozen=True):
    """Hashes of tokens, each with the accounts that the token gives access to."""

    entries: tuple[tuple[bytes, Accounts], ...]

    def authenticate(self, token: bytes) -> Accounts | None:
        """Return the accounts of a token. The time is the same for every token."""
        digest, found = sha256(token).digest(), None
        for known, accounts in self.entries:
            if compare_digest(known, digest):
                found = accounts
        return found

    def describe(self) -> str:
        limited = sum(accounts is not ALL_ACCOUNTS for _, accounts in self.entries)
        count = with_noun(len(self.entries), "token")
        return f"{count}, {limited} limited to some accounts"

    def __repr__(self) -> str:
        return "<tokens>"


def load_tokens(
    path: Path, read: ReadFile, _previous: Tokens | None = None, *, named_accounts: bool
) -> Tokens:
    """Load the file; raise ConfigurationError, which repeats nothing of its content."""
    try:
        text = read(path).decode("ascii")
    except UnicodeDecodeError:
        raise ConfigurationError(
            f"{path}: the file contains a non-ASCII character"
        ) from None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    entries: dict[bytes, Accounts] = {}
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.strip().startswith("#"):
            continue
        try:
            digest, accounts = _parse(line.split())
        except ValueError as error:
            problems.append(f"{path}:{number}: {error}")
            continue
        if accounts is not ALL_ACCOUNTS and not named_accounts:
            problems.append(f"{path}:{number}: account= needs ACCOUNTS_DIR")
        if digest in entries:
            problems.append(f"{path}:{number}: the token is listed twice")
        entries[digest] = accounts
    if not entries and not problems:
        raise ConfigurationError(f"{path}: the file contains no token", retryable=True)
    if problems:
        raise ConfigurationError(*problems)
    return Tokens(tuple(entries.items()))


def _parse(words: Sequence[str]) -> tuple[bytes, Accounts]:
    *before, token = words
    accounts = ALL_ACCOUNTS
    if before and before[-1].startswith("account="):
        names = before.pop().removeprefix("account=").split(",")
        if not all(map(_NAME.fullmatch, names)):
            raise ValueError("account= must be names, separated by commas")
        accounts = frozenset(names)
    if len(before) > 1 or not all(map(_NAME.fullmatch, before)):
        raise ValueError("a line must be [NAME] [account=NAME,NAME] TOKEN")
    return _digest(token), accounts


def _digest(token: str) -> bytes:
    if token.startswith(_PREFIX):
        digits = token.removeprefix(_PREFIX)
        if not re.fullmatch(r"[0-9a-fA-F]{64}", digits):
            raise ValueError(f"{_PREFIX} must be followed by 64 hexadecimal digits")
        return bytes.fromhex(digits)
    if token.startswith("account="):
        raise ValueError("the token is missing")
    if len(token) < MIN_LENGTH or not _TOKEN.fullmatch(token):
        raise ValueError(f"a token must have at least {MIN_LENGTH} visible characters")
    return sha256(token.encode()).digest()
