"""All mutants of a module, each with one small change."""

import ast
from collections.abc import Iterator
from copy import copy
from itertools import islice
from pathlib import Path
from typing import NamedTuple

_PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)),
    *((ast.In, ast.NotIn), (ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
    (ast.Continue, ast.Break),
)
_SWAPPED = {one: other for a, b in _PAIRS for one, other in ((a, b), (b, a))}
_SWAPPED |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult}


class Mutant(NamedTuple):
    """A mutant: a module and the number of the changed node."""

    path: Path
    node: int

    def made(self) -> tuple[int, str, str]:
        """Return the line, the change, and the whole source."""
        tree = ast.parse(self.path.read_text())
        node = next(islice(_mutable(tree), self.node, None))
        before = ast.unparse(node).splitlines()[0]
        _mutate(node)
        after = ast.unparse(ast.fix_missing_locations(node)).splitlines()[0]
        line = getattr(node, "lineno", 0)
        return line, f"{before}  →  {after}", ast.unparse(tree)


def mutants(path: Path) -> list[Mutant]:
    nodes = enumerate(_mutable(ast.parse(path.read_text())))
    return [Mutant(path, n) for n, node in nodes if _mutate(copy(node))]


def _mutable(node: ast.AST) -> Iterator[ast.AST]:
    for child in children(node):
        yield child
        yield from _mutable(child)


def children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield executed nodes: no annotation, decorator, assertion, text or `__repr__`."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "bases", "msg", "exc"}:
            continue
        if isinstance(node, ast.ClassDef) and name == "keywords":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_excluded(child):
                yield child


def _is_excluded(node: ast.AST) -> bool:
    match node:
        case ast.Assert() | ast.JoinedStr() | ast.FunctionDef(name="__repr__"):
            return True
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Constant()) | ast.Subscript(value=ast.Name("Literal")):
            return True
        case ast.keyword(arg="strict"):
            return True  # an assertion, too
    return False


def _mutate(node: ast.AST) -> bool:  # noqa: C901, PLR0912 - a table of cases
    """Change a node. Return False if no change is possible."""
    match node:
        case ast.Compare(ops=[operator, *others]) if type(operator) in _SWAPPED:
            node.ops = [_SWAPPED[type(operator)](), *others]  # type: ignore[list-item]
        case ast.BoolOp():
            node.op = _SWAPPED[type(node.op)]()  # type: ignore[assignment]
        case ast.BinOp() if type(node.op) in _SWAPPED and not _is_text(node):
            node.op = _SWAPPED[type(node.op)]()  # type: ignore[assignment]
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value) | float(value)):
            # No test notices one byte or second more of a large bound.
            node.value = 10 * value if value > 9 else value + 1
        case ast.If() | ast.While() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Return(value=ast.Constant(value=value)) if not value:
            return False  # None is false, too
        case ast.Return(value=ast.expr()):
            node.value = ast.Constant(None)
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise():
            node.__class__ = ast.Pass  # type: ignore[assignment]
        case ast.AugAssign():
            node.value = ast.UnaryOp(ast.USub(), node.value)
        case ast.Continue() | ast.Break():
            node.__class__ = _SWAPPED[type(node)]  # type: ignore[assignment]
        case ast.Assign(targets=[ast.Attribute()], value=value) if is_empty(value):
            node.__class__ = ast.Pass  # type: ignore[assignment]
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple() as key) if (
            name.endswith("key") and len(key.elts) > 1
        ):
            node.value = ast.Tuple(key.elts[:-1], ast.Load())
        case (
            ast.With(items=[ast.withitem(optional_vars=None)])
            | ast.AsyncWith(items=[ast.withitem(optional_vars=None)])
        ):
            node.__class__ = ast.If  # type: ignore[assignment]
            vars(node).update(test=ast.Constant(True), orelse=[])
        case ast.Call(func=ast.Name(id="min" | "max" as name)):
            node.func = ast.Name("max" if name == "min" else "min", ast.Load())
        case ast.Call(func=ast.Name(id="compare_digest")):
            return False  # it is symmetrical
        case ast.Call(args=[ast.Name() | ast.Attribute() as a, b, *more]) if isinstance(
            b, type(a)
        ):
            node.args = [b, a, *more]
        case _:
            return False
    return True


def is_empty(value: ast.expr) -> bool:
    """Return whether assigning this to an attribute resets it."""
    match value:
        case ast.Constant(value=empty):
            return not empty
        case ast.Tuple(elts=found) | ast.List(elts=found):
            return not found
        case ast.Dict(keys=keys):
            return not keys
        case ast.Call(func=ast.Name(id="set" | "deque" | "dict"), args=args):
            return not args
    return False


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )
