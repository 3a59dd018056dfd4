"""Names that are far too long, in all fields of all records."""

import json

from msgspec import Struct, inspect
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.bodies import DocumentDecoder
from api_exporter.netbird.records import PERSONAL
from api_exporter.subjects.agent_network.resources import DenialsDecoder, RequestCount
from api_exporter.subjects.table import COLLECTORS, RESOURCES
from tests.bodies import EVERYTHING, decoded
from tests.collectors.samples import page, parsed
from tests.inventories import inventory_of

RECORDS: dict[str, type[Struct]] = {
    resource.name: resource.decoder.record for resource in RESOURCES
} | {"agent_denials": RequestCount}


DOCUMENTS = {
    r.name for r in RESOURCES if isinstance(r.decoder, DocumentDecoder | DenialsDecoder)
}


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
