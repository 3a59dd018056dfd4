"""Arguments and results of the compute thread do not change meanwhile."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from types import FunctionType, MappingProxyType
from typing import ParamSpec, TypeVar

from msgspec import Raw, Struct
from msgspec.structs import fields
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.logs.audit_cursor import AuditCursor
from api_exporter.logs.journal import new_rows, render
from api_exporter.logs.listing import batches
from api_exporter.logs.position import Position
from api_exporter.ports import UpstreamError
from api_exporter.refresh.compute import compute_at_once
from api_exporter.subjects.table import COLLECTORS, RESOURCE_BY_NAME, RESOURCES
from api_exporter.web.peer_table import Query, target_list
from tests.bodies import body
from tests.logs import body as audit_events
from tests.logs.paging import START, Table
from tests.refresh.test_refresher import Bench

P = ParamSpec("P")
T = TypeVar("T")

BODIES = tuple({type(resource.decoder) for resource in RESOURCE_BY_NAME.values()})
"""Decoders of bodies, which keep nothing of a body."""

VALUES = (str, bytes, int, float, type(None), datetime, Raw, UpstreamError)
CODE = (type, FunctionType)

OWNED = {
    ("AuditCursor", "recent"): "decoded from its file; a change makes a new one",
    ("AuditCursor", "former"): "the same",
    ("Position", "known"): "the same",
    ("NewRows", "rows"): "made for the one who gets it",
    ("Snapshot", "thresholds"): "decoded at the start, then only read",
    ("ProxyService", "auth"): "decoded, then only read",
    ("Permissions", "modules"): "the same",
}
"""Fields that may hold something mutable, and why."""


class Walk:
    """Looks for mutable objects in values.

    Attributes:
        found: the paths of mutable objects.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self._seen: dict[int, object] = {}  # held, so that no two have one id

    def go(self, value: object, path: str) -> None:
        if isinstance(value, (*VALUES, *CODE, *BODIES)) or type(value) is object:
            return
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, Struct) and value.__struct_config__.frozen:
            for field in fields(value):
                if (type(value).__name__, field.name) not in OWNED:
                    self.go(getattr(value, field.name), f"{path}.{field.name}")
        elif isinstance(value, (tuple, frozenset)):
            for part in value:
                self.go(part, f"{path}[]")
        elif isinstance(value, MappingProxyType):
            self.go((*value.keys(), *value.values()), f"{path}{{}}")
        elif isinstance(value, partial):
            self.go((value.func, value.args, *value.keywords.values()), f"{path}()")
        else:
            self.found.append(f"{path}: {type(value).__name__}")


class Checking(Bench):
    """A network that checks the arguments and results of its computations."""

    def __init__(self, **replies: bytes) -> None:
        self.walk = Walk()
        self.functions: set[str] = set()
        names = (collector.name for collector in COLLECTORS)
        super().__init__(*names, compute=self.check)
        self.replies.update(replies)

    def check(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]:
        self.functions.add(function.__name__)
        self.walk.go((args, *kwargs.values()), function.__name__)
        result = function(*args, **kwargs)
        self.walk.go(result, f"result of {function.__name__}")
        return compute_at_once(lambda: result)


class FrozenTests(SynchronousTestCase):
    def test_network(self) -> None:
        """Refreshes of all resources, pass only immutable values."""
        network = Checking(**{r.name: body(r.name) for r in RESOURCES})
        network.start()
        network.advance(700)
        network.replies["groups"] = b'[{"id":"new","peers":[{"id":"unknown"}]}]'
        network.advance(700)
        self.assertEqual([], network.walk.found)
        self.assertEqual({"advance", "update_findings"}, network.functions)
        network.walk.go(
            target_list(network.inventory, Query((1,), frozenset(), "ip"), ""), "sd"
        )
        self.assertEqual([], network.walk.found)

    def test_logs(self) -> None:
        """Logs pass only immutable values."""
        walk = Walk()
        rows = audit_events(range(3))
        walk.go(new_rows(AuditCursor(recent={}), rows, 0), "audit")
        walk.go(
            new_rows(Position(start=0), Table(range(9)).answer(""), START), "access"
        )
        for batch in batches(AuditCursor.decode(rows).rows):
            walk.go((batch, render(AuditCursor.line, batch, "", frozenset())), "lines")
        self.assertEqual([], walk.found)
