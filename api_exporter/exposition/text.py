"""Families of samples as text that the Prometheus format and OpenMetrics both accept.

The one hot loop of the program: a sample costs one f-string. Labels are rendered once
an object, by the collector, and shared by all of the object's families.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple, TypeVar

from msgspec import Struct

Labels = str
"""Rendered labels, braces included: `{peer_id="p1",peer="db"}`, or nothing at all."""

Sample = tuple[Labels, float]
"""Labels and value. An int is written as it is, a float to the microsecond."""

CHUNK_SAMPLES = 500
"""How many samples are rendered at one go: well under a millisecond's work."""


class Metric(Struct, frozen=True, kw_only=True):
    """What stays the same of a family, and what its documentation says.

    Attributes:
        help: one sentence, without quotes, backslashes and line breaks, so that it
            needs no escaping in either format.
        source: the field of the upstream that it comes from.
        alert: what an operator may want to be told of, "" where nothing comes to mind.
        of_peer: whether a peer has series of its own in it, as PEER_DETAIL allows.
        self_hosted: what it always is on a self-hosted server, "" where it varies.
    """

    name: str
    help: str
    source: str
    alert: str = ""
    of_peer: bool = False
    self_hosted: str = ""


class Family(NamedTuple):
    """A metric and its samples, which are read once, or never: make them when read.

    Attributes:
        at_once: how many samples may be made at one go; fewer where one is much work.
    """

    metric: Metric
    samples: Iterable[Sample]
    at_once: int = CHUNK_SAMPLES


def escape(value: str) -> str:
    """A label value as both formats want it; few values need it, so few pay for it."""
    if '"' in value or "\\" in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value


def labels(**values: str) -> Labels:
    """Label names and values, in the order given."""
    pairs = ",".join([f'{name}="{escape(value)}"' for name, value in values.items()])
    return f"{{{pairs}}}"


def boolean(value: bool, /) -> str:
    """A yes or no as a label value."""
    return "true" if value else "false"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp(instant: datetime | None, /) -> float | None:
    """Seconds since 1970, whole ones as an int; None for "never", however told."""
    if instant is None:
        return None
    since = instant - _EPOCH
    if since.days < 0:
        return None
    if since.microseconds:
        return since.total_seconds()
    return since.days * 86400 + since.seconds


def never(instant: datetime | None, /) -> bool:
    """Whether it tells of "never": most instants do not, as one look shows."""
    if instant is not None and instant.year > 1970:
        return False
    return timestamp(instant) is None


def single(metric: Metric, value: float, labels: Labels = "") -> Family:
    """One sample."""
    return Family(metric, [(labels, value)])


def count_true(metric: Metric, which: Iterable[bool]) -> Family:
    """How many of them are true."""

    def samples() -> Iterator[Sample]:
        yield "", sum(which)

    return Family(metric, samples())


K = TypeVar("K", bound=Hashable)


def counted(
    metric: Metric, keys: Iterable[K], labelled: Callable[[K], Labels] = str
) -> Family:
    """How many there are of each; keys with the same labels are counted together."""

    def samples() -> Iterator[Sample]:
        counts: Counter[Labels] = Counter()
        for key, count in Counter(keys).items():
            counts[labelled(key)] += count
        yield from sorted(counts.items())

    return Family(metric, samples())


def halves(metric: Metric, label: str, which: Iterable[bool]) -> Family:
    """How many are true and how many are false: both, always."""

    def samples() -> Iterator[Sample]:
        counts = Counter(which)
        for half in (True, False):
            yield labels(**{label: boolean(half)}), counts[half]

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
            (f'{key[:-1]},{label}="{escape(state)}"}}', int(state == current))
            for key, current in keyed
            for state in dict.fromkeys((*known, current or known[0]))
        ),
    )


def timestamps(
    metric: Metric, keyed: Iterable[tuple[Labels, datetime | None]]
) -> Family:
    """Instants; "never" has no sample."""
    return Family(
        metric,
        (
            (key, value)
            for key, instant in keyed
            if (value := timestamp(instant)) is not None
        ),
    )


def number(value: float) -> str:
    """A float to the microsecond, without an exponent."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


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


def render(families: Iterable[Family | None]) -> Iterator[str]:
    """The families' text in small chunks, so that whoever joins them may pause.

    A family without samples is left out. None stands for "still counting": the text is
    empty, the place to pause is real.
    """
    for family in families:
        if family is None:
            yield ""
            continue
        name = family.metric.name
        head = heading(family.metric)
        samples = iter(family.samples)
        while lines := [
            f"{name}{labels} {value if isinstance(value, int) else number(value)}\n"
            for labels, value in islice(samples, family.at_once)
        ]:
            yield head + "".join(lines)
            head = ""
