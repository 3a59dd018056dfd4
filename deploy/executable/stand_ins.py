"""Stand-ins for modules that libraries import and the exporter never uses.

The real ones use five of an idle program's 55 megabytes. Their uses, and possible
changes of the libraries: docs/internals/upstream-patches.md.
"""

import sys
from types import CoroutineType, ModuleType

NAMES = {
    # Twisted: Deferreds to and from futures, Perspective Broker, a debugger.
    "asyncio": ("AbstractEventLoop", "Future"),
    "pdb": ("Pdb",),
    "twisted.spread.pb": ("Copyable", "ViewPoint"),
    # prometheus_client: its own servers, and the push gateway.
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
    """Make later imports use the stand-ins."""
    for module, names in NAMES.items():
        stand_in = sys.modules[module] = ModuleType(module)
        vars(stand_in).update((name, type(name, (), {})) for name in names)
    vars(sys.modules["asyncio"])["iscoroutine"] = _is_coroutine


def _is_coroutine(thing: object) -> bool:
    return isinstance(thing, CoroutineType)
