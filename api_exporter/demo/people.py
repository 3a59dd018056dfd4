"""The company's people, its service users and the exporter's own access tokens.

One person to three machines. What is periodic is so because every instant has to show a
token that ends in about two months and a person who logged in within the last day.
"""

import unicodedata
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from api_exporter.demo.groups import TEAMS
from api_exporter.demo.moment import Moment
from api_exporter.demo.schedules import DAY, HOUR, MINUTE
from api_exporter.demo.story import CONTRACTOR
from api_exporter.demo.wire import ZERO_TIME, rfc3339, xid

MACHINES_EACH = 3

_FIRST = (
    *("Ada", "Zoë", "Jörg", "Chloé", "健太", "Mary", "Łukasz", "さくら", "José"),
    *("Siân", "Ümit", "Noah", "Mei", "Åsa", "Omar", "Inês", "Tomáš"),
)
_LAST = (
    *("Müller", "O'Neil", "Lefèvre", "佐藤", "Smith", "Nowak", "García"),
    *("Evans", "Demir", "Berg", "Haddad", "Silva", "Novák"),
)

EXPORTER_ID = "7a1f3c1e-3a30-4f6e-9d2a-51c4f4a5a001"
OWNER_ID = "CgZhZG1pbjASBWxvY2Fs"


class Person(Struct, frozen=True):
    """Somebody with machines."""

    id: str
    first: str
    last: str
    email: str


def person(number: int) -> Person:
    first = _FIRST[number % len(_FIRST)]
    last = _LAST[number // len(_FIRST) % len(_LAST)]
    mailbox = f"{ascii_of(first)}.{ascii_of(last)}.{number}@example.com"
    return Person(f"google-oauth2|{1000 + number}", first, last, mailbox)


@cache
def ascii_of(name: str) -> str:
    """A name as it may stand in an address: lower case, marks dropped."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return "".join(letter for letter in plain.lower() if letter.isalnum()) or "x"


def users(moment: Moment) -> Iterator[object]:
    """Officers and service users first, then those with machines."""
    yield _user(
        OWNER_ID,
        name="Ada Admin",
        email="admin@example.com",
        idp_id="local",
        role="owner",
        last_login=rfc3339(moment.latest(DAY, phase=25_211), ".482193"),
    )
    yield _service_user(EXPORTER_ID, name="prometheus-exporter", is_current=True)
    yield _service_user("7a1f3c1e-3a30-4f6e-9d2a-51c4f4a5a002", name="terraform")
    for role in ("admin", "network_admin", "auditor", "billing_admin"):
        yield _user(
            f"auth0|{role}",
            name=role.replace("_", " ").title(),
            email=f"{role}@example.com",
            role=role,
        )
    yield _user("google-oauth2|901", issued="integration", status="invited")
    yield _user(
        "google-oauth2|902",
        name="New Hire",
        email="new.hire@example.com",
        is_blocked=True,
        pending_approval=True,
        status="blocked",
    )
    yield _user(
        "google-oauth2|903",
        name='Gone "G." Person',
        email="left@example.com",
        is_blocked=True,
        last_login="2025-03-01T00:00:00Z",
        role="network_admin",
        status="blocked",
    )
    for number in range(-(-moment.machines // MACHINES_EACH)):
        yield _employee(moment, number)


def access_tokens(moment: Moment) -> Iterator[object]:
    """The exporter's: renewed monthly, long before it ends; a forgotten one, and a
    contractor's at times.
    """
    renewed = moment.latest(30 * DAY)
    yield {
        "created_at": rfc3339(renewed, ".123456"),
        "created_by": OWNER_ID,
        "expiration_date": rfc3339(renewed + 75 * DAY, ".123456"),
        "id": xid("d2t", 1),
        "last_used": rfc3339(moment.latest(MINUTE // 2), ".000317"),
        "name": "exporter",
    }
    forgotten = moment.latest(300 * DAY)
    yield {
        "created_at": rfc3339(forgotten),
        "created_by": OWNER_ID,
        "expiration_date": rfc3339(forgotten + 365 * DAY),
        "id": xid("d2t", 2),
        "name": "never used",
    }
    if CONTRACTOR.lasts(moment.at):
        begun = CONTRACTOR.start(moment.at)
        yield {
            "created_at": rfc3339(begun),
            "created_by": OWNER_ID,
            "expiration_date": rfc3339(begun + 3 * DAY + 2 * HOUR),
            "id": xid("d2t", 3),
            "last_used": rfc3339(moment.latest(HOUR)),
            "name": "contractor",
        }


def _employee(moment: Moment, number: int) -> dict[str, object]:
    somebody = person(number)
    return _user(
        somebody.id,
        name=f"{somebody.first} {somebody.last}",
        email=somebody.email,
        auto_groups=[TEAMS[number % len(TEAMS)].id] if number % 4 else [],
        last_login=rfc3339(moment.latest(DAY, phase=number * 977), ".402117"),
    )


def _service_user(id_: str, **fields: object) -> dict[str, object]:
    return _user(id_, is_service_user=True, role="auditor", **fields)


def _user(id_: str, **fields: object) -> dict[str, object]:
    return {
        "auto_groups": [],
        "email": "",
        "id": id_,
        "is_blocked": False,
        "is_current": False,
        "is_service_user": False,
        "issued": "api",
        "last_login": ZERO_TIME,
        "name": "",
        "pending_approval": False,
        "role": "user",
        "status": "active",
        **fields,
    }
