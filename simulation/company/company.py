"""The company of `company.json`: its offices, its kinds of machines, and the
cast, which the records of other resources name by their ids.

Public addresses are from the ranges reserved for documentation.
"""

from collections.abc import Mapping
from random import Random

import msgspec
from msgspec import Struct

from api_exporter.demo.go_json import xid
from simulation.company.resource import file

ALL, RUNNERS = xid("d2g", 0), xid("d2g", 4)
"""The groups that ephemeral machines are in."""

_BRANCH, _FIRST, _SECOND = 250, 20, 21
"""Of every so many machines, those two are the routers of a branch office."""


class Place(Struct, frozen=True):
    """An office.

    Attributes:
        east: hours from Greenwich, summer and winter.
        public: what its public addresses begin with.
        office: the group of its machines.
        fields: of their records.
    """

    code: str
    east: int
    public: str
    office: str
    fields: Mapping[str, object]


class MachineKind(Struct, frozen=True, kw_only=True):
    """What machines of one sort have in common; each of the cast is a sort of its own.

    Attributes:
        name: theirs; `{owner}`, `{place}` and `{number}` are filled in.
        host: what their host names begin with.
        systems: the operating systems that they may have.
        pattern: of their connections, one of `schedules.PATTERNS`.
        interruption: what interrupts it, one of `story.INTERRUPTIONS`.
        group: theirs; None where it is their owner's team.
        desktop: it shows the client to its owner.
        owned: a person logs in on it; others were enrolled with a setup key.
        logs_in: the owner has ever done so.
        lonely: in no group at all.
        share: of a hundred machines.
        fields: of their records, in place of the usual ones.
    """

    name: str
    host: str
    systems: str
    pattern: str
    interruption: str | None = None
    group: str | None = None
    desktop: bool = False
    owned: bool = False
    logs_in: bool = True
    ephemeral: bool = False
    lonely: bool = False
    share: int = 0
    fields: Mapping[str, object] = {}


class Company(Struct, frozen=True):
    """The file.

    Attributes:
        teams: the groups of people's machines.
        versions: of clients, with how many of a hundred have each.
        systems: the operating systems and their kernels, as clients report them.
        cast: the first machines of every network. With fewer machines than these,
            networks point at routers that do not exist, as where one was deleted.
        router: a branch office's.
        others: all other kinds.
    """

    places: tuple[Place, ...]
    teams: tuple[str, ...]
    first_names: tuple[str, ...]
    last_names: tuple[str, ...]
    versions: Mapping[str, int]
    systems: Mapping[str, tuple[tuple[str, str], ...]]
    cast: tuple[MachineKind, ...]
    router: MachineKind
    others: tuple[MachineKind, ...]


COMPANY = msgspec.json.decode(file("company.json"), type=Company)

VERSIONS = [v for v, share in COMPANY.versions.items() for _ in range(share)]
_OTHERS = [kind for kind in COMPANY.others for _ in range(kind.share)]


def kind_of(number: int, chance: Random) -> MachineKind:
    if number < len(COMPANY.cast):
        return COMPANY.cast[number]
    if number % _BRANCH in {_FIRST, _SECOND}:
        return COMPANY.router
    return chance.choice(_OTHERS)


def branches(machines: int) -> range:
    """The number of each branch office's first router; the second is the next."""
    return range(_FIRST, machines - 1, _BRANCH)
