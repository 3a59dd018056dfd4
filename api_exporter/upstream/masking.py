"""Masking of secrets in texts of servers and proxies. Pure."""

import re
from collections.abc import Iterable

_MAX_CHARACTERS = 200

_PIECE_CHARACTERS = 8
"""Minimum adjacent characters of a secret that are masked."""

_MIN_LONG_SECRET = 20
"""Minimum characters of a secret that is masked in records, where a short one may be a
word. Tokens have 40."""

_NETBIRD_TOKEN = re.compile(r"nbp_\w*")

_MASK = "<token>"


def mask_secrets(text: str, *secrets: str) -> str:
    """Return the beginning of a text; tokens and pieces of the secrets are masked."""
    text = text[: 2 * _MAX_CHARACTERS]
    for secret in secrets:
        text = text.replace(secret, _MASK)
    text = _NETBIRD_TOKEN.sub(_MASK, text)
    pieces = {
        secret[i : i + _PIECE_CHARACTERS]
        for secret in secrets
        for i in range(len(secret) - _PIECE_CHARACTERS + 1)
    }
    hidden = set[int]()
    for place in range(len(text)):
        if text[place : place + _PIECE_CHARACTERS] in pieces:
            hidden.update(range(place, place + _PIECE_CHARACTERS))
    shown = ("\0" if place in hidden else text[place] for place in range(len(text)))
    return re.sub("\0+", _MASK, "".join(shown))[:_MAX_CHARACTERS]


STEP_BYTES = 2**20
"""Bytes that are searched before the event loop may run."""


def mask_records(secrets: Iterable[str], data: bytes) -> bytes:
    """Return records of any size; long secrets in them are masked."""
    for secret in secrets:
        if len(secret) >= _MIN_LONG_SECRET and _contains(data, secret.encode()):
            data = data.replace(secret.encode(), _MASK.encode())
    return data


def _contains(data: bytes, part: bytes) -> bool:
    length = STEP_BYTES + len(part)
    begins = range(0, len(data), STEP_BYTES)
    return any(data.find(part, begin, begin + length) >= 0 for begin in begins)


def one_line(text: str) -> str:
    """Return a text without control characters and ends of lines."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", text)
