"""The private parts of libraries that the package uses: a complete list.

If a library renames one, the tests of the feature that uses it fail.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

PACKAGE = Path(__file__).parents[1] / "api_exporter"

MODULES = {
    "twisted.internet._resolver": ("GAIResolver", "HostResolution"),
    "twisted.scripts._twistd_unix": ("ServerOptions",),
    "_tracemalloc": ("_get_traces",),
}
"""Imports from modules whose libraries promise no stability."""

ATTRIBUTES = {
    "serving/channel.py": (
        "_buffer",  # of a LineReceiver: received bytes of the next request
        "_dataBuffer",  # of an HTTPChannel: the same while it pauses
        "_networkProducer",
        "_optimisticEagerReadSize",  # the bytes that it takes while it pauses
        "_waitingForTransport",
        "_tempDataLen",  # of a FileDescriptor: bytes that are to be sent
    ),
    "serving/listener.py": (
        "_port",  # of an endpoint
        "_sslContextFactory",  # of an SSL4ServerEndpoint
    ),
    "daemon/outlets.py": ("_file",),  # of a LogFile
    "access/tls.py": ("_lib", "_context"),  # of pyOpenSSL
    "profiling/recorders.py": ("_current_frames",),  # of sys, documented
    "cli.py": ("_exit",),  # of os, documented
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
        trees = map(parsed, PACKAGE.rglob("*.py"))
        found = [pair for tree in trees for pair in imported(tree)]
        listed = [(module, name) for module, ns in MODULES.items() for name in ns]
        self.assertEqual(sorted(listed), sorted(set(found)))

    def test_attributes(self) -> None:
        """The list includes attributes that a class inherits."""
        names = {path: accessed(path) for path in PACKAGE.rglob("*.py")}
        found = {str(p.relative_to(PACKAGE)): x for p, x in names.items() if x}
        self.assertEqual({k: set(v) for k, v in ATTRIBUTES.items()}, found)
