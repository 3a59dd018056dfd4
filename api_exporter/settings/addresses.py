"""Listen addresses. This module imports nothing that takes time."""

import re
from typing import NamedTuple

DEFAULT_LISTEN_ADDRESS = ":8080"


class Address(NamedTuple):
    """An address to listen on; an empty host means all interfaces."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class EndpointDescription(str):
    """A Twisted endpoint description to listen on."""

    __slots__ = ()


_ENDPOINT = re.compile(r"(?:tcp|tcp6|ssl|unix|systemd):\S+")


def parse_address(text: str) -> Address | EndpointDescription:
    """Parse `:8080`, `[::1]:8080`, `localhost:8080` and the like, or an endpoint."""
    if _ENDPOINT.fullmatch(text):
        return EndpointDescription(text)
    match = re.fullmatch(
        r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s:\[\]/]*)):([0-9]{1,5})", text
    )
    if not match or int(match[3]) > 65535:
        if text.isascii() and text.isdigit():
            raise ValueError(f"write :{text}" if len(text) < 6 else "write host:port")
        raise ValueError("write host:port")
    return Address(match[1] or match[2] or "", int(match[3]))


def parse_addresses(text: str) -> tuple[Address | EndpointDescription, ...]:
    found = tuple(parse_address(part.strip()) for part in text.split(","))
    if len(set(found)) < len(found):
        raise ValueError("an address is listed twice")
    return found
