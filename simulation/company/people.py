"""The company's people, with up to three machines each."""

import unicodedata
from functools import cache

from msgspec import Struct

from simulation.company.company import COMPANY

MACHINES_EACH = 3

EXPORTER_ID = "7a1f3c1e-3a30-4f6e-9d2a-51c4f4a5a001"


class Person(Struct, frozen=True):
    """A person with machines."""

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
    """Return a name for use in an address: lower case and without accents."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return "".join(letter for letter in plain.lower() if letter.isalnum()) or "x"
