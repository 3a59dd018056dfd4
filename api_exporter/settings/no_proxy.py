"""Whom NO_PROXY names, by Go's rules, which operators of exporters know.

`tests/settings/no_proxy.json` holds what golang.org/x/net/http/httpproxy makes of it.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import idna

_WITH_PORT = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*)):([^:\[\]]*)")
_RANGE = re.compile(r"[0-9a-f:.]+/\d{1,3}", re.ASCII)
_V4_IN_V6 = 96
"""Bits before an IPv4 address that is written as an IPv6 one."""


def excluded(listed: str, host: str, port: int) -> bool:
    """Whether a host is reached without a proxy. Loopback always is.

    Args:
        listed: NO_PROXY. What makes no sense in it names nobody.
        host: a name in small letters, or an address without brackets.
    """
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = [entry.strip().lower() for entry in listed.split(",")]
    return "*" in entries or any(
        _names(entry, host, address, port) for entry in entries
    )


def _names(
    entry: str, host: str, address: IPv4Address | IPv6Address | None, port: int
) -> bool:
    if _RANGE.fullmatch(entry):
        return address is not None and _in_range(address, entry)
    name, wanted = entry, ""
    if split := _WITH_PORT.fullmatch(entry):
        name, wanted = split[1] or split[2] or "", split[3]
    if not name or wanted not in {"", str(port)}:
        return False
    named = _address(name)
    if named is not None or address is not None:
        return named == address
    name = name.removeprefix("*") if name.startswith("*.") else name
    below = "." + _ascii(name.removeprefix("."))
    return host.endswith(below) or (host == below[1:] and not name.startswith("."))


def _in_range(address: IPv4Address | IPv6Address, entry: str) -> bool:
    try:
        network = ip_network(entry, strict=False)
    except ValueError:
        return False
    first = _plain(network.network_address)
    if first.version != network.version:
        network = ip_network((first, network.prefixlen - _V4_IN_V6))
    return address in network


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return _plain(ip_address(text))
    except ValueError:
        return None


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """IPv4 where that is meant: ::ffff:10.0.0.1 is 10.0.0.1."""
    return getattr(address, "ipv4_mapped", None) or address


def _ascii(name: str) -> str:
    if name.isascii():
        return name
    try:
        return idna.encode(name, uts46=True).decode()
    except UnicodeError:
        return name
