"""Any body is refused with its place, or makes a valid page."""

import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, inspect
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.bodies import DocumentDecoder
from api_exporter.netbird.facts.personal import PERSONAL
from api_exporter.ports import UpstreamError
from api_exporter.subjects.agent_network.bodies import DenialsDecoder
from api_exporter.subjects.agent_network.records import RequestCount
from api_exporter.subjects.table import COLLECTORS, RESOURCES
from tests import tries
from tests.bodies import EVERYTHING, decoded
from tests.collectors.samples import page, parsed
from tests.inventories import inventory_of

RECORDS: dict[str, type[Struct]] = {
    resource.name: resource.decoder.record for resource in RESOURCES
} | {"agent_denials": RequestCount}

SYNTAX = (
    "",
    "a",
    "b",
    'a"} 1\n',
    "\\",
    "\\n",
    "\r",
    "\0",
    "\x85\u2028",
    " # {",
    "電話",
)
WORDS = ("<nil>", "Domain", "custom", "active", "unknown", "0.1.2", "10.0.0.0/30")
STRINGS = st.text(max_size=4) | st.sampled_from(SYNTAX + WORDS)
NUMBERS = st.integers(0, 3) | st.sampled_from((-1, -(2**53), 2**53))
TIMES = st.sampled_from(
    (
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+02:00",
        "0000-12-31T16:00:00-08:00",
        "1969-12-31T23:59:59.5-01:00",
        "1970-01-01T00:00:00Z",
        "2026-05-22T12:00:00.123456789+05:30",
        "9999-12-31T23:59:59Z",
    )
)
WRONG = st.sampled_from((2**53 + 1, 2**64, 10**400, 1.0, "yesterday", "2026-01-01"))
ANYTHING = st.recursive(
    WRONG | st.none() | st.booleans() | NUMBERS | st.floats() | STRINGS | TIMES,
    lambda inner: st.lists(inner) | st.dictionaries(STRINGS, inner),
    max_leaves=5,
)


SCALARS: dict[type[inspect.Type], st.SearchStrategy[object]] = {
    inspect.StrType: STRINGS,
    inspect.BoolType: st.booleans() | st.none(),
    inspect.IntType: NUMBERS,
    inspect.FloatType: st.floats(allow_nan=False, allow_infinity=False),
    inspect.DateTimeType: TIMES,
    inspect.NoneType: st.none(),
}


def plausible(kind: inspect.Type) -> st.SearchStrategy[object]:
    """Values of about the right type."""
    if type(kind) in SCALARS:
        return SCALARS[type(kind)]
    match kind:
        case inspect.Metadata(type=inner):
            return plausible(inner)
        case inspect.DictType(value_type=value):
            return st.dictionaries(STRINGS, plausible(value), max_size=3)
        case inspect.UnionType(types=types):
            return st.one_of([plausible(each) for each in types])
        case inspect.VarTupleType(item_type=item):
            return st.lists(plausible(item), max_size=3)
        case inspect.StructType(fields=fields):
            return st.fixed_dictionaries(
                {f.encode_name: plausible(f.type) for f in fields if f.required},
                optional={
                    f.encode_name: plausible(f.type) for f in fields if not f.required
                },
            )
        case _:
            raise AssertionError(kind)


def hostile(record: type[Struct]) -> st.SearchStrategy[object]:
    """Records with odd values, some of which have something quite wrong in them."""
    kind = inspect.type_info(record)
    assert isinstance(kind, inspect.StructType)
    keys = st.sampled_from([field.encode_name for field in kind.fields])
    whole = plausible(kind)
    return whole | st.builds(
        lambda values, key, wrong: {**values, key: wrong}, whole, keys, ANYTHING
    )


DOCUMENTS = {
    r.name for r in RESOURCES if isinstance(r.decoder, DocumentDecoder | DenialsDecoder)
}


def body(resource: str) -> st.SearchStrategy[object]:
    """A list of records or a record."""
    record = hostile(RECORDS[resource])
    return record if resource in DOCUMENTS else st.lists(record, max_size=3)


BODIES = st.fixed_dictionaries({r.name: body(r.name) for r in RESOURCES})
"""A body for every resource."""


class HostileTests(SynchronousTestCase):
    @settings(deadline=None, max_examples=tries(150))
    @given(bodies=BODIES, personal=st.booleans())
    def test_page(self, bodies: dict[str, object], personal: bool) -> None:
        """Readable records make a page without repeated samples."""
        inventory = inventory_of(personal=frozenset(PERSONAL if personal else ()))
        for resource in EVERYTHING:
            text = json.dumps(bodies[resource.name]).encode()
            try:
                found = resource.decoder.decode(text)
            except UpstreamError as error:
                self.assertTrue(str(error))
                continue
            for complaint in found.errors:
                self.assertRegex(complaint, r"^\[\d+\]: .")
            inventory = inventory.replacing(resource.name, found.records)
        samples = parsed(page(inventory, COLLECTORS))
        self.assertEqual(len(samples), len(dict(samples)), "two of one name and labels")
        for (name, _), value in samples:
            self.assertTrue(name.startswith("netbird_"))
            self.assertTrue(math.isfinite(value))


class LongTests(SynchronousTestCase):
    def test_page(self) -> None:
        """Names that are far too long make a small page without repeated samples."""
        inventory = inventory_of(personal=frozenset(PERSONAL))
        for resource in EVERYTHING:
            kind = inspect.type_info(RECORDS[resource.name])
            one, other = (_long(kind, f"{n}") for n in range(2))
            many = [{**one, "id": "a"}, {**other, "id": "b"}]
            if resource.name == "proxy_clusters":
                many = [{**r, "address": f"{n}"} for n, r in enumerate(many)]
            listed = many[0] if resource.name in DOCUMENTS else many
            found = decoded(resource.name, json.dumps(listed).encode())
            self.assertEqual((0, ()), (found.rejected, found.errors))
            inventory = inventory.replacing(resource.name, found.records)
        text = page(inventory, COLLECTORS)
        samples = parsed(text)
        self.assertEqual(len(samples), len(dict(samples)), "two of one name and labels")
        for (_, labels), _ in samples:
            for _, value in labels:
                self.assertLessEqual(len(value.encode()), 4096)
        self.assertIn("…", text)
        self.assertLess(len(text), 2_000_000)


LONG_VALUES: dict[type[inspect.Type], object] = {
    inspect.BoolType: True,
    inspect.IntType: 3,
    inspect.DateTimeType: "2026-05-22T12:00:00Z",
}


def _value(kind: inspect.Type, last: str) -> object:
    match kind:
        case inspect.Metadata(type=inner):
            return _value(inner, last)
        case inspect.StrType():
            return "x" * 5000 + last
        case inspect.UnionType(types=types):
            lists = (t for t in types if isinstance(t, inspect.VarTupleType))
            return _value(next(lists, types[0]), last)
        case inspect.VarTupleType(item_type=inspect.StructType() as item):
            return [{**_long(item, last), "id": "y" * 5000 + end} for end in "ab"]
        case inspect.VarTupleType(item_type=item):
            return [_value(item, last)]
        case inspect.StructType():
            return _long(kind, last)
        case _:
            return LONG_VALUES.get(type(kind))


def _long(kind: inspect.Type, last: str) -> dict[str, object]:
    """Return a record with texts that are too long and differ only behind the limit."""
    assert isinstance(kind, inspect.StructType)
    return {field.encode_name: _value(field.type, last) for field in kind.fields}
