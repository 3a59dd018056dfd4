"""The company's people: one to three machines."""

import unicodedata
from functools import cache

from msgspec import Struct

from simulation.company.company import COMPANY

MACHINES_EACH = 3

EXPORTER_ID = "7a1f3c1e-3a30-4f6e-9d2a-51c4f4a5a001"


class Person(Struct, frozen=True):
    """Somebody with machines."""

    id: str
    first: str
    last: str
    email: str
    team: str


def person(number: int) -> Person:
    names, surnames, teams = COMPANY.first_names, COMPANY.last_names, COMPANY.teams
    first = names[number % len(names)]
    last = surnames[number // len(names) % len(surnames)]
    return Person(
        id=f"google-oauth2|{1000 + number}",
        first=first,
        last=last,
        email=f"{ascii_of(first)}.{ascii_of(last)}.{number}@example.com",
        team=teams[number % len(teams)],
    )


@cache
def ascii_of(name: str) -> str:
    """A name as it may stand in an address: lower case, marks dropped."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return "".join(letter for letter in plain.lower() if letter.isalnum()) or "x"
