"""The company of `company.json`: its offices, its kinds of machines, and the cast.

The cast are machines that other resources' records name by their ids. Public addresses
are from the ranges reserved for documentation.
"""

from collections.abc import Mapping
from random import Random

import msgspec
from msgspec import Struct

from api_exporter.demo.go_json import xid
from simulation.company.resource import read_file

ALL, RUNNERS = xid("d2g", 0), xid("d2g", 4)
"""The groups of ephemeral machines."""

_BRANCH, _FIRST, _SECOND = 250, 20, 21
"""Two machines of every `_BRANCH` are the routers of a branch office."""


class Place(Struct, frozen=True):
    """An office.

    Attributes:
        east: hours from Greenwich, in summer and winter.
        public: the prefix of its public addresses.
        office: the group of its machines.
        fields: fields of its machines' records.
    """

    code: str
    east: int
    public: str
    office: str
    fields: Mapping[str, object]


class MachineKind(Struct, frozen=True, kw_only=True):
    """The common properties of machines of one kind. Each machine of the cast is a kind
    of its own.

    Attributes:
        name: a template of the name; `{owner}`, `{place}` and `{number}` are filled in.
        host: the prefix of the host name.
        systems: the possible operating systems.
        pattern: the pattern of connections, one of `schedules.PATTERNS`.
        interruption: the interrupting incident, one of `incidents.INTERRUPTIONS`, or
            None.
        group: its group; None for the owner's team.
        desktop: whether the owner uses the graphical client.
        owned: whether a person logs in on it; other machines used a setup key.
        logs_in: whether the owner has ever logged in.
        lonely: whether it is in no group.
        share: its share of the machines, in per cent.
        fields: fields of its record that replace the usual ones.
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
    """The content of `company.json`.

    Attributes:
        teams: the groups of people's machines.
        versions: versions of clients, each with its share in per cent.
        systems: the operating systems and their kernels, as clients report them.
        cast: the first machines of every network. With fewer machines, networks name
            routers that do not exist, as after a deletion.
        router: a branch office's router.
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


COMPANY = msgspec.json.decode(read_file("company.json"), type=Company)

VERSIONS = [v for v, share in COMPANY.versions.items() for _ in range(share)]
_OTHERS = [kind for kind in COMPANY.others for _ in range(kind.share)]


def kind_of(number: int, chance: Random) -> MachineKind:
    if number < len(COMPANY.cast):
        return COMPANY.cast[number]
    if number % _BRANCH in {_FIRST, _SECOND}:
        return COMPANY.router
    return chance.choice(_OTHERS)


def branches(machines: int) -> range:
    """Return the number of each branch's first router; the second is the next."""
    return range(_FIRST, machines - 1, _BRANCH)
