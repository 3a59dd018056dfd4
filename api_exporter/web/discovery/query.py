"""The query of service discovery: its parameters, checked. Nothing is guessed.

A misspelt `gruop` must not mean all peers, and there is no port that is right for all.
"""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from msgspec import Struct

PATH = "/sd"

ADDRESSES = ("ip", "ipv6", "dns")
"""What of a peer may be the target's address; the first is the default."""

MOST_PORTS = 16
"""Ports in one query: each is as many targets as there are peers."""

_ALLOWED = ("port", "group", "address")

_PORT = re.compile(r"[1-9][0-9]{0,4}")

Arguments = Mapping[bytes, Sequence[bytes]]
"""The values of each parameter, as they came."""


class Query(Struct, frozen=True):
    """Which targets; two that ask for the same are equal.

    Attributes:
        ports: one target of a peer for each.
        groups: ids or names; a peer in any of them is meant. None: all peers.
    """

    ports: tuple[int, ...]
    groups: frozenset[str]
    address: str


class QueryError(Exception):
    """What is wrong with a query, in one line that says what would be right."""


def query(arguments: Arguments, others: Sequence[str] = ()) -> Query:
    """The checked query; raises Wrong.

    Args:
        others: parameters that are somebody else's business.
    """
    for name in arguments:
        if _text(name) not in (*_ALLOWED, *others):
            allowed = ", ".join((*others, *_ALLOWED))
            raise QueryError(
                f"{_text(name)!r} is not allowed: the parameters are {allowed}"
            )
    ports = {_port(_text(value)) for value in arguments.get(b"port", ())}
    if not ports:
        given = [(name, value) for name in arguments for value in arguments[name]]
        line = f"{PATH}?{urlencode([*given, (b'port', b'9100')])}"
        raise QueryError(
            f"port is missing: ask for {line} or another port of the targets"
        )
    if len(ports) > MOST_PORTS:
        raise QueryError(
            f"{len(ports)} ports are not allowed: ask for at most {MOST_PORTS} at once"
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
    if addresses[0] not in ADDRESSES:
        allowed = ", ".join(ADDRESSES)
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
    """What is not UTF-8 becomes what it has become in the records, too."""
    return raw.decode("utf-8", "replace")
