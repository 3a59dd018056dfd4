"""The query of service discovery: its checked parameters.

An unknown parameter is an error: a misspelt `gruop` must not mean all peers. No port is
right for all targets, so there is no default.
"""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from msgspec import Struct

ADDRESS_KINDS = ("ip", "ipv6", "dns")
"""The kinds of a peer's address that a target may have; the first is the default."""

MAX_PORTS = 16
"""The maximum number of ports in a query: each multiplies the targets."""

_PARAMETERS = ("port", "group", "address")

_PORT = re.compile(r"[1-9][0-9]{0,4}")

Arguments = Mapping[bytes, Sequence[bytes]]
"""The raw values of each parameter."""


class Query(Struct, frozen=True):
    """The selected targets; equivalent queries are equal.

    Attributes:
        ports: each gives one target per peer.
        groups: ids or names; a peer in any of them is selected. Empty for all peers.
        address_kind: one of ADDRESS_KINDS.
    """

    ports: tuple[int, ...]
    groups: frozenset[str]
    address_kind: str


class QueryError(Exception):
    """An invalid query; the message is one line that says what is valid."""


def parse_query(arguments: Arguments, others: Sequence[str] = ()) -> Query:
    """Return the checked query; raise QueryError.

    Args:
        others: names of further parameters, which are ignored.
    """
    for name in arguments:
        if _text(name) not in (*_PARAMETERS, *others):
            allowed = ", ".join((*others, *_PARAMETERS))
            raise QueryError(
                f"{_text(name)!r} is not allowed: the parameters are {allowed}"
            )
    ports = {_port(_text(value)) for value in arguments.get(b"port", ())}
    if not ports:
        given = [(name, value) for name in arguments for value in arguments[name]]
        line = f"/sd?{urlencode([*given, (b'port', b'9100')])}"
        raise QueryError(
            f"port is missing: request {line} or another port of the targets"
        )
    if len(ports) > MAX_PORTS:
        raise QueryError(
            f"{len(ports)} ports are not allowed: request at most {MAX_PORTS} at once"
        )
    groups = [_text(value) for value in arguments.get(b"group", ())]
    if "" in groups:
        raise QueryError(
            "group: '' is not allowed: it must be the id or name of a group"
        )
    addresses = [_text(value) for value in arguments.get(b"address", (b"ip",))]
    if len(addresses) > 1:
        raise QueryError(
            "address: more than one is not allowed: only port and group may repeat"
        )
    if addresses[0] not in ADDRESS_KINDS:
        allowed = ", ".join(ADDRESS_KINDS)
        raise QueryError(
            f"address: {addresses[0]!r} is not allowed: it must be {allowed}"
        )
    return Query(tuple(sorted(ports)), frozenset(groups), addresses[0])


def _port(text: str) -> int:
    if _PORT.fullmatch(text) is None or int(text) > 65535:
        raise QueryError(
            f"port: {text!r} is not allowed: it must be a whole number from 1 to 65535"
        )
    return int(text)


def _text(raw: bytes) -> str:
    """Decode a value; invalid UTF-8 is replaced, as in the records."""
    return raw.decode("utf-8", "replace")
