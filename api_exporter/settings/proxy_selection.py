"""Which proxy, if any, stands between an account and its upstream, and who says so."""

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from api_exporter.settings.no_proxy import excluded
from api_exporter.settings.proxy import NONE, Proxy, proxy

OWN = "UPSTREAM_PROXY"

VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
"""What other programs go by, too. Small letters win over great ones."""

_PORTS = {"http": 80, "https": 443}


class ProxySelection(Struct, frozen=True):
    """The proxy that is taken.

    Attributes:
        proxy: None where the upstream is reached directly.
        reason: the variable that says so, or what keeps a proxy from being taken.
    """

    proxy: Proxy | None = None
    reason: str = ""

    def __str__(self) -> str:
        taken = "direct" if self.proxy is None else f"through {self.proxy}"
        return f"{taken} ({self.reason})" if self.reason else taken


DIRECT = ProxySelection()


def select_proxy(
    url: str, own: "Proxy | Literal['none'] | None", environ: Mapping[str, str]
) -> ProxySelection:
    """For the upstream at that address; raises ValueError with a line for a person.

    Args:
        own: what UPSTREAM_PROXY says, which wins.
    """
    if own is not None:
        return DIRECT if own == NONE else ProxySelection(own, OWN)
    parts = urlsplit(url)
    name, text = _set(environ, f"{parts.scheme.upper()}_PROXY")
    if not text:
        return DIRECT
    if parts.scheme == "http" and environ.get("REQUEST_METHOD"):
        # What calls CGI programs sets HTTP_PROXY to what a stranger sent as `Proxy:`.
        raise ValueError(
            f"{name} cannot be trusted where REQUEST_METHOD is set: unset one of them,"
            f" or set {OWN}"
        )
    exempt, listed = _set(environ, "NO_PROXY")
    port = parts.port or _PORTS[parts.scheme]
    assert parts.hostname is not None  # the setting's parser has checked
    if excluded("", parts.hostname, port):
        return ProxySelection(None, "loopback")
    if excluded(listed, parts.hostname, port):
        return ProxySelection(None, exempt)
    try:
        return ProxySelection(proxy(text), name)
    except ValueError as error:
        raise ValueError(
            f"{name}: its value is not allowed: it must be the address of an http or"
            f" https proxy ({error}); {OWN}=none goes without"
        ) from None


def _set(environ: Mapping[str, str], name: str) -> tuple[str, str]:
    """The variable that is set, and its value; "" where neither is."""
    for spelt in (name.lower(), name):
        if text := environ.get(spelt, "").strip():
            return spelt, text
    return name, ""
