"""Checks of the types of fields."""

from collections.abc import Callable
from itertools import starmap

from tests.reference.fields import parse

Kind = Callable[[object], bool]

MAX_INTEGER = 2**53
"""The maximum of an integer: a double holds it exactly."""


def a_word(value: object) -> bool:
    return isinstance(value, str)


def a_yes(value: object) -> bool:
    return isinstance(value, bool)


def a_count(value: object) -> bool:
    return isinstance(value, int) and not a_yes(value) and abs(value) <= MAX_INTEGER


def an_amount(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not a_yes(value)
        and abs(float(value)) <= MAX_INTEGER
    )


def a_time(value: object) -> bool:
    try:
        parse(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return True


def many(kind: Kind) -> Kind:
    return lambda value: isinstance(value, list) and all(map(kind, value))


def thing(
    words: str = "",
    yes: str = "",
    counts: str = "",
    times: str = "",
    *,
    amounts: str = "",
    shown: str = "",
    shown_yes: str = "",
    **others: Kind,
) -> Kind:
    """Return a check of objects with fields of these types; others are not checked.

    The check removes shown fields of another type.
    """
    unneeded = {
        **dict.fromkeys(shown.split(), a_word),
        **dict.fromkeys(shown_yes.split(), a_yes),
    }
    kinds = others | {
        name: kind
        for names, kind in (
            (words, a_word),
            (yes, a_yes),
            (counts, a_count),
            (times, a_time),
            (amounts, an_amount),
        )
        for name in names.split()
    }

    def right(name: str, value: object) -> bool:
        return name not in kinds or kinds[name](value)

    def check(value: object) -> bool:
        if not isinstance(value, dict):
            return False
        for name in value.keys() & unneeded.keys():
            if not unneeded[name](value[name]):
                del value[name]
        return all(starmap(right, value.items()))

    return check


WORDS = many(a_word)
NAMED = many(thing("id", shown="name"))
TYPED = thing("id type")
GROUPS = many(thing("id"))
