"""The credentials of a request from its Authorization header."""

import base64
import binascii
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct


class Credentials(Struct, frozen=True):
    """A user with a password, a token, or credentials of an unknown scheme.

    Attributes:
        user: empty unless the scheme is `basic`.
        secret: the password or token.
    """

    scheme: Literal["basic", "bearer", "unknown"]
    secret: bytes = b""
    user: bytes = b""

    def __repr__(self) -> str:
        return f"<{self.scheme} credentials>"


def parse(values: Sequence[bytes] | None) -> Credentials | None:
    """Parse the values of all Authorization headers; return None without any."""
    if not values:
        return None
    scheme, _, value = values[0].strip().partition(b" ")
    value = value.strip()
    if len(values) == 1 and scheme.lower() == b"bearer":
        return Credentials("bearer", value)
    if len(values) == 1 and scheme.lower() == b"basic":
        try:
            decoded = base64.b64decode(value, validate=True)
        except binascii.Error:
            return Credentials("unknown")
        user, colon, password = decoded.partition(b":")
        if colon:
            return Credentials("basic", password, user)
    return Credentials("unknown")
