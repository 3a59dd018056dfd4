"""A token that must be found nowhere, and all forms in which it could be."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from unittest import TestCase

CANARY = "nbp_0canary0canary0canary0canary0c4PYgFe"
"""Well-formed: its checksum is right."""

PROXY_USER = "me"
"""The user of a proxy, whose password may be the canary."""


def forms(token: str) -> Iterator[str]:
    """All texts that tell the token, or whether a guess at it is right."""
    digest = hashlib.sha256(token.encode()).digest()
    yield token
    yield token[4:-6]
    yield base64.b64encode(token.encode()).decode().rstrip("=")
    yield base64.b64encode(f"{PROXY_USER}:{token}".encode()).decode().rstrip("=")
    yield digest.hex()
    yield base64.b64encode(digest).decode().rstrip("=")
    yield base64.b64encode(digest).decode().rstrip("=").lower()


def assert_clean(
    test: TestCase, hidden: Sequence[str], text: str | bytes, what: str
) -> None:
    """Nothing of a secret is in a text."""
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    for form in hidden:
        test.assertFalse(form in text, f"{form} in {what}: {text[-3000:]}")
