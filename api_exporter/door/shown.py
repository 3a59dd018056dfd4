"""What a client shows to be let in: the Authorization header."""

import base64
import binascii
from collections.abc import Sequence

from msgspec import Struct


class Password(Struct, frozen=True):
    """A user's name and password."""

    user: bytes
    password: bytes

    def __repr__(self) -> str:
        return "<password>"


class Bearer(Struct, frozen=True):
    """A token."""

    token: bytes

    def __repr__(self) -> str:
        return "<token>"


class Unknown(Struct, frozen=True):
    """Something that opens no door of ours."""


Shown = Password | Bearer | Unknown


def shown(values: Sequence[bytes] | None) -> Shown | None:
    """What the headers of that name hold; None where there are none."""
    if not values:
        return None
    scheme, _, rest = values[0].strip().partition(b" ")
    rest = rest.strip()
    if len(values) == 1 and scheme.lower() == b"bearer":
        return Bearer(rest)
    if len(values) == 1 and scheme.lower() == b"basic":
        try:
            user, colon, password = base64.b64decode(rest, validate=True).partition(
                b":"
            )
        except binascii.Error:
            return Unknown()
        return Password(user, password) if colon else Unknown()
    return Unknown()
