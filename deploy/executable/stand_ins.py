"""Stand-ins for modules that libraries import and the exporter never uses.

The real ones use five of an idle program's 55 megabytes. The comments say what would
make a stand-in unnecessary; nothing of it is proposed yet. Not worth one: `http.client`
(0.3 MiB), `zipfile` (0.2), `xml.sax`, which Twisted needs for a template, and `bcrypt`
(0.4), which passwords need. Nor `http.cookiejar` (0.3), from which treq inherits for
redirects with cookies.
"""

import sys
from types import CoroutineType, ModuleType

NAMES = {
    # Twisted: Deferreds to and from futures (1.6 MiB), a debugger, Perspective Broker.
    # `defer.py` could take `iscoroutine` from `inspect`, `app.py` import `pdb` where it
    # calls it, and `Copyable` and `ViewPoint` be in a module without banana and jelly.
    "asyncio": ("AbstractEventLoop", "Future"),
    "pdb": ("Pdb",),
    "twisted.spread.pb": ("Copyable", "ViewPoint"),
    # prometheus_client: its own servers, and the push gateway. A module `__getattr__`
    # (PEP 562) in its `__init__.py` could import them on first use; `ssl` (3.4 MiB: a
    # second OpenSSL in `_hashlib`) is there for annotations and two default values.
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
