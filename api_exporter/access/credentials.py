"""The credentials of a request: what its Authorization header holds."""

import base64
import binascii
from collections.abc import Sequence

from msgspec import Struct


class BasicCredentials(Struct, frozen=True):
    """A user's name and password."""

    user: bytes
    password: bytes

    def __repr__(self) -> str:
        return "<password>"


class BearerCredentials(Struct, frozen=True):
    """A token."""

    token: bytes

    def __repr__(self) -> str:
        return "<token>"


class UnknownCredentials(Struct, frozen=True):
    """Something that nobody here asks for, or that is broken."""


Credentials = BasicCredentials | BearerCredentials | UnknownCredentials


def parse(values: Sequence[bytes] | None) -> Credentials | None:
    """What the headers of that name hold; None where there are none."""
    if not values:
        return None
    scheme, _, rest = values[0].strip().partition(b" ")
    rest = rest.strip()
    if len(values) == 1 and scheme.lower() == b"bearer":
        return BearerCredentials(rest)
    if len(values) == 1 and scheme.lower() == b"basic":
        try:
            decoded = base64.b64decode(rest, validate=True)
        except binascii.Error:
            return UnknownCredentials()
        user, colon, password = decoded.partition(b":")
        if colon:
            return BasicCredentials(user, password)
    return UnknownCredentials()
