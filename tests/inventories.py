"""Inventories with the records that a test gives."""

from typing import Any

from msgspec.structs import replace

from api_exporter.netbird.inventory import Inventory
from api_exporter.subjects.table import RESOURCE_BY_NAME, RULES


def inventory_of(**fields: Any) -> Inventory:
    """Return an inventory. Records are given by the names of their resources."""
    records = {
        name: fields.pop(name)
        for name in RESOURCE_BY_NAME
        if fields.get(name) is not None
    }
    fields = {n: f for n, f in fields.items() if n not in RESOURCE_BY_NAME}
    return Inventory(rules=RULES, records=records, **fields)


def changed(inventory: Inventory, **fields: Any) -> Inventory:
    """Return an inventory with other records, or None, or other fields."""
    records: dict[str, Any] = {**inventory.records}
    for name in RESOURCE_BY_NAME:
        if name in fields:
            records[name] = fields.pop(name)
    known = {name: found for name, found in records.items() if found is not None}
    return replace(inventory, records=known, **fields)
