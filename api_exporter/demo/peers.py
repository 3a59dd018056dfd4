"""Machines as records. What stays the same of one is encoded once; only what its
schedule decides, and the sizes of its groups, are filled in at each reading.
"""

from datetime import timezone
from random import Random

import msgspec
from msgspec import Struct

from api_exporter.demo.cast import CAST, Part, kind_of
from api_exporter.demo.groups import ALL, TEAMS, Group
from api_exporter.demo.machines import PLACES, RUNNER, VERSIONS, Place
from api_exporter.demo.people import MACHINES_EACH, Person, ascii_of, person
from api_exporter.demo.schedules import DAY, FOUNDED, MINUTE, SETTLED, Schedule
from api_exporter.demo.story import Interrupted
from api_exporter.demo.wire import HOLE, ZERO_TIME, encode, rfc3339, xid

LOGIN_EXPIRATION = DAY
"""How long a login lasts: NetBird's default. No owned machine is connected longer."""

_RUNNER_KEPT = 10 * MINUTE
"""How long the upstream lists an ephemeral machine that has disconnected."""

_MANY = 2**20
"""More than there are machines: tells the lives of one runner apart."""

_QUOTED_HOLE = msgspec.Raw(b'"\0"')

_FLAGS = dict.fromkeys(
    (
        *("block_inbound", "block_lan_access", "disable_client_routes", "disable_dns"),
        *("disable_firewall", "disable_server_routes", "lazy_connection_enabled"),
        *("rosenpass_enabled", "rosenpass_permissive", "server_ssh_allowed"),
    ),
    False,
)


class Peer(Struct, frozen=True, kw_only=True):
    """A machine that is listed.

    Attributes:
        groups: the ids of those it is in.
        member: its encoded record inside of a group.
        template: its own encoded record with places to fill in.
        login: of one whose login does not expire, when that was; None where its owner
            logs in whenever it connects.
        fraction: of a second, as in the texts of its logins.
    """

    schedule: Schedule | Interrupted
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
            expired = at - joined >= LOGIN_EXPIRATION
        return self.template % (
            b"true" if connected else b"false",
            groups,
            login.encode(),
            rfc3339(changed).encode(),
            b"true" if expired else b"false",
        )


class Runner:
    """An ephemeral machine: each repetition of its schedule is another peer."""

    def __init__(self, number: int, seed: int, part: Part, schedule: Schedule) -> None:
        self._number = number
        self._seed = seed
        self._part = part
        self._schedule = schedule
        # Whom it was when last asked for, for that is likely to be asked again.
        self._life = 0
        self._peer: Peer | None = None

    def exists(self, at: float) -> bool:
        gone = self._schedule.changes[-1] + _RUNNER_KEPT
        return at - self._schedule.start(at) < gone

    def peer(self, at: float) -> Peer:
        """Who it is at an instant at which it exists."""
        life = self._schedule.cycle(at)
        if self._peer is None or life != self._life:
            self._life = life
            self._peer = _peer(
                self._number + (life + 1) * _MANY,
                self._part,
                self._schedule,
                Random(f"{self._seed}:{self._number}:{life}"),  # noqa: S311 - repeatable
                created=self._schedule.start(at),
            )
        return self._peer


def peer_id(number: int) -> str:
    """Scattered, but never the same for two numbers: the factor is odd."""
    return xid("d2p", number * 0x9E3779B97F4A7C15 % 2**68)


def machine(number: int, seed: int) -> Peer | Runner:
    """The network's machine of that number, the same however many there are."""
    chance = Random(f"{seed}:{number}")  # noqa: S311 - has to be repeatable
    part = CAST[number] if number < len(CAST) else Part(kind_of(number, chance))
    schedule = part.schedule or part.kind.schedule(chance, _place(number).east)
    if part.kind is RUNNER:
        return Runner(number, seed, part, schedule)
    created = chance.randrange(FOUNDED, SETTLED - DAY)
    event = part.kind.interrupted
    keeps = schedule if event is None else Interrupted(schedule, event)
    return _peer(number, part, keeps, chance, created=created)


def _peer(
    number: int,
    part: Part,
    schedule: Schedule | Interrupted,
    chance: Random,
    *,
    created: int,
) -> Peer:
    kind, place = part.kind, _place(number)
    owner = person(number // MACHINES_EACH)
    micros = chance.randrange(10**6)
    fraction = ("", ".5", f".{micros:06d}", f".{micros:06d}{number % 1000:03d}")[
        number % 4
    ]
    enrolled = rfc3339(created, fraction, place.zone)
    record = {
        **_record(number, part, place, owner, chance),
        "created_at": enrolled,
        "connected": HOLE,
        "groups": HOLE,
        "last_login": _QUOTED_HOLE,
        "last_seen": _QUOTED_HOLE,
        "login_expired": HOLE,
    }
    template = encode(record).replace(b"%", b"%%").replace(b"\0", b"%b")
    return Peer(
        schedule=schedule,
        groups=_groups(part, number),
        member=encode({"id": record["id"], "name": record["name"]}),
        template=template,
        login=(None if kind.logs_in else ZERO_TIME) if kind.owned else enrolled,
        fraction=fraction,
        zone=place.zone,
    )


def _record(
    number: int, part: Part, place: Place, owner: Person, chance: Random
) -> dict[str, object]:
    kind = part.kind
    system, kernel = chance.choice(kind.systems)
    version = chance.choice(VERSIONS)
    label = ascii_of(owner.first) if kind.owned else kind.host
    address = number % _MANY + 1
    return {
        "accessible_peers_count": 0,
        "approval_required": False,
        "city_name": place.city,
        "connection_ip": f"{place.public}{chance.randint(1, 254)}",
        "country_code": place.country,
        "dns_label": f"{label}-{number}.netbird.demo",
        "ephemeral": kind.ephemeral,
        "extra_dns_labels": [],
        "geoname_id": place.geoname,
        "hostname": f"{kind.host}{number:06d}.{place.code}.example.com",
        "id": peer_id(number),
        "inactivity_expiration_enabled": kind.owned,
        "ip": f"100.{64 + (address >> 16)}.{address >> 8 & 255}.{address & 255}",
        "ipv6": f"fd00:4e42:1a2b::{address:x}",
        "kernel_version": kernel,
        "local_flags": _FLAGS,
        "login_expiration_enabled": kind.owned,
        "name": kind.called.format(
            owner=owner.first, place=place.code, number=f"{number:x}"
        ),
        "os": system,
        "serial_number": "" if kind.ephemeral else f"{chance.getrandbits(40):010X}",
        "ssh_enabled": not kind.owned and number % 3 == 0,
        "ui_version": version if kind.desktop else "",
        "user_id": owner.id if kind.owned else "",
        "version": version,
        **part.fields,
    }


def _place(number: int) -> Place:
    return PLACES[number // (2 * MACHINES_EACH) % len(PLACES)]


def _groups(part: Part, number: int) -> tuple[str, ...]:
    if part.lonely:
        return ()
    team = TEAMS[number // MACHINES_EACH % len(TEAMS)]
    groups: tuple[Group, ...] = (ALL, part.kind.group or team)
    if not part.kind.ephemeral:
        groups += (_place(number).office,)
    return tuple(group.id for group in groups)
