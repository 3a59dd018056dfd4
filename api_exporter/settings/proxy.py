"""The proxy of an account: its address, and the variable that names it.

User and password are not shown by accident. NO_PROXY follows Go's rules, which
operators of exporters know. `tests/settings/no_proxy.json` holds results of
golang.org/x/net/http/httpproxy.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Literal
from urllib.parse import unquote_to_bytes, urlsplit

import idna
from msgspec import Struct

from api_exporter.settings import parsers
from api_exporter.settings.addresses import Address
from api_exporter.settings.errors import quote_value
from api_exporter.settings.token import Token

NO_PROXY_WORD: Literal["none"] = "none"

DEFAULT_PORTS = {"http": 80, "https": 443}

_MIN_SECRET_LENGTH = 4
"""The minimum length of a password that errors mask. Shorter ones match other text."""


class Proxy(Struct, frozen=True, kw_only=True):
    """A proxy and the exporter's login.

    Attributes:
        host: a name, or an address without brackets.
        login: the value of Proxy-Authorization; None if the proxy needs none.
        secrets: texts of the login that must not be shown.
    """

    host: str
    port: int
    login: Token | None = None
    secrets: tuple[Token, ...] = ()

    def __str__(self) -> str:
        return str(Address(self.host, self.port))


def proxy(text: str) -> Proxy:
    """Parse `proxy.example:3128` or `http://user:password@proxy.example`.

    Raises ValueError, which repeats no part: a password may be anywhere.
    """
    if not text.isprintable() or " " in text:
        raise ValueError("a space or control character is not allowed")
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError("write % in user or password as %25")
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise ValueError("the port must be a number up to 65535") from None
    if parts.scheme != "http":
        raise ValueError("the scheme must be http, also for an https API")
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ValueError(
            "nothing may follow the port; in user and password write / ? and # as %2F"
            " %3F and %23"
        )
    if not parts.hostname:
        raise ValueError("the address has no host")
    if port == 0:
        raise ValueError("port 0 is not allowed")
    try:
        host = parsers.hostname(parts.hostname).strip("[]")
    except ValueError:
        raise ValueError("the host must be a name or an address") from None
    port = port or DEFAULT_PORTS["http"]
    if parts.username is None:
        return Proxy(host=host, port=port)
    return _with_login(host, port, parts.username, parts.password or "")


def _with_login(host: str, port: int, user: str, secret: str) -> Proxy:
    password = unquote_to_bytes(secret)
    packed = b64encode(unquote_to_bytes(user) + b":" + password).decode("ascii")
    shown = password.decode(errors="replace")
    long = {shown, secret} if len(shown) >= _MIN_SECRET_LENGTH else ()
    return Proxy(
        host=host,
        port=port,
        login=Token(f"Basic {packed}"),
        secrets=tuple(map(Token, (packed, *long))),
    )


def proxy_or_none(text: str) -> "Proxy | Literal['none']":
    return NO_PROXY_WORD if text.lower() == NO_PROXY_WORD else proxy(text)


PROXY_SETTING = "UPSTREAM_PROXY"

VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
"""Variables that other programs read too. The lower-case form takes precedence."""

_WITH_PORT = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*)):([^:\[\]]*)")
_RANGE = re.compile(r"[0-9a-f:.]+/\d{1,3}", re.ASCII)
_V4_IN_V6 = 96
"""Bits before an IPv4 address in an IPv6 address."""


class ProxySelection(Struct, frozen=True):
    """The selected proxy.

    Attributes:
        proxy: None for a direct connection.
        reason: the variable that decides, or the reason for a direct connection.
    """

    proxy: Proxy | None = None
    reason: str = ""

    def __str__(self) -> str:
        route = "direct" if self.proxy is None else f"through {self.proxy}"
        return f"{route} ({self.reason})" if self.reason else route


DIRECT = ProxySelection()


def select_proxy(
    url: str, own: "Proxy | Literal['none'] | None", environ: Mapping[str, str]
) -> ProxySelection:
    """Return the selection for an address of the API; raises ValueError.

    Args:
        own: UPSTREAM_PROXY, which takes precedence.
    """
    if own is not None:
        return DIRECT if own == NO_PROXY_WORD else ProxySelection(own, PROXY_SETTING)
    parts = urlsplit(url)
    name, text = _variable(environ, f"{parts.scheme.upper()}_PROXY")
    if not text:
        return DIRECT
    if parts.scheme == "http" and environ.get("REQUEST_METHOD"):
        # CGI servers set HTTP_PROXY from a client's header `Proxy:`.
        raise ValueError(
            f"{name} cannot be trusted where REQUEST_METHOD is set: unset one of them,"
            f" or set {PROXY_SETTING}"
        )
    variable, listed = _variable(environ, "NO_PROXY")
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    assert parts.hostname is not None  # the setting's parser has checked
    # A dot at the end of a name is for DNS alone.
    hosts = {parts.hostname, parts.hostname.removesuffix(".")}
    if any(excluded("", host, port) for host in hosts):
        return ProxySelection(None, "loopback")
    if any(excluded(listed, host, port) for host in hosts):
        return ProxySelection(None, variable)
    try:
        return ProxySelection(proxy(text), name)
    except ValueError as error:
        raise ValueError(
            f"{name}: its value is not allowed: it must be the address of an http"
            f" proxy ({error}); {PROXY_SETTING}=none uses no proxy"
        ) from None


def _variable(environ: Mapping[str, str], name: str) -> tuple[str, str]:
    """Return the variable that is set, in either case, and its value, or ""."""
    for spelt in (name.lower(), name):
        if text := environ.get(spelt, "").strip():
            return spelt, text
    return name, ""


def no_proxy_warnings(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each entry of NO_PROXY that can match no host.

    It has another separator than a comma, a quote, or a scheme.
    """
    name, listed = _variable(environ, "NO_PROXY")
    for entry in map(str.strip, listed.split(",")):
        if re.search(r"[\s;|'\"]|://", entry):
            yield (
                f"{name}: {quote_value(entry)} matches no host: separate hosts by"
                " commas, without blanks, quotes and http://"
            )


def excluded(listed: str, host: str, port: int) -> bool:
    """Return whether a host is reached without a proxy. Loopback always is.

    Args:
        listed: NO_PROXY. Malformed entries match no host.
        host: a lower-case name, or an address without brackets.
    """
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = [entry.strip().lower() for entry in listed.split(",")]
    return "*" in entries or any(
        _matches(entry, host, address, port) for entry in entries
    )


def _matches(
    entry: str, host: str, address: IPv4Address | IPv6Address | None, port: int
) -> bool:
    if _RANGE.fullmatch(entry):
        return address is not None and _in_range(address, entry)
    name, entry_port = entry, ""
    if split := _WITH_PORT.fullmatch(entry):
        name, entry_port = split[1] or split[2] or "", split[3]
    if not name or entry_port not in {"", str(port)}:
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
    """Return the IPv4 address in an IPv6 one: ::ffff:10.0.0.1 is 10.0.0.1."""
    return getattr(address, "ipv4_mapped", None) or address


def _ascii(name: str) -> str:
    if name.isascii():
        return name
    try:
        return idna.encode(name, uts46=True).decode()
    except UnicodeError:
        return name
