"""The tables of `docs/migrating.md`, for the tests that try them."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

DOCUMENT = Path(__file__).parents[1] / "docs/migrating.md"


MEASURED = ("groups", "users", "networks", "setup_keys", "policies", "routes")
"""The resources whose scrapes netbird-api-exporter counts."""


class Pair(Struct, frozen=True):
    """A query for a metric of netbird-api-exporter, and its replacement, or "".

    Attributes:
        difference: how the values differ.
    """

    theirs: str
    ours: str
    difference: str

    @property
    def name(self) -> str:
        """The old metric's name."""
        [name] = re.findall(r"netbird_\w+", self.theirs)
        return str(name)

    @property
    def same(self) -> bool:
        """Return whether both have the same values, if both are published."""
        return bool(self.ours) and not self.difference.startswith(
            ("**other values**", "**refreshes**", "no rule")
        )


def pairs() -> Iterator[Pair]:
    """Return all pairs in the order of the document."""
    for line in _section("3. Our names"):
        each = MEASURED if "<resource>" in line else ("",)
        for resource in each:
            row = line.replace("<resource>", resource)
            theirs, ours, difference = (cell.strip() for cell in _cells(row))
            yield Pair(theirs.strip("`"), ours.strip("`–"), difference)


def alerts() -> Iterator[str]:
    """Return the expressions that replace alerts on the old names."""
    for line in _section("Your alerts and panels"):
        yield _cells(line)[2].strip().strip("`")


def _section(title: str) -> Iterator[str]:
    text = DOCUMENT.read_text(encoding="utf-8")
    [section] = re.findall(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    rows = [line for line in section.split("\n") if line.startswith("|")]
    yield from rows[2:]


def _cells(row: str) -> list[str]:
    return re.split(r" \|(?: |$)", row.removeprefix("|"))[:3]
