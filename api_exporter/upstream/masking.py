"""Masking of secrets that the words of others may repeat. Pure."""

import re

_LONGEST = 200
"""Characters of such words that are shown."""

_TELLING = 8
"""Characters of a secret that, in a row, tell too much of it."""

_NETBIRD_TOKEN = re.compile(r"nbp_\w*")

_MASK = "<token>"


def masked(text: str, *secrets: str) -> str:
    """The beginning of a text, without tokens and without pieces of the secrets."""
    text = text[: 2 * _LONGEST]
    for secret in secrets:
        text = text.replace(secret, _MASK)
    text = _NETBIRD_TOKEN.sub(_MASK, text)
    pieces = {
        secret[i : i + _TELLING]
        for secret in secrets
        for i in range(len(secret) - _TELLING + 1)
    }
    hidden = set[int]()
    for place in range(len(text)):
        if text[place : place + _TELLING] in pieces:
            hidden.update(range(place, place + _TELLING))
    shown = ("\0" if place in hidden else text[place] for place in range(len(text)))
    return re.sub("\0+", _MASK, "".join(shown))[:_LONGEST]
