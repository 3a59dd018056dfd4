"""The text format: families in a form that Prometheus and OpenMetrics both accept.

A sample costs one f-string. A collector renders the labels of an object once for all
families of the object.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import TypeVar

from msgspec import Struct

Labels = str
"""Rendered labels with braces: `{peer_id="p1",peer="db"}`, or "" for none."""

Sample = tuple[Labels, float]
"""Labels and value. An int is written as it is, a float as its shortest exact text."""

CHUNK_SAMPLES = 500
"""The number of samples in a chunk of text. A chunk is much shorter than a piece."""


class Metric(Struct, frozen=True, kw_only=True):
    """The constant part of a family, and its documentation.

    Attributes:
        help: one sentence with meaning and unit, without a full stop. It has no quote,
            backslash or line break, so it needs no escaping in either format.
        source: the NetBird field from which the value comes.
        of_peer: if each peer has series of its own, limited by PEER_DETAIL.
        self_hosted: "0" or "absent" if it is always so on a self-hosted server.
    """

    name: str
    help: str
    source: str
    alert: str = ""
    of_peer: bool = False
    self_hosted: str = ""


Inputs = tuple[object, ...]
"""The inputs of a family. While they are equal, the samples are equal."""


class Family:
    """A metric and its samples, which are read once or never: pass a lazy iterable.

    Attributes:
        inputs_key: the inputs of the samples; None if they are not known.
    """

    def __init__(self, metric: Metric, samples: Iterable[Sample]) -> None:
        self.metric = metric
        self.samples = samples
        self.inputs_key: Inputs | None = None


class UnchangedFamily(Family):
    """A family that the previous page has in the same inputs_key."""


MAX_LABEL_BYTES = 4096
"""The maximum length of a label's value in bytes, before escaping."""

MAX_SHORT_CHARACTERS = MAX_LABEL_BYTES // 4
"""Number of characters that always fit: each takes at most four bytes."""

_DOTS = "…"


def truncate(value: str) -> str:
    if len(value) <= MAX_SHORT_CHARACTERS:
        return value
    raw = value[: MAX_LABEL_BYTES + 1].encode()
    if len(raw) <= MAX_LABEL_BYTES:
        return value
    return raw[: MAX_LABEL_BYTES - len(_DOTS.encode())].decode(errors="ignore") + _DOTS


_ESCAPED = re.compile(rb"\\.", re.DOTALL)


def count_cut_labels(text: bytes) -> int:
    """Return the number of cut labels: long labels that end in `…`."""
    ellipsis = _DOTS.encode()
    if ellipsis[0] not in text:  # the usual case, found quickly
        return 0
    values = (part.rpartition(b'="')[2] for part in text.split(ellipsis + b'"')[:-1])
    min_length = MAX_LABEL_BYTES - 2 * len(ellipsis)
    return sum(
        len(value) >= min_length and len(_ESCAPED.sub(b".", value)) >= min_length
        for value in values
    )


def escape(value: str) -> str:
    """Escape a label's value for both formats."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def labels(**values: str) -> Labels:
    """Render label names and values, in the order given.

    Few values need cutting or escaping, so all are checked together.
    """
    pairs = ",".join([f'{name}="{value}"' for name, value in values.items()])
    if len(pairs) > MAX_SHORT_CHARACTERS:
        values = {name: truncate(value) for name, value in values.items()}
        pairs = ",".join([f'{name}="{value}"' for name, value in values.items()])
    if "\\" in pairs or "\n" in pairs or pairs.count('"') != 2 * len(values):
        pairs = ",".join([f'{n}="{escape(value)}"' for n, value in values.items()])
    return f"{{{pairs}}}"


def join_labels(first: Labels, second: Labels) -> Labels:
    return f"{first[:-1]},{second[1:]}" if first else second


def boolean(value: bool, /) -> str:
    return "true" if value else "false"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp(instant: datetime | None, /) -> float | None:
    """Return seconds since 1970, as an int if whole; None for each form of "never"."""
    if instant is None or instant <= _EPOCH:
        return None
    since = instant - _EPOCH
    if since.microseconds:
        return since.total_seconds()
    return since.days * 86400 + since.seconds


K = TypeVar("K", bound=Hashable)


def count_each(keys: Iterable[K]) -> Counter[K]:
    """Return the number of each key; the event loop runs between the chunks."""
    counts = Counter[K]()
    remaining = iter(keys)
    while some := list(islice(remaining, CHUNK_SAMPLES)):
        counts.update(some)
    return counts


def count_by(
    keys: Iterable[K], labelled: Callable[[K], Labels] = str
) -> Iterable[Sample]:
    """Return the number of each key; keys with the same labels are counted together."""
    counts = Counter[Labels]()
    for key, count in count_each(keys).items():
        counts[labelled(key)] += count
    return sorted(counts.items())


def number(value: float) -> str:
    """Return the shortest text that is exactly this float, as Go's `'g', -1` does."""
    text = repr(value)
    if text[-2:] == ".0":
        return text[:-2]
    return text if text[-1].isdecimal() else _NOT_FINITE[text]


_NOT_FINITE = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}

UNITS = ("seconds", "bytes")
"""The suffixes of metric names that are OpenMetrics units."""


def unit(name: str) -> str:
    """Return the unit at the end of a name, "" without one."""
    last = name.rpartition("_")[2]
    return last if last in UNITS else ""


def heading(metric: Metric) -> str:
    """Return the lines before the samples. In the text format UNIT is a comment."""
    name = metric.name
    lines = f"# HELP {name} {metric.help}\n# TYPE {name} gauge\n"
    return f"{lines}# UNIT {name} {unit_name}\n" if (unit_name := unit(name)) else lines


def render(family: Family) -> Iterator[str]:
    """Yield the text of a family in chunks; nothing for one without samples."""
    name, before = family.metric.name, heading(family.metric)
    samples = iter(family.samples)
    while lines := [
        f"{name}{labels} {value if isinstance(value, int) else number(value)}"
        for labels, value in islice(samples, CHUNK_SAMPLES)
    ]:
        yield before + "\n".join(lines) + "\n"
        before = ""
