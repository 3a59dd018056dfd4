"""Mistakes as people make them. Each kind yields other texts for a node of the code."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import chain, islice, pairwise, takewhile, zip_longest
from operator import eq
from pathlib import Path
from random import Random
from textwrap import shorten
from typing import NamedTuple

from checks.mutation.mutants import children, is_empty

Above = Sequence[ast.AST]
"""The nodes around a node, the nearest last."""

Kind = Callable[[ast.AST, Above], Iterator[str]]

text = ast.unparse


class Mistake(NamedTuple):
    """A mistake: a place of a module, in bytes, and its other text."""

    path: Path
    kind: str
    begin: int
    end: int
    instead: str

    def made(self) -> tuple[int, str, str]:
        """Return the line, the change, and the whole source."""
        source = self.path.read_bytes()
        before, after = source[: self.begin], source[self.end :]
        replaced = source[self.begin : self.end].decode()
        changed = before + self.instead.encode() + after
        change = f"{self.kind}: {_difference(replaced, self.instead)}"
        return before.count(b"\n") + 1, change, changed.decode()


def _difference(before: str, after: str) -> str:
    """Return what differs, with a few letters around it."""
    one, other = (" ".join(each.replace('"', "'").split()) for each in (before, after))
    same = _same_letters(one, other)
    tail = _same_letters(one[same:][::-1], other[same:][::-1])
    begin, end = max(0, same - 25), max(0, tail - 25)
    cut = (each[begin : len(each) - end] for each in (one, other))
    return "  →  ".join(shorten(each, 120, placeholder=" …") for each in cut)


def _same_letters(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: eq(*pair), zip(one, other)))  # noqa: B905


def mistakes(path: Path) -> Iterator[Mistake]:
    source = path.read_bytes()
    begins = [0, *(found.end() for found in re.finditer(rb"\n", source))]
    for node, above in _nodes(ast.parse(source), ()):
        if not isinstance(node, ast.expr | ast.stmt | ast.excepthandler):
            continue
        begin = begins[node.lineno - 1] + node.col_offset
        end = begins[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        indent = "\n" + " " * node.col_offset
        for kind, other_texts in KINDS.items():
            for other in other_texts(node, above):
                if other != text(node):
                    instead = other.replace("\n", indent)
                    yield Mistake(path, kind, begin, end, instead)


def _nodes(node: ast.AST, above: Above) -> Iterator[tuple[ast.AST, Above]]:
    for child in children(node):
        yield child, (*above, node)
        yield from _nodes(child, (*above, node))


def sign(node: ast.AST, above: Above) -> Iterator[str]:
    match node:
        case ast.UnaryOp(op=ast.USub()) if not isinstance(above[-1], ast.Subscript):
            yield text(node.operand)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            yield f"({text(ast.BinOp(right, ast.Sub(), left))})"
        case ast.AugAssign(op=ast.Add() | ast.Sub() as operator):
            sign = "-=" if isinstance(operator, ast.Add) else "+="
            yield f"{text(node.target)} {sign} {text(node.value)}"


_UNIT = re.compile(r"_?(MINUTE|HOUR|DAY|DAY_SECONDS|NANOSECONDS_PER_SECOND)")
_FACTORS = {24, 60, 1000, 1024, 3600, 86400, 10**6, 10**9}
_TIME = re.compile(
    r"(?i)(?!may_|is_)(\w+_)?(seconds|timeout|period|interval|delay|deadline|wait)"
)


def unit(node: ast.AST, above: Above) -> Iterator[str]:
    match node:
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
            if _is_unit(right):
                yield f"({text(left)})"
            if _is_unit(left) and isinstance(node.op, ast.Mult):
                yield f"({text(right)})"
        case ast.Call(func=ast.Attribute(attr="seconds" | "timestamp"), args=[]):
            yield f"({text(node)} * 1000)"
        case (
            ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load())
        ) if _TIME.fullmatch(name) and not _is_called(node, above):
            yield f"({text(node)} / 60)"
        case ast.Constant(value=int() | float()):
            parent = above[-1]
            if isinstance(parent, ast.Assign) and _TIME.search(text(parent.targets[0])):
                yield f"{text(node)} * 1000"


def _is_unit(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and node.value in _FACTORS
    return isinstance(node, ast.Name) and bool(_UNIT.fullmatch(node.id))


def _is_called(node: ast.AST, above: Above) -> bool:
    parent = above[-1]
    return isinstance(parent, ast.Call) and parent.func is node


def missing_await(node: ast.AST, _: Above) -> Iterator[str]:
    if isinstance(node, ast.Await):
        yield text(node.value)


def cache_key(node: ast.AST, above: Above) -> Iterator[str]:
    match node:
        case ast.Tuple(elts=[_, _, *_], ctx=ast.Load()) if _names_a_key(above):
            yield from _without_one(node.elts)
        case ast.Attribute(attr="id" | "key" as attr, value=value) if _is_key(
            node, above[-1]
        ):
            yield f"{text(value)}.{'name' if attr == 'id' else 'id'}"


def _names_a_key(above: Above) -> bool:
    match above[-1]:
        case ast.Assign(targets=[ast.Name(id=name)]) if "key" in name:
            return True
        case ast.Subscript(value=ast.Attribute()):
            return True  # no generic type, which is a bare name
        case ast.Call(func=ast.Attribute(attr="get" | "setdefault" | "pop")):
            return True
    function = _function(above)
    return isinstance(above[-1], ast.Return) and "key" in getattr(function, "name", "")


def _is_key(node: ast.AST, parent: ast.AST) -> bool:
    match parent:
        case ast.DictComp(key=key) | ast.Subscript(slice=key) | ast.SetComp(elt=key):
            return key is node
        case ast.Call(func=ast.Attribute(attr="get" | "setdefault" | "pop" | "add")):
            return parent.args[:1] == [node]
        case ast.Compare(ops=[ast.In() | ast.NotIn()], left=left):
            return left is node
    return False


def _function(above: Above) -> ast.AST | None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return next((one for one in reversed(above) if isinstance(one, functions)), None)


def _without_one(elements: Sequence[ast.expr]) -> Iterator[str]:
    for place in range(len(elements)):
        rest = [*elements[:place], *elements[place + 1 :]]
        yield text(ast.Tuple(rest, ast.Load()))


_RESETS = "re(load|set|place|move)|stop|start|clos|lost|clear|forget|update|apply|end"


def no_reset(node: ast.AST, above: Above) -> Iterator[str]:
    name = getattr(_function(above), "name", "__init__")
    match node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name("self"))], value=value):
            if name != "__init__" and (is_empty(value) or re.search(_RESETS, name)):
                yield "pass"
        case (
            ast.Delete()
            | ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(
                        attr="clear"
                        | "pop"
                        | "discard"
                        | "remove"
                        | "cancel"
                        | "popleft"
                    )
                )
            )
        ):
            yield "pass"


_PAIRS = dict(
    pair
    for a, b in (
        *(("before", "after"), ("old", "new"), ("previous", "current")),
        *(("last", "now"), ("known", "found"), ("held", "fresh"), ("first", "second")),
    )
    for pair in ((a, b), (b, a))
)


def stale(node: ast.AST, above: Above) -> Iterator[str]:
    match node:
        case ast.Call(func=ast.Name("replace"), args=[of], keywords=[first, *more]):
            if not more:
                yield text(of)
            for left_out in (first, *more) if more else ():
                one = deepcopy(node)
                one.keywords = [k for k in one.keywords if k.arg != left_out.arg]
                yield text(one)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value):
            if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(value)):
                yield "pass"
        case ast.Name(id=name, ctx=ast.Load()) if name in _PAIRS:
            function, other = _function(above), _PAIRS[name]
            if function and _binds(function, other):
                yield other


def _binds(function: ast.AST, name: str) -> bool:
    return any(
        (isinstance(node, ast.arg) and node.arg == name)
        or (
            isinstance(node, ast.Name)
            and (node.id, type(node.ctx)) == (name, ast.Store)
        )
        for node in ast.walk(function)
    )


_BORDERS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


def border(node: ast.AST, above: Above) -> Iterator[str]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            if type(operator) in _BORDERS:
                yield text(ast.Compare(left, [_BORDERS[type(operator)]()], [right]))
        case ast.Constant(value=int(value)) if isinstance(above[-1], ast.Slice):
            yield str(value + 1)
        case ast.Call(func=ast.Name("range"), args=[*_, ast.expr() as end]):
            yield f"range({', '.join(map(text, [*node.args[:-1], end]))} + 1)"
        case ast.BinOp(
            op=ast.Add() | ast.Sub(), left=left, right=ast.Constant(value=1)
        ):
            yield f"({text(left)})"


def swallowed(node: ast.AST, _: Above) -> Iterator[str]:
    match node:
        case ast.ExceptHandler(type=ast.expr() as caught, body=[first, *_]):
            if not isinstance(first, ast.Pass | ast.Continue):
                yield f"except {text(caught)}:\n    pass"
        case ast.Raise():
            yield "pass"
        case ast.Expr(value=ast.Await()):
            yield f"try:\n    {text(node)}\nexcept Exception:\n    pass"


def default(node: ast.AST, above: Above) -> Iterator[str]:
    match [*above[-2:], node]:
        case (
            [_, ast.arguments(), ast.Constant()]
            | [ast.ClassDef(), ast.AnnAssign(), ast.Constant()]
            | [_, ast.keyword(arg="default"), ast.Constant()]
        ):
            yield from _other(node)
        case [_, ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[_, last]), _]:
            if last is node:
                yield from _other(node)


def _other(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield str(2 * value or 1)
        case ast.Constant(value=str(value)):
            yield repr("" if value else "x")


def labels(node: ast.AST, _: Above) -> Iterator[str]:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            if not name.endswith("labels"):
                return
            for one, other in pairwise(range(len(node.keywords))):
                swapped = deepcopy(node)
                a, b = swapped.keywords[one], swapped.keywords[other]
                a.value, b.value = b.value, a.value
                yield text(swapped)
            if len(node.args) > 1 and not isinstance(node.args[0], ast.Starred):
                swapped = deepcopy(node)
                swapped.args[:2] = swapped.args[1::-1]
                yield text(swapped)
        case ast.Dict(keys=[ast.Constant(), *_], values=values):
            for one, other in pairwise(range(len(values))):
                if type(values[one]) is type(values[other]) and _is_plain(values[one]):
                    turned = [*values]
                    turned[one], turned[other] = values[other], values[one]
                    yield text(ast.Dict(node.keys, turned))


def _is_plain(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return " " not in str(node.value)  # no sentence
    return isinstance(node, ast.Name | ast.Attribute)


_OTHER_SETS = {"intersection": "union", "union": "intersection"}


def wrong_set(node: ast.AST, _: Above) -> Iterator[str]:
    match node:
        case ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
            for place, part in enumerate(node.generators):
                if part.ifs:
                    whole = deepcopy(node)
                    whole.generators[place].ifs.pop()
                    yield text(whole)
        case ast.Call(func=ast.Name(id="any" | "all" as name)):
            other = "all" if name == "any" else "any"
            yield other + text(node).removeprefix(name)
        case ast.Call(func=ast.Name("filter"), args=[_, every]):
            yield text(every)
        case ast.Call(func=ast.Attribute(attr="detailed_peers", value=of)):
            yield f"({text(of)}.peers or ())"
        case ast.Attribute(attr=name, value=of) if name in _OTHER_SETS:
            yield text(ast.Attribute(of, _OTHER_SETS[name]))
        case ast.BinOp(left=a, op=ast.BitAnd() | ast.BitOr() as operator, right=b):
            sign = "|" if isinstance(operator, ast.BitAnd) else "&"
            if text(b) != "None":  # a type
                yield f"({text(a)} {sign} {text(b)})"


_NAMED = {"needs", "reads", "chosen_by", "depends_on"}


def dependency(node: ast.AST, above: Above) -> Iterator[str]:
    match [*above[-2:], node]:
        case [_, ast.keyword(arg=name), ast.Tuple(elts=found)] if name in _NAMED:
            yield from _without_one(found)
        case [_, ast.Call(func=ast.Name("Finder"), args=args), ast.Tuple(elts=found)]:
            if args[2:] == [node]:
                yield from _without_one(found)
        case [_, ast.keyword(arg="dormant_without" | "permission"), ast.expr()]:
            yield "None"


_OPPOSITE = {
    "partition": "rpartition",
    "split": "rsplit",
    "find": "rfind",
    "popleft": "pop",
    "appendleft": "append",
    "append": "appendleft",
}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}


def first_of_two(node: ast.AST, above: Above) -> Iterator[str]:
    match [above[-1], node]:
        case [ast.Subscript(), ast.Constant(value=0)]:
            yield "-1"
        case [ast.Subscript(), ast.UnaryOp(ast.USub(), ast.Constant(value=1))]:
            yield "0"
        case [ast.keyword(arg="reverse"), ast.Constant(value=True)]:
            yield "False"
        case [ast.Call() as call, ast.Attribute(attr=name, value=of)]:
            if name in _OPPOSITE and _has_ends(call, name, above[0]):
                yield text(ast.Attribute(of, _OPPOSITE[name]))
        case [
            _,
            ast.BoolOp(op=ast.Or(), values=[ast.Name() | ast.Attribute() as a, b]),
        ]:
            if isinstance(b, ast.Name | ast.Attribute) and not _is_truth(node, above):
                yield f"({text(b)} or {text(a)})"
        case [_, ast.Dict(keys=[None, key, *keys], values=[first, second, *more])]:
            yield text(ast.Dict([key, None, *keys], [second, first, *more]))
        case [_, ast.Call(func=ast.Name(id="min" | "max" as name))]:
            other = "max" if name == "min" else "min"
            yield other + text(node).removeprefix(name)


def _has_ends(call: ast.Call, name: str, module: ast.AST) -> bool:
    """Return whether a method takes another end than its opposite does."""
    if name.endswith("split"):  # without a maximum it splits everywhere
        return len(call.args) + len(call.keywords) > 1
    return "append" not in name or "deque" in text(module)


def _is_truth(node: ast.AST, above: Above) -> bool:
    """Return whether only the truth of a value counts: then an order is none."""
    for parent in reversed(above):
        if not isinstance(parent, ast.BoolOp | ast.UnaryOp):
            return getattr(parent, "test", None) is node or (
                isinstance(parent, ast.comprehension) and node in parent.ifs
            )
        node = parent
    return False


def no_lock(node: ast.AST, _: Above) -> Iterator[str]:
    match node:
        case ast.With(items=[item]) | ast.AsyncWith(items=[item]):
            if item.optional_vars is None and "suppress" not in text(item):
                yield text(ast.If(ast.Constant(True), node.body, []))
        case ast.If(test=test, body=[ast.Return(None) | ast.Continue()], orelse=[]):
            if "self." in text(test):  # a guard
                yield "pass"


_SEVERITIES = {"critical": "warning", "warning": "critical", "info": "warning"}


def alert(node: ast.AST, above: Above) -> Iterator[str]:
    match [above[-1], node]:
        case [ast.keyword(arg="lasts" | "keep"), ast.Constant(value=str(value))]:
            yield repr(f"1{value}" if value else "5m")
        case [_, ast.Constant(value=str(value))] if value in _SEVERITIES:
            yield repr(_SEVERITIES[value])


KINDS: dict[str, Kind] = {
    "a wrong sign": sign,
    "a wrong unit": unit,
    "a missing await": missing_await,
    "a wrong cache key": cache_key,
    "state not reset": no_reset,
    "a stale value handed on": stale,
    "off by one at a border": border,
    "a swallowed exception": swallowed,
    "a wrong default": default,
    "swapped label values": labels,
    "an aggregate over the wrong set": wrong_set,
    "a dependency not named": dependency,
    "the first instead of the last": first_of_two,
    "a lock or guard left out": no_lock,
    "a wrong severity or duration": alert,
}


Located = tuple[str, Mistake]
"""A mistake and its package."""


def sample(every: Iterable[Located], seed: int, size: int) -> list[Located]:
    """Return mistakes with their packages: all kinds in turn, and all packages."""
    chance = Random(f"mistakes {seed}")
    found: dict[str, dict[str, list[Located]]] = {kind: {} for kind in KINDS}
    for package, mistake in every:
        found[mistake.kind].setdefault(package, []).append((package, mistake))
    orders = []
    for of_packages in found.values():
        packages = [chance.sample(own, len(own)) for own in of_packages.values()]
        chance.shuffle(packages)
        orders.append(filter(None, chain.from_iterable(zip_longest(*packages))))
    in_turn = filter(None, chain.from_iterable(zip_longest(*orders)))
    return list(islice(in_turn, size))
