"""Machines as records.

The constant part of a record is encoded once. Each reading fills in the values of the
schedule and the sizes of the groups.
"""

from datetime import timedelta, timezone
from random import Random

import msgspec
from msgspec import Struct

from api_exporter.demo.go_json import encode, rfc3339, xid
from simulation.company.company import (
    ALL,
    COMPANY,
    VERSIONS,
    MachineKind,
    Place,
    kind_of,
)
from simulation.company.incidents import INTERRUPTIONS, InterruptedPattern
from simulation.company.people import MACHINES_EACH, ascii_of, person
from simulation.company.resource import HOLE, load
from simulation.company.schedules import (
    DAY,
    FOUNDED,
    MINUTE,
    PATTERNS,
    SETTLED,
    Pattern,
)

ZERO_TIME = "0001-01-01T00:00:00Z"
"""Go's zero time, which means never."""

_LOGIN_EXPIRATION = load("accounts").template["settings"]["peer_login_expiration"]
"""Seconds for which a login is valid."""

_RUNNER_KEPT_SECONDS = 10 * MINUTE
"""Seconds for which NetBird lists an ephemeral machine that has disconnected."""

_MAX_MACHINES = 2**20
"""A number above all machine numbers, which separates the lives of a runner."""

_QUOTED_HOLE = msgspec.Raw(b'"\0"')

_TEMPLATE = load("peers").template


class Machine(Struct, frozen=True, kw_only=True):
    """A listed machine.

    Attributes:
        groups: ids of its groups.
        member: its encoded record inside of a group.
        template: its own encoded record with places to fill in.
        login: the time of a login that never expires; None if the owner logs in at each
            connection.
        fraction: the fraction of a second in its times of login.
    """

    schedule: Pattern | InterruptedPattern
    groups: tuple[str, ...]
    member: bytes
    template: bytes
    login: str | None
    fraction: str
    zone: timezone

    def record(self, at: float, groups: bytes) -> bytes:
        """Return the encoded record, given the encoded groups inside of it."""
        connected, changed, joined = self.schedule.state(at)
        login, expired = self.login, False
        if login is None:
            login = rfc3339(joined - 1, self.fraction, self.zone)
            expired = at - joined >= _LOGIN_EXPIRATION
        return self.template % (
            b"true" if connected else b"false",
            groups,
            login.encode(),
            rfc3339(changed).encode(),
            b"true" if expired else b"false",
        )


class Runner(Struct):
    """An ephemeral machine: each repetition of its schedule is another peer.

    Attributes:
        last: the repetition that was requested last, and its machine; a cache.
    """

    number: int
    seed: int
    kind: MachineKind
    schedule: Pattern
    last: tuple[int, Machine] | None = None

    def exists(self, at: float) -> bool:
        gone = self.schedule.changes[-1] + _RUNNER_KEPT_SECONDS
        return at - self.schedule.start(at) < gone

    def peer(self, at: float) -> Machine:
        """Return its machine at a time when it exists."""
        life = self.schedule.cycle(at)
        if self.last is None or life != self.last[0]:
            number = self.number + (life + 1) * _MAX_MACHINES
            chance = Random(f"{self.seed}:{self.number}:{life}")
            created = self.schedule.start(at)
            peer = _peer(number, self.kind, self.schedule, chance, created=created)
            self.last = life, peer
        return self.last[1]


def peer_id(number: int) -> str:
    """Return a scattered id. It is unique, because the factor is odd."""
    return xid("d2p", number * 0x9E3779B97F4A7C15 % 2**68)


def machine(number: int, seed: int) -> Machine | Runner:
    """Return the machine of that number, which is the same in networks of any size."""
    chance = Random(f"{seed}:{number}")
    kind = kind_of(number, chance)
    schedule = PATTERNS[kind.pattern](chance, _place(number).east)
    if kind.ephemeral:
        return Runner(number, seed, kind, schedule)
    created = chance.randrange(FOUNDED, SETTLED - DAY)
    event = INTERRUPTIONS.get(kind.interruption)
    pattern = schedule if event is None else InterruptedPattern(schedule, event)
    return _peer(number, kind, pattern, chance, created=created)


def _peer(
    number: int,
    kind: MachineKind,
    schedule: Pattern | InterruptedPattern,
    chance: Random,
    *,
    created: int,
) -> Machine:
    place = _place(number)
    zone = timezone(timedelta(hours=place.east))
    owner = person(number // MACHINES_EACH)
    micros = f".{chance.randrange(10**6):06d}"
    fraction = ("", ".5", micros, f"{micros}{number % 1000:03d}")[number % 4]
    enrolled = rfc3339(created, fraction, zone)
    system, kernel = chance.choice(COMPANY.systems[kind.systems])
    version = chance.choice(VERSIONS)
    label = ascii_of(owner.first) if kind.owned else kind.host
    address = number % _MAX_MACHINES + 1
    names = {"owner": owner.first, "place": place.code, "number": f"{number:x}"}
    record = _TEMPLATE | {
        "connected": HOLE,
        "connection_ip": f"{place.public}{chance.randint(1, 254)}",
        "created_at": enrolled,
        "dns_label": f"{label}-{number}.netbird.demo",
        "ephemeral": kind.ephemeral,
        "groups": HOLE,
        "hostname": f"{kind.host}{number:06d}.{place.code}.example.com",
        "id": peer_id(number),
        "inactivity_expiration_enabled": kind.owned,
        "ip": f"100.{64 + (address >> 16)}.{address >> 8 & 255}.{address & 255}",
        "ipv6": f"fd00:4e42:1a2b::{address:x}",
        "kernel_version": kernel,
        "last_login": _QUOTED_HOLE,
        "last_seen": _QUOTED_HOLE,
        "login_expiration_enabled": kind.owned,
        "login_expired": HOLE,
        "name": kind.name.format(**names),
        "os": system,
        "serial_number": "" if kind.ephemeral else f"{chance.getrandbits(40):010X}",
        "ssh_enabled": not kind.owned and number % 3 == 0,
        "ui_version": version if kind.desktop else "",
        "user_id": owner.id if kind.owned else "",
        "version": version,
        **place.fields,
        **kind.fields,
    }
    groups = (ALL, kind.group or owner.team, place.office)
    return Machine(
        schedule=schedule,
        groups=() if kind.lonely else groups[: 2 if kind.ephemeral else 3],
        member=encode({"id": record["id"], "name": record["name"]}),
        template=encode(record).replace(b"%", b"%%").replace(b"\0", b"%b"),
        login=(None if kind.logs_in else ZERO_TIME) if kind.owned else enrolled,
        fraction=fraction,
        zone=zone,
    )


def _place(number: int) -> Place:
    return COMPANY.places[number // (2 * MACHINES_EACH) % len(COMPANY.places)]
