"""A collector: the families of a subject."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from api_exporter.collectors.rows import FamilyContext, Row
from api_exporter.exposition.text import Family, Inputs, Metric, UnchangedFamily
from api_exporter.netbird.inventory import Inventory


class Collector(Struct, frozen=True, dict=True):
    """The families that are published and refused together.

    Attributes:
        default: true if it is enabled unless the settings disable it.
    """

    name: str
    rows: tuple[Row, ...]
    default: bool = True

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The resources of which its families are made."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.reads))

    @cached_property
    def families(self) -> tuple[Metric, ...]:
        """All families that it may publish, known without measuring."""
        return tuple([row.metric for row in self.rows])

    def make_families(
        self, inventory: Inventory, before: Mapping[str, Inputs] = {}
    ) -> Iterator[Family]:
        """Make the families whose resources are known.

        Args:
            before: the inputs_keys of the families on the previous page.
        """
        known = FamilyContext(inventory)
        for row in self.rows:
            if any(name not in inventory.records for name in row.needs):
                continue
            inputs_key = known.inputs_key(row.reads)
            if before.get(row.metric.name) == inputs_key:
                yield UnchangedFamily(row.metric)
            else:
                family = row.make(row.metric, known)
                family.inputs_key = inputs_key
                yield family
