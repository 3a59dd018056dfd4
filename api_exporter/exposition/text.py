"""The text format: families as Prometheus and OpenMetrics both accept them.

A sample costs one f-string. Labels are rendered once an object, by the collector, and
shared by all of the object's families.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TypeVar

from msgspec import Struct

Labels = str
"""Rendered labels, braces included: `{peer_id="p1",peer="db"}`, or nothing at all."""

Sample = tuple[Labels, float]
"""Labels and value. An int is written as it is, a float to the microsecond."""

CHUNK_SAMPLES = 500
"""How many samples are rendered at one go: a chunk of text is much less than a piece.
"""


class Metric(Struct, frozen=True, kw_only=True):
    """What stays the same of a family, and what its documentation says.

    Attributes:
        help: one sentence with meaning and unit, without a full stop. It has no quotes,
            backslashes and line breaks, so that it needs no escaping in either format.
        source: the field of the upstream that it comes from.
        alert: an alert that an operator may want, "" for none.
        of_peer: whether a peer has series of its own in it, as PEER_DETAIL allows.
        self_hosted: what it always is on a self-hosted server, "" where it varies.
    """

    name: str
    help: str
    source: str
    alert: str = ""
    of_peer: bool = False
    self_hosted: str = ""


Edition = tuple[object, ...]
"""What a family was made of: while that is equal, the family says the same."""


class Family:
    """A metric and its samples, which are read once, or never: make them when read.

    Attributes:
        edition: None where nobody knows what it was made of.
    """

    def __init__(self, metric: Metric, samples: Iterable[Sample]) -> None:
        self.metric = metric
        self.samples = samples
        self.edition: Edition | None = None


class UnchangedFamily(Family):
    """A family that the page before has in the same edition."""

    def __init__(self, metric: Metric) -> None:
        super().__init__(metric, ())


LONGEST_LABEL = 4096
"""Bytes of a label's value, before escaping: a longer one is cut."""

SHORT = LONGEST_LABEL // 4
"""Letters of which no text is too long: each has four bytes at most."""

_CUT = "…"


def cut(value: str) -> str:
    """A label's value that is not too long."""
    if len(value) <= SHORT:
        return value
    raw = value[: LONGEST_LABEL + 1].encode()
    if len(raw) <= LONGEST_LABEL:
        return value
    return raw[: LONGEST_LABEL - len(_CUT.encode())].decode(errors="ignore") + _CUT


_ESCAPED = re.compile(rb"\\.", re.DOTALL)


def cut_labels(text: bytes) -> int:
    """How many labels of a text were cut: so long is hardly any other that ends so."""
    mark = _CUT.encode()
    if mark[0] not in text:  # nearly always, and seen at once
        return 0
    values = (part.rpartition(b'="')[2] for part in text.split(mark + b'"')[:-1])
    shortest = LONGEST_LABEL - 2 * len(mark)
    return sum(
        len(value) >= shortest and len(_ESCAPED.sub(b".", value)) >= shortest
        for value in values
    )


def escape(value: str) -> str:
    """A label value as both formats want it."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def labels(**values: str) -> Labels:
    """Label names and values, in the order given.

    Few values need cutting or escaping, so they are looked at all together.
    """
    pairs = ",".join([f'{name}="{value}"' for name, value in values.items()])
    if len(pairs) > SHORT:
        values = {name: cut(value) for name, value in values.items()}
        pairs = ",".join([f'{name}="{value}"' for name, value in values.items()])
    if "\\" in pairs or "\n" in pairs or pairs.count('"') != 2 * len(values):
        pairs = ",".join([f'{n}="{escape(value)}"' for n, value in values.items()])
    return f"{{{pairs}}}"


def boolean(value: bool, /) -> str:
    return "true" if value else "false"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp(instant: datetime | None, /) -> float | None:
    """Seconds since 1970, whole ones as an int; None for "never", however told."""
    if instant is None or instant <= _EPOCH:
        return None
    since = instant - _EPOCH
    if since.microseconds:
        return since.total_seconds()
    return since.days * 86400 + since.seconds


def never(instant: datetime | None, /) -> bool:
    """Whether it tells of "never": most instants do not, as one look shows."""
    if instant is not None and instant.year > 1970:
        return False
    return timestamp(instant) is None


K = TypeVar("K", bound=Hashable)


def count_true(metric: Metric, which: Iterable[bool]) -> Family:
    return _counting(metric, which, lambda counts: [("", counts[True])])


def counted(
    metric: Metric,
    keys: Iterable[K],
    labelled: Callable[[K], Labels] = str,
) -> Family:
    """How many there are of each; keys with the same labels are counted together."""

    def samples(by_key: Counter[K]) -> Iterable[Sample]:
        counts = Counter[Labels]()
        for key, count in by_key.items():
            counts[labelled(key)] += count
        return sorted(counts.items())

    return _counting(metric, keys, samples)


def halves(label: str, metric: Metric, which: Iterable[bool]) -> Family:
    """How many are true and how many are false: both, always."""
    return _counting(
        metric,
        which,
        lambda counts: [
            (labels(**{label: boolean(half)}), counts[half]) for half in (True, False)
        ],
    )


def _counting(
    metric: Metric,
    keys: Iterable[K],
    made: Callable[[Counter[K]], Iterable[Sample]],
) -> Family:
    def samples() -> Iterator[Sample]:
        yield from made(Counter(keys))

    return Family(metric, samples())


def states(
    metric: Metric,
    label: str,
    known: Sequence[str],
    keyed: Iterable[tuple[Labels, str]],
) -> Family:
    """For each object 1 for the state that it is in, and 0 for each other known one.

    A state that is not known is one more; without a state there are only zeros.
    """
    return Family(
        metric,
        (
            (f'{key[:-1]},{label}="{escape(cut(state))}"}}', int(state == current))
            for key, current in keyed
            for state in dict.fromkeys((*known, current or known[0]))
        ),
    )


def number(value: float) -> str:
    """Return the shortest text that is exactly this float, as Go's `'g', -1` does."""
    written = repr(value)
    if written[-2:] == ".0":
        return written[:-2]
    return written if written[-1].isdecimal() else _NOT_FINITE[written]


_NOT_FINITE = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}

UNITS = ("seconds", "bytes")
"""What names end with and OpenMetrics knows as a unit."""


def unit(name: str) -> str:
    """That of a family, as its name says; "" where it does not."""
    last = name.rpartition("_")[2]
    return last if last in UNITS else ""


def heading(metric: Metric) -> str:
    """The lines before the samples. To the text format the unit is a comment."""
    name = metric.name
    lines = f"# HELP {name} {metric.help}\n# TYPE {name} gauge\n"
    return f"{lines}# UNIT {name} {of}\n" if (of := unit(name)) else lines


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
