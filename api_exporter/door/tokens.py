"""WEB_BEARER_TOKENS_FILE: tokens that open the door, a line each."""

import re
from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

from msgspec import Struct

from api_exporter.door.live import Read
from api_exporter.door.rules import Credential
from api_exporter.serving.authorization import ALL
from api_exporter.settings.errors import ConfigurationError

SHORTEST = 16
"""Characters of a token, at least."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_HASHED = "sha256:"


class Tokens(Struct, frozen=True):
    """Hashes of tokens, and whom each lets in."""

    known: tuple[tuple[bytes, Credential], ...]

    def whose(self, token: bytes) -> Credential | None:
        """Whose token this is; it takes as long whichever it is."""
        digest, found = sha256(token).digest(), None
        for known, credential in self.known:
            if compare_digest(known, digest):
                found = credential
        return found

    def __repr__(self) -> str:
        return "<tokens>"


def tokens(path: Path, read: Read, *, several: bool) -> Tokens:
    """What the file says now; raises ConfigurationError, without a word of it.

    Args:
        several: whether there are accounts with names.
    """
    try:
        text = read(path).decode("ascii")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: it holds a non-ASCII character") from None
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError(f"{path}: {words}", retryable=True) from None
    known: dict[bytes, Credential] = {}
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.strip().startswith("#"):
            continue
        try:
            digest, credential = _read(line.split())
        except ValueError as error:
            problems.append(f"{path}:{number}: {error}")
            continue
        if credential.accounts is not ALL and not several:
            problems.append(f"{path}:{number}: account= needs ACCOUNTS_DIR")
        if digest in known:
            problems.append(f"{path}:{number}: the token is there twice")
        known[digest] = credential
    if not known and not problems:
        raise ConfigurationError(f"{path}: it holds no token", retryable=True)
    if problems:
        raise ConfigurationError(*problems)
    return Tokens(tuple(known.items()))


def _read(words: Sequence[str]) -> tuple[bytes, Credential]:
    """The hash of a line's token, and whom it lets in."""
    *before, token = words
    accounts = ALL
    if before and before[-1].startswith("account="):
        names = before.pop().removeprefix("account=").split(",")
        if not all(map(_NAME.fullmatch, names)):
            raise ValueError("account= takes names, separated by commas")
        accounts = frozenset(names)
    name = before.pop() if before else ""
    if before or (name and not _NAME.fullmatch(name)):
        raise ValueError("a line is [NAME] [account=NAME,NAME] TOKEN")
    return _digest(token), Credential(name=name, accounts=accounts)


def _digest(token: str) -> bytes:
    if token.startswith(_HASHED):
        digits = token.removeprefix(_HASHED)
        if not re.fullmatch(r"[0-9a-fA-F]{64}", digits):
            raise ValueError(f"{_HASHED} takes 64 hexadecimal digits")
        return bytes.fromhex(digits)
    if token.startswith("account="):
        raise ValueError("the token is missing")
    if len(token) < SHORTEST or not _TOKEN.fullmatch(token):
        raise ValueError(f"a token has at least {SHORTEST} visible characters")
    return sha256(token.encode()).digest()
