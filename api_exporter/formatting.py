"""Numbers, times and names as text; all times are in UTC."""

from collections.abc import Iterable
from datetime import UTC, datetime
from heapq import nsmallest
from unicodedata import category


def with_noun(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 peer` or `1,234 peers`."""
    return f"{number:,} {plural(number, noun)}"


def plural(number: int, noun: str) -> str:
    """Return the noun alone, such as `peers` for 0."""
    return noun if number == 1 else f"{noun}s"


_WHOLE_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def duration(seconds: int) -> str:
    """Return the largest unit without a remainder, such as `1 day` or `90 minutes`."""
    unit, length = next(
        (unit, length) for unit, length in _WHOLE_UNITS if seconds % length == 0
    )
    return with_noun(seconds // length, unit)


_UNITS = (
    ("year", "years", 365 * 86400),
    ("month", "months", 30 * 86400),
    ("day", "d", 86400),
    ("hour", "h", 3600),
    ("minute", "min", 60),
)


def _in_units(seconds: float) -> tuple[int, str, str]:
    for long, short, length in _UNITS:
        if seconds >= 2 * length:
            return int(seconds // length), long, short
    return max(0, int(seconds)), "second", "s"


def long_duration(seconds: float) -> str:
    """Return for example `3 seconds` or `5 hours`."""
    number, unit, _ = _in_units(seconds)
    return with_noun(number, unit)


def short_duration(seconds: float) -> str:
    """Return for example `3 s` or `5 h`."""
    number, _, unit = _in_units(seconds)
    return f"{number} {unit}"


_MAX_INSTANT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
"""The last instant in UTC; an instant with a western offset may be later."""


def instant(at: float) -> datetime:
    """Return a time in whole seconds."""
    return datetime.fromtimestamp(int(min(at, _MAX_INSTANT)), UTC)


def clock_time(at: float, now: float) -> str:
    """Return for example `12:03 UTC`, with the date if it is not today."""
    is_today = instant(at).date() == instant(now).date()
    return f"{instant(at):{'%H:%M UTC' if is_today else '%Y-%m-%d %H:%M UTC'}}"


def day_or_time(at: float, now: float) -> str:
    """Return for example `12:03 UTC`, or the date if it is not today."""
    is_today = instant(at).date() == instant(now).date()
    return f"{instant(at):{'%H:%M UTC' if is_today else '%Y-%m-%d'}}"


MAX_NAMED = 3

MAX_NAME_LENGTH = 60


def list_names(names: Iterable[str]) -> str:
    """Return text such as `: a, b, c and 2 more`, or "" without names."""
    every = list(names)
    first = ", ".join(map(safe_line, nsmallest(MAX_NAMED, every)))
    more = f" and {len(every) - MAX_NAMED:,} more" if len(every) > MAX_NAMED else ""
    return f": {first}{more}" if every else ""


def safe_line(name: str) -> str:
    """Return a name from the API, shortened and safe in a line of text.

    Invisible characters, such as line ends and marks of the writing direction, become
    replacement characters.
    """
    shown = name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"
    if shown.isprintable():
        return shown
    return "".join("\N{REPLACEMENT CHARACTER}" if _breaks(c) else c for c in shown)


def _breaks(letter: str) -> bool:
    return category(letter) in _BREAKING and letter not in _JOINERS


_BREAKING = {"Cc", "Cf", "Cs", "Zl", "Zp"}

_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
"""Some scripts and emoji need these invisible characters."""
