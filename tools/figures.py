"""The figures of docs/performance.md: `python -m tools.figures`.

The table and the graph are made of build/bench.json, which `make bench` writes.
"""

import json
import math
from collections.abc import Iterator, Mapping

from tools.prometheus import ROOT

SIZES = (100, 1_000, 10_000, 100_000)

Figures = Mapping[str, Mapping[str, float]]
"""The values of each row of the benchmarks, by size."""

TABLE = (
    ("processor time a minute", "a minute: CPU, exporter", "{:.2f} s"),
    ("memory", "memory: resident, exporter", "{:.0f} MiB"),
    ("peak memory", "peak memory", "{:.0f} MiB"),
    ("scrape, compressed (median)", "scrape, gzip: median, exporter", "{:.1f} ms"),
)
"""A row's name, the benchmark with its values, and their format."""

CHARTS = (
    ("Scrape, compressed: ms", "scrape, gzip: median, {}"),
    ("Processor time a minute: s", "a minute: CPU, {}"),
    ("Resident memory: MiB", "memory: resident, {}"),
)

SERVERS = {
    "exporter": ("api-exporter", "#c2410c"),
    "nginx": ("nginx, ready bytes", "#15803d"),
    "site": ("Twisted, ready bytes", "#1d4ed8"),
    "library": ("prometheus_client", "#7e22ce"),
}
"""The displayed name and colour of each server."""

WIDTH, HEIGHT, LEFT, TOP = 230, 170, 50, 30
"""Pixels of a chart, and of its margins."""


def table(figures: Figures) -> str:
    """Return the table in Markdown."""
    heads = ["peers", *(f"{size:,}" for size in SIZES)]
    lines = [heads, ["---", *["---:"] * len(SIZES)]]
    for name, row, form in TABLE:
        values = [figures.get(row, {}).get(str(size)) for size in SIZES]
        cells = ["not measured" if v is None else form.format(v) for v in values]
        lines.append([name, *cells])
    return "\n".join(
        f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines
    )


def graph(figures: Figures) -> str:
    """Return the charts as SVG, side by side, both scales logarithmic."""
    width, height = len(CHARTS) * (WIDTH + LEFT) + 20, HEIGHT + TOP + 60
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for place, (title, row) in enumerate(CHARTS):
        lines.append(
            f'<g transform="translate({LEFT + place * (WIDTH + LEFT)},{TOP})">'
        )
        lines.append(f'<text y="-12" font-weight="bold">{title}</text>')
        lines += _chart({name: figures.get(row.format(name), {}) for name in SERVERS})
        lines.append("</g>")
    for place, (name, colour) in enumerate(SERVERS.values()):
        x = LEFT + place * 170
        lines.append(f'<text x="{x}" y="{height - 12}" fill="{colour}">— {name}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _chart(found: Figures) -> Iterator[str]:
    values = [value for each in found.values() for value in each.values() if value > 0]
    low = math.floor(math.log10(min(values, default=1)))
    high = max(math.ceil(math.log10(max(values, default=10))), low + 1)

    def x(size: float) -> float:
        ends = math.log10(SIZES[0]), math.log10(SIZES[-1])
        return round(WIDTH * (math.log10(size) - ends[0]) / (ends[1] - ends[0]), 1)

    def y(value: float) -> float:
        return round(HEIGHT * (high - math.log10(value)) / (high - low), 1)

    for power in range(low, high + 1):
        at = y(10.0**power)
        yield f'<path d="M0 {at}H{WIDTH}" stroke="#ddd"/>'
        yield f'<text x="-6" y="{at + 4}" text-anchor="end">{10.0**power:,g}</text>'
    for size in SIZES:
        label = f'y="{HEIGHT + 16}" text-anchor="middle">{size:,}</text>'
        yield f'<text x="{x(size)}" {label}'
    for name, each in found.items():
        points = [(x(int(size)), y(v)) for size, v in each.items() if v > 0]
        line = " ".join(f"{a},{b}" for a, b in sorted(points))
        colour = SERVERS[name][1]
        yield f'<polyline points="{line}" fill="none" stroke="{colour}"/>'
        for a, b in points:
            yield f'<circle cx="{a}" cy="{b}" r="2.5" fill="{colour}"/>'


def main() -> None:
    rows = json.loads((ROOT / "build/bench.json").read_text())["rows"]
    figures = {row["name"]: row["values"] for row in rows}
    page = ROOT / "docs/performance.md"
    image = "![Over peers, beside other servers](images/performance.svg)"
    words = f"\n\n{table(figures)}\n\n{image}\n\n"
    before, begin, rest = page.read_text().partition("<!-- figures -->")
    _, end, after = rest.partition("<!-- end of the figures -->")
    page.write_text(before + begin + words + end + after)
    (ROOT / "docs/images/performance.svg").write_text(graph(figures))


if __name__ == "__main__":
    main()
