"""Panels in Grafana's JSON: a function for each kind, and the looks that they share.

Options with Grafana's own default value are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from api_exporter.attention.thresholds import default_thresholds

Json = dict[str, Any]

At = tuple[int, int, int, int]
"""Column, row, width and height on a grid of 24 columns."""

SOURCE = {"type": "prometheus", "uid": "${datasource}"}

COLOURS = {
    "green": "#2F7526",
    "orange": "#B35900",
    "red": "#C4162A",
    "blue": "#1F60C4",
    "purple": "#8F3BB8",
    "grey": "#50565E",
    "none": "transparent",
    "text": "text",
}
"""Colours behind white text, which has a contrast of 4.5 or more on each; and none."""

STATES = {
    0: ("all right", "green"),
    0.5: ("read in part", "orange"),
    1: ("warnings", "orange"),
    2: ("critical", "red"),
    3: ("NetBird not read", "purple"),
    4: ("no answer", "purple"),
}

UNKNOWN = "unknown"

THRESHOLDS = default_thresholds()

SOON = {
    None: "red",
    THRESHOLDS.days["access_token_very_soon"]: "orange",
    THRESHOLDS.days["access_token_soon"]: "none",
}
"""Colours of days until an expiry."""


def look(
    unit: str | None = None,
    *,
    decimals: int | None = None,
    limits: Mapping[Any, str] | None = None,
    words: Mapping[Any, tuple[str, str]] | None = None,
    colour: str | None = None,
    shades: str | None = None,
    empty: str | None = None,
    link: tuple[str, str] | None = None,
    most: float | None = None,
    least: float | None = None,
    **custom: Any,
) -> Json:
    """Return how a value looks, as the defaults of a panel's fields.

    Args:
        limits: colours from a value on; that of None holds below all.
        shades: the colour whose shades tell series apart.
        words: texts and colours in place of values.
        empty: the text without a value. In a table it fills each empty cell.
        link: title and address.
        most: the value of a full bar, or the top of an axis.
    """
    found: Json = {"unit": unit, "decimals": decimals, "noValue": empty}
    found |= {"min": least, "max": most, "custom": custom or None}
    if limits:
        steps = [{"color": c, "value": value} for value, c in limits.items()]
        found["thresholds"] = {"mode": "absolute", "steps": steps}
    if words:
        options = {
            str(value): {"text": text, "color": COLOURS[c], "index": index}
            for index, (value, (text, c)) in enumerate(words.items())
        }
        found["mappings"] = [{"type": "value", "options": options}]
    if colour:
        found["color"] = {"mode": "fixed", "fixedColor": colour}
    if shades:
        found["color"] = {"mode": "shades", "fixedColor": shades}
    if link:
        found["links"] = [{"title": link[0], "url": link[1]}]
    return {key: value for key, value in found.items() if value is not None}


BACKGROUND = {"type": "color-background", "mode": "basic"}


def behind(
    limits: Mapping[Any, str], unit: str = "none", decimals: int = 0, **custom: Any
) -> Json:
    """Return how a cell looks whose background has colours from values on."""
    painted = {value: COLOURS[colour] for value, colour in limits.items()}
    custom["cellOptions"] = BACKGROUND
    return look(unit, decimals=decimals, limits=painted, **custom)


def large(limits: Mapping[Any, str]) -> dict[Any, str]:
    """Return the colours of a large number in place of those behind a small one. A
    lighter orange cannot be read on white.
    """
    colours = {"none": "text", "orange": "dark-orange"}
    return {value: colours.get(colour, colour) for value, colour in limits.items()}


def named(name: str, style: Json, by: str = "byName") -> Json:
    """Return how the values of one name look, as an override."""
    flat = {key: value for key, value in style.items() if key != "custom"}
    flat |= {f"custom.{key}": value for key, value in style.get("custom", {}).items()}
    return {
        "matcher": {"id": by, "options": name},
        "properties": [{"id": key, "value": value} for key, value in flat.items()],
    }


RANKED = [
    named(name, look(limits={None: COLOURS["grey"], 1: COLOURS[colour]}))
    for name, colour in (("critical", "red"), ("warning", "orange"), ("info", "grey"))
]
"""Tiles of findings: coloured from 1 on."""


def _panel(
    kind: str,
    title: str,
    at: At,
    meaning: str,
    targets: Iterable[Json],
    *,
    defaults: Json,
    options: Json,
    overrides: Iterable[Json] = (),
    transformations: Sequence[Json] = (),
) -> Json:
    return {
        "type": kind,
        "title": title,
        "description": meaning,
        "datasource": SOURCE,
        "gridPos": dict(zip("xywh", at, strict=True)),
        "targets": [
            {"refId": chr(65 + number), **target}
            for number, target in enumerate(targets)
        ],
        "fieldConfig": {"defaults": defaults} | _list("overrides", overrides),
        "options": options,
    } | _list("transformations", transformations)


def _list(name: str, of: Iterable[Json]) -> Json:
    """Return a list by its name, or nothing where the list is empty."""
    return {name: found} if (found := [*of]) else {}


def _named_targets(queries: Mapping[str, str], **more: Any) -> list[Json]:
    return [{"expr": e, "legendFormat": n, **more} for n, e in queries.items()]


def stat(
    title: str,
    at: At,
    meaning: str,
    queries: Mapping[str, str],
    style: Json,
    *,
    solid: bool = False,
    course: bool = False,
    overrides: Iterable[Json] = (),
    size: int | None = None,
) -> Json:
    """Return large numbers, or one.

    Args:
        queries: expressions by name; the name is shown if there are several.
        solid: whether the colour fills the tile.
        course: whether the tile shows the values of the chosen time, too.
    """
    several = len(queries) > 1
    options: Json = {
        # The last value, also if there is none: another one would hide an outage.
        "reduceOptions": {"calcs": ["last"]},
        "textMode": "value_and_name" if several else "value",
    }
    if not course:
        options["graphMode"] = "none"
    if solid:
        options["colorMode"] = "background_solid"
    if several:
        options["wideLayout"] = False
    if size:
        options["text"] = {"titleSize": 14, "valueSize": size}
    targets = _named_targets(queries, **({} if course else {"instant": True}))
    return _panel(
        "stat",
        title,
        at,
        meaning,
        targets,
        defaults=style,
        options=options,
        overrides=overrides,
    )


def lines(
    title: str,
    at: At,
    meaning: str,
    queries: Mapping[str, str],
    unit: str = "none",
    *,
    colours: Mapping[str, str] | None = None,
    overrides: Iterable[Json] = (),
    steps: bool = False,
    stacked: bool = False,
    **style: Any,
) -> Json:
    """Return values over time, as lines or as areas.

    Args:
        colours: those of series by a regular expression of their names.
        steps: whether a value holds until the next one.
    """
    custom: Json = {"showPoints": "never", "lineWidth": 0 if stacked else 2}
    if stacked:
        custom |= {"fillOpacity": 60, "stacking": {"mode": "normal"}}
    if steps:
        custom["lineInterpolation"] = "stepAfter"
    painted = [
        named(f"/{name}/", look(colour=colour), "byRegexp")
        for name, colour in (colours or {}).items()
    ]
    return _panel(
        "timeseries",
        title,
        at,
        meaning,
        _named_targets(queries),
        defaults=look(unit, **{"least": 0, **style}, **custom),
        options={"tooltip": {"mode": "multi", "sort": "desc"}},
        overrides=[*painted, *overrides],
    )


def timeline(
    title: str,
    at: At,
    meaning: str,
    queries: Mapping[str, str],
    words: Mapping[Any, tuple[str, str]],
    *,
    empty: str = UNKNOWN,
) -> Json:
    """Return states over time, a row for each series. A gap is a time without value."""
    style = look(words=words, empty=empty, fillOpacity=85, lineWidth=0)
    options = {"showValue": "never", "rowHeight": 0.85}
    return _panel(
        "state-timeline",
        title,
        at,
        meaning,
        _named_targets(queries),
        defaults=style,
        options=options,
    )


def bars(
    title: str, at: At, meaning: str, queries: Mapping[str, str], style: Json
) -> Json:
    """Return a bar for each series."""
    return _panel(
        "bargauge",
        title,
        at,
        meaning,
        _named_targets(queries, instant=True),
        defaults=style,
        options={
            "orientation": "horizontal",
            "displayMode": "basic",
            "namePlacement": "top",
            "reduceOptions": {"calcs": ["last"]},
        },
    )


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        field: a label of the query, `Value`, or `Value #B` of the second query.
    """

    field: str
    title: str
    style: Mapping[str, Any] = MappingProxyType({})


def table(
    title: str,
    at: At,
    meaning: str,
    queries: Sequence[str],
    columns: Sequence[Column],
    *,
    sort: Mapping[str, bool],
    empty: str,
) -> Json:
    """Return the rows of instant queries, which are joined by their labels.

    Args:
        sort: whether the sort is descending, by the titles of columns.
        empty: the text of a table without rows.
    """
    known = {column.field for column in columns}
    targets = [Column("account", "Account"), Column("cluster", "Cluster")]
    columns = [*columns, *(c for c in targets if c.field not in known)]
    order = {column.field: number for number, column in enumerate(columns)}
    titles = {column.field: column.title for column in columns}
    organized = {
        "excludeByName": {"Time": True},
        "indexByName": order,
        "renameByName": titles,
    }
    joined = [{"id": "merge", "options": {}}] if len(queries) > 1 else []
    return _panel(
        "table",
        title,
        at,
        meaning,
        [{"expr": q, "instant": True, "format": "table"} for q in queries],
        defaults=look(empty=empty, minWidth=85),
        options={"sortBy": [{"displayName": t, "desc": d} for t, d in sort.items()]},
        overrides=[
            # What is written for an empty table would fill each empty cell.
            named("/.*/", look(empty="–"), "byRegexp"),
            *(named(c.title, {**c.style}) for c in columns if c.style),
        ],
        transformations=[*joined, {"id": "organize", "options": organized}],
    )


HIDDEN = look(hidden=True)


def fold(title: str, y: int, *panels: Json) -> Json:
    """Return a closed row."""
    at = {"x": 0, "y": y, "w": 24, "h": 1}
    return {
        "type": "row",
        "title": title,
        "collapsed": True,
        "gridPos": at,
        "panels": [*panels],
    }
