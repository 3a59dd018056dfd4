"""The company's people, its service users and the exporter's own access tokens.

One person to three machines. What is periodic is so because every instant has to show a
token that ends in about two months and a person who logged in within the last day.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache

from msgspec import Struct

from api_exporter.demo.company import COMPANY
from api_exporter.demo.go_json import rfc3339
from api_exporter.demo.incidents import CONTRACTOR
from api_exporter.demo.resource import Moment, Record, Template
from api_exporter.demo.schedules import DAY, HOUR, MINUTE

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


def users(moment: Moment, template: Template) -> Iterator[Record]:
    """Officers and service users first, then those with machines."""
    owner = template.records[0]
    owner["last_login"] = rfc3339(moment.latest(DAY, phase=25_211), ".482193")
    yield from template.records
    for number in range(-(-moment.machines // MACHINES_EACH)):
        employee = person(number)
        yield template.record(
            id=employee.id,
            name=f"{employee.first} {employee.last}",
            email=employee.email,
            auto_groups=[employee.team] if number % 4 else [],
            last_login=rfc3339(moment.latest(DAY, phase=number * 977), ".402117"),
        )


def access_tokens(moment: Moment, template: Template) -> Iterable[Record]:
    """The exporter's: renewed monthly, long before it ends; a forgotten one, and a
    contractor's at times.
    """
    own, forgotten, contractor = template.records
    renewed = moment.latest(30 * DAY)
    own["created_at"] = rfc3339(renewed, ".123456")
    own["expiration_date"] = rfc3339(renewed + 75 * DAY, ".123456")
    own["last_used"] = rfc3339(moment.latest(MINUTE // 2), ".000317")
    created = moment.latest(300 * DAY)
    forgotten["created_at"] = rfc3339(created)
    forgotten["expiration_date"] = rfc3339(created + 365 * DAY)
    if not CONTRACTOR.lasts(moment.at):
        return own, forgotten
    begun = CONTRACTOR.start(moment.at)
    contractor["created_at"] = rfc3339(begun)
    contractor["expiration_date"] = rfc3339(begun + 3 * DAY + 2 * HOUR)
    contractor["last_used"] = rfc3339(moment.latest(HOUR))
    return template.records
