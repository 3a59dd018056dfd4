"""The table of fields: what a value of another type costs.

`python -m tests.netbird.fields` writes it to `fields.txt` after a change of records.
"""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from api_exporter.netbird.records import Field, record_fields
from api_exporter.netbird.resources import ACCESS_LOG
from api_exporter.subjects.agent_network.resources import (
    ConsumptionRow,
    RequestCount,
    UsageBucket,
)
from api_exporter.subjects.table import RESOURCE_BY_NAME

FILE = Path(__file__).with_name("fields.txt")

RECORDS: dict[str, type[Struct]] = {
    **{
        name: RESOURCE_BY_NAME[name].decoder.record
        for name in RESOURCE_BY_NAME
        if name != ACCESS_LOG
    },
    "agent_consumption": ConsumptionRow,
    "agent_usage": UsageBucket,
    "agent_denials": RequestCount,
}
"""The record of each resource, as NetBird sends it."""


def paths(
    kind: type[Struct], is_shown: bool = False
) -> Iterator[tuple[tuple[Field, ...], bool]]:
    """Yield the path of each field, and whether it or an object around it is shown."""
    for field in record_fields(kind):
        shown = is_shown or field.is_shown
        yield (field,), shown
        if field.record is not None:
            for inner, inner_shown in paths(field.record, shown):
                yield (field, *inner), inner_shown


def table() -> str:
    return "".join(
        f"{resource} {'.'.join(field.name for field in path)}:"
        f" {'becomes unknown' if is_shown else 'costs the record'}\n"
        for resource, kind in RECORDS.items()
        for path, is_shown in paths(kind)
    )


if __name__ == "__main__":
    FILE.write_text(table())
