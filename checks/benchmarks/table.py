"""A table of figures: measured values and targets, by size."""

import json
import platform
from pathlib import Path

import msgspec
from msgspec import Struct, field

import twisted
from tests.integration.programs import ROOT


class Row(Struct):
    """One figure at several sizes.

    Attributes:
        targets: the largest permitted value, by size.
        values: the measured value, by size.
    """

    name: str
    unit: str
    targets: dict[int, float] = field(default_factory=dict)
    values: dict[int, float] = field(default_factory=dict)

    def missed(self) -> list[int]:
        """Return the sizes at which a target was missed."""
        return [
            size
            for size, target in self.targets.items()
            if size in self.values and self.values[size] > target
        ]


class Table:
    """All rows, in the order of their first value.

    Args:
        counted: the name of the counted things.
    """

    def __init__(self, sizes: list[int], counted: str = "peers") -> None:
        self.sizes = sizes
        self._of = counted
        self.notes: list[str] = []
        self._rows: dict[str, Row] = {}

    def put(
        self,
        name: str,
        size: int,
        value: float,
        unit: str,
        targets: dict[int, float] | None = None,
    ) -> None:
        row = self._rows.setdefault(name, Row(name, unit, targets or {}))
        row.values[size] = value

    def value(self, name: str, size: int) -> float:
        return self._rows[name].values[size]

    def text(self) -> str:
        """Return a Markdown table in which missed targets are bold."""
        heads = ["", *(f"{size:,} {self._of}" for size in self.sizes), "target"]
        lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
        for row in self._rows.values():
            cells = [_cell(row, size) for size in self.sizes]
            lines.append([f"{row.name}, {row.unit}", *cells, _targets(row)])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        first, *others = widths
        return "\n".join(
            "| "
            + " | ".join(
                [
                    cells[0].ljust(first),
                    *(c.rjust(w) for c, w in zip(cells[1:], others, strict=True)),
                ]
            )
            + " |"
            for cells in lines
        )

    def verdicts(self) -> list[str]:
        """Return a line for every measured target, kept or missed."""
        return [
            f"{'MISSED' if size in row.missed() else 'kept'}: {row.name},"
            f" {size:,} {self._of}: {row.values[size]:.3g} {row.unit},"
            f" target {target:g}"
            for row in self._rows.values()
            for size, target in row.targets.items()
            if size in row.values
        ]

    def write(self, name: str) -> None:
        """Write all rows as JSON into `build`."""
        path = ROOT / "build" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        rows = [
            {
                "name": row.name,
                "unit": row.unit,
                "values": row.values,
                "targets": row.targets,
                "missed": row.missed(),
            }
            for row in self._rows.values()
        ]
        found = {"machine": machine(), "notes": self.notes, "rows": rows}
        path.write_text(json.dumps(found, indent=2) + "\n")


def machine() -> dict[str, str]:
    """Return properties of the machine that influence the figures."""
    cpus = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(": ")[2] for line in cpus if line.startswith("model name")]
    return {
        "processor": f"{len(models)} × {models[0]}" if models else platform.machine(),
        "python": platform.python_version(),
        "twisted": twisted.__version__,
        "msgspec": msgspec.__version__,
        "load_at_the_end": Path("/proc/loadavg").read_text().split()[0],
    }


def _cell(row: Row, size: int) -> str:
    if size not in row.values:
        return ""
    value = row.values[size]
    text = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"**{text}**" if size in row.missed() else text


def _targets(row: Row) -> str:
    return ", ".join(f"{v:g} at {size:,}" for size, v in row.targets.items())
