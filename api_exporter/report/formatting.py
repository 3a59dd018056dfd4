"""Times and numbers as text; all times are in UTC."""

from datetime import UTC, datetime

from api_exporter.plurals import with_noun

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


def milliseconds(seconds: float) -> str:
    """Return for example `1,234`."""
    return f"{1000 * seconds:,.0f}"


_MAX_INSTANT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
"""The last instant in UTC; an instant with a western offset may be later."""


def _utc(at: float) -> datetime:
    return datetime.fromtimestamp(min(at, _MAX_INSTANT), UTC)


def rfc3339(at: float) -> str:
    """Return for example `2027-01-31T12:03:59Z`."""
    return f"{_utc(at).isoformat(timespec='seconds')[:19]}Z"


def day(at: float) -> str:
    """Return for example `2027-01-31`."""
    return f"{_utc(at):%Y-%m-%d}"


def clock_time(at: float, now: float) -> str:
    """Return for example `12:03 UTC`, with the date if it is not today."""
    form = "%H:%M UTC" if day(at) == day(now) else "%Y-%m-%d %H:%M UTC"
    return _utc(at).strftime(form)


FILTERS = {
    "short": short_duration,
    "long": long_duration,
    "ms": milliseconds,
    "day": day,
    "time_of_day": lambda at: f"{_utc(at):%H:%M:%S}",
    "iso": lambda at: _utc(at).isoformat(timespec="milliseconds"),
    "utc": lambda at: f"{_utc(at):%Y-%m-%d %H:%M:%S}",
}
"""For templates, by name."""
