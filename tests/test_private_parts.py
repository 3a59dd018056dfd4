"""The private parts of libraries that the package uses: a complete list.

If a library renames one, a test fails here, before a feature breaks.
"""

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import cast

import cryptography
from OpenSSL import SSL
from twisted.internet.abstract import FileDescriptor
from twisted.internet.endpoints import SSL4ServerEndpoint
from twisted.internet.interfaces import IReactorFDSet
from twisted.internet.ssl import CertificateOptions
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactor, StringTransport
from twisted.python.logfile import LogFile
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http import HTTPChannel

from api_exporter.access.tls_context import SET_CURVES_FUNCTION

PACKAGE = Path(__file__).parents[1] / "api_exporter"

MODULES = {
    "twisted.internet._resolver": ("GAIResolver",),
    "twisted.scripts._twistd_unix": ("ServerOptions",),
    "_tracemalloc": ("_get_traces",),
}
"""Imports from modules whose libraries promise no stability."""

ATTRIBUTES = {
    "serving/channel.py": (
        "_buffer",  # of a LineReceiver: received bytes of the next request
        "_dataBuffer",  # of an HTTPChannel: the same while it pauses
        "_networkProducer",
        "_waitingForTransport",
        "_tempDataLen",  # of a FileDescriptor: bytes that are to be sent
    ),
    "serving/listener.py": ("_sslContextFactory",),  # of an SSL4ServerEndpoint
    "daemon/outlets.py": ("_file", "_openFile"),  # of a LogFile
    "access/tls_context.py": ("_lib", "_context"),  # of pyOpenSSL
    "profiling/stacks.py": ("_current_frames",),  # of sys, documented
}
"""Private attributes, by the file that uses them."""


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield imported names of libraries that are private or in private modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            parts = node.module.split(".")
            if parts[0] in {"api_exporter", "__future__"}:
                continue
            for name in node.names:
                if any(part.startswith("_") for part in (*parts, name.name)):
                    yield node.module, name.name


@cache
def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text())


@cache
def own(path: Path) -> frozenset[str]:
    """Return names that a module defines; none if it does not exist."""
    return frozenset(defined(parsed(path))) if path.exists() else frozenset()


def defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def accessed(module: Path) -> set[str]:
    """Return private attributes that the package does not define itself."""
    known = set(own(module))
    used: set[str] = set()
    for node in ast.walk(parsed(module)):
        match node:
            case ast.ImportFrom(module=str(name)) if name.startswith(PACKAGE.name):
                known |= own(PACKAGE.parent / f"{name.replace('.', '/')}.py")
            case ast.Attribute(attr=name) if name.startswith("_"):
                used.add(name)
    return {name for name in used - known if not name.endswith("__")}


class ListTests(SynchronousTestCase):
    """The list is equal to the private parts in use."""

    def test_imports(self) -> None:
        found = [
            pair for path in PACKAGE.rglob("*.py") for pair in imported(parsed(path))
        ]
        listed = [(module, name) for module, ns in MODULES.items() for name in ns]
        self.assertEqual(sorted(listed), sorted(set(found)))

    def test_attributes(self) -> None:
        """The list includes attributes that a class inherits."""
        found = {
            str(path.relative_to(PACKAGE)): names
            for path in PACKAGE.rglob("*.py")
            if (names := accessed(path))
        }
        self.assertEqual({k: set(v) for k, v in ATTRIBUTES.items()}, found)


class InstalledTests(SynchronousTestCase):
    """The installed libraries have these parts, of the expected kind."""

    def test_modules(self) -> None:
        for module, names in MODULES.items():
            for name in names:
                self.assertTrue(callable(getattr(import_module(module), name)), name)

    def test_channel(self) -> None:
        channel = HTTPChannel()
        self.patch(channel, "callLater", Clock().callLater)
        channel.makeConnection(StringTransport())
        self.assertEqual(b"", channel._buffer)
        self.assertEqual([], channel._dataBuffer)
        self.assertFalse(channel._waitingForTransport)
        for name in ("pauseProducing", "resumeProducing"):
            self.assertTrue(callable(getattr(channel._networkProducer, name)), name)

    def test_transport(self) -> None:
        """The attributes without an underscore are not documented, either."""
        transport = FileDescriptor(cast("IReactorFDSet", Clock()))
        sent = transport.dataBuffer, transport.offset, transport._tempDataLen
        self.assertEqual((b"", 0, 0), sent)
        self.assertEqual(128 * 1024, transport.SEND_LIMIT)

    def test_endpoint(self) -> None:
        options = CertificateOptions()
        endpoint = SSL4ServerEndpoint(MemoryReactor(), 0, options)
        self.assertIs(options, endpoint._sslContextFactory)

    def test_log_file(self) -> None:
        file = LogFile("log", self.mktemp_folder())
        self.addCleanup(file.close)
        self.assertGreater(file._file.fileno(), 2)

    def mktemp_folder(self) -> str:
        path = Path(self.mktemp())
        path.mkdir()
        return str(path)

    def test_openssl(self) -> None:
        """OpenSSL's calls take a context; cryptography 47 has the call in use."""
        if int(cryptography.__version__.partition(".")[0]) < 47:
            self.assertFalse(hasattr(SSL._lib, SET_CURVES_FUNCTION))  # type: ignore[attr-defined]
            return
        made = SSL.Context(SSL.TLS_SERVER_METHOD)
        call = getattr(SSL._lib, SET_CURVES_FUNCTION)  # type: ignore[attr-defined]
        self.assertEqual(1, call(made._context, b"P-256"))
