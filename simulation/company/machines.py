"""Machines as records. What stays the same of one is encoded once; only what its
schedule decides, and the sizes of its groups, are filled in at each reading.
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
"""Go's way to say never."""

_LOGIN_EXPIRATION = load("accounts").template["settings"]["peer_login_expiration"]
"""How long a login lasts."""

_RUNNER_KEPT = 10 * MINUTE
"""How long the upstream lists an ephemeral machine that has disconnected."""

_MANY = 2**20
"""More than there are machines: tells the lives of one runner apart."""

_QUOTED_HOLE = msgspec.Raw(b'"\0"')

_TEMPLATE = load("peers").template


class Machine(Struct, frozen=True, kw_only=True):
    """A machine that is listed.

    Attributes:
        groups: the ids of those it is in.
        member: its encoded record inside of a group.
        template: its own encoded record with places to fill in.
        login: of one whose login does not expire, when that was; None where its owner
            logs in whenever it connects.
        fraction: of a second, as in the texts of its logins.
    """

    schedule: Pattern | InterruptedPattern
    groups: tuple[str, ...]
    member: bytes
    template: bytes
    login: str | None
    fraction: str
    zone: timezone

    def record(self, at: float, groups: bytes) -> bytes:
        """Encoded, given its groups as they stand inside of it."""
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
        last: the repetition that was last asked for, and who it was then: that is
            likely to be asked again.
    """

    number: int
    seed: int
    kind: MachineKind
    schedule: Pattern
    last: tuple[int, Machine] | None = None

    def exists(self, at: float) -> bool:
        gone = self.schedule.changes[-1] + _RUNNER_KEPT
        return at - self.schedule.start(at) < gone

    def peer(self, at: float) -> Machine:
        """Who it is at an instant at which it exists."""
        life = self.schedule.cycle(at)
        if self.last is None or life != self.last[0]:
            number = self.number + (life + 1) * _MANY
            chance = Random(f"{self.seed}:{self.number}:{life}")
            created = self.schedule.start(at)
            peer = _peer(number, self.kind, self.schedule, chance, created=created)
            self.last = life, peer
        return self.last[1]


def peer_id(number: int) -> str:
    """Scattered, but never the same for two numbers: the factor is odd."""
    return xid("d2p", number * 0x9E3779B97F4A7C15 % 2**68)


def machine(number: int, seed: int) -> Machine | Runner:
    """The network's machine of that number, the same however many there are."""
    chance = Random(f"{seed}:{number}")
    kind = kind_of(number, chance)
    schedule = PATTERNS[kind.pattern](chance, _place(number).east)
    if kind.ephemeral:
        return Runner(number, seed, kind, schedule)
    created = chance.randrange(FOUNDED, SETTLED - DAY)
    event = INTERRUPTIONS.get(kind.interruption)
    keeps = schedule if event is None else InterruptedPattern(schedule, event)
    return _peer(number, kind, keeps, chance, created=created)


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
    address = number % _MANY + 1
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
