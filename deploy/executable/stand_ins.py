"""Of modules that libraries import and an exporter never uses, the names alone.

They cost memory, five megabytes of an idle program's fifty-five. What each is for, and
what the libraries could do: docs/internals/upstream-patches.md.
"""

import sys
from types import CoroutineType, ModuleType

NAMES = {
    # Twisted: Deferreds to and from futures, Perspective Broker, a debugger.
    "asyncio": ("AbstractEventLoop", "Future"),
    "pdb": ("Pdb",),
    "twisted.spread.pb": ("Copyable", "ViewPoint"),
    # prometheus_client: its own servers, and what pushes to a gateway.
    "http.server": ("BaseHTTPRequestHandler",),
    "socketserver": ("ThreadingMixIn",),
    "ssl": ("PROTOCOL_TLS_CLIENT", "PROTOCOL_TLS_SERVER", "SSLContext", "TLSVersion"),
    "urllib.request": (
        "BaseHandler",
        "HTTPHandler",
        "HTTPRedirectHandler",
        "HTTPSHandler",
        "Request",
        "build_opener",
    ),
    "wsgiref.simple_server": ("WSGIRequestHandler", "WSGIServer", "make_server"),
}


def install() -> None:
    """Have them imported from now on."""
    for module, names in NAMES.items():
        stand_in = sys.modules[module] = ModuleType(module)
        vars(stand_in).update((name, type(name, (), {})) for name in names)
    vars(sys.modules["asyncio"])["iscoroutine"] = _is_coroutine


def _is_coroutine(thing: object) -> bool:
    return isinstance(thing, CoroutineType)
