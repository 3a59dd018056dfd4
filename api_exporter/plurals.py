"""Numbers with their nouns, in singular or plural."""

_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def with_noun(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 peer` or `1,234 peers`."""
    return f"{number:,} {plural(number, noun)}"


def plural(number: int, noun: str) -> str:
    """Return the noun alone, such as `peers` for 0."""
    return noun if number == 1 else f"{noun}s"


def duration(seconds: int) -> str:
    """Return the largest unit without a remainder, such as `1 day` or `90 minutes`."""
    unit, length = next(
        (unit, length) for unit, length in _UNITS if seconds % length == 0
    )
    return with_noun(seconds // length, unit)
