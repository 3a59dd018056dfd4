"""Which machine is what: the cast that other parts of the network rely on, the routers
of the branch offices, and all others by chance.
"""

from collections.abc import Mapping
from random import Random

from msgspec import Struct, field

from api_exporter.demo.machines import (
    BUILD,
    LAB_ROUTER,
    LAPTOP,
    PHONE,
    ROUTER,
    RUNNER,
    SERVER,
    SHARES,
    SHELVED,
    UNUSED,
    Kind,
)
from api_exporter.demo.schedules import (
    DAY,
    SETTLED,
    Schedule,
    connected_since,
    offline_since,
)


class Part(Struct, frozen=True):
    """A machine of the cast.

    Attributes:
        schedule: in place of the kind's.
        fields: of its record, in place of the usual ones.
        lonely: in no group at all.
    """

    kind: Kind
    schedule: Schedule | None = None
    fields: Mapping[str, object] = field(default_factory=dict)
    lonely: bool = False


_UP = connected_since(SETTLED + 40 * DAY)
_DOWN = offline_since(SETTLED + 200 * DAY)

_CUT_OFF = Schedule(SETTLED, DAY + DAY // 2, (0, DAY))
"""For as long as a login lasts; the next one comes half a day later."""

CAST = (
    Part(ROUTER, _UP, {"name": "gw-hq-1"}),
    Part(ROUTER, _UP, {"name": "gw-hq-2"}),
    Part(LAB_ROUTER, _UP, {"name": "gw-lab-1"}),
    Part(LAB_ROUTER, _DOWN, {"name": "gw-lab-2"}),
    Part(ROUTER, _DOWN, {"name": "gw-depot-1"}),
    Part(ROUTER, _DOWN, {"name": "gw-depot-2"}),
    Part(LAPTOP, fields={"name": 'Zoë\'s "Büro" laptop \\ R&D'}),
    Part(RUNNER),
    Part(SERVER, fields={"name": "db-primary", "extra_dns_labels": ["pg"]}),
    Part(SERVER, fields={"name": "db-primary", "version": "development"}, lonely=True),
    Part(BUILD, _CUT_OFF, {"name": "build & <deploy>", "version": "0.59.13"}),
    Part(
        SERVER,
        fields={
            "connection_ip": "<nil>",
            "city_name": "",
            "country_code": "",
            "geoname_id": 0,
        },
    ),
    Part(UNUSED),
    Part(SHELVED),
    Part(
        PHONE,
        fields={
            "name": "Pixel 9 – 日本",
            "approval_required": True,
            "disapproval_reason": "peer is not compliant with integration requirements",
        },
    ),
)
"""The first machines of every network. With fewer machines than these, networks point
at routers that do not exist, as they do where a machine has been deleted."""

HQ_ROUTERS = (0, 1)
LAB_ROUTERS = (2, 3)
DEPOT_ROUTERS = (4, 5)
EXIT_NODE = 2
LOST_ROUTER = 3
DATABASE = 8

BRANCH = 250
"""Of every so many machines, two are the routers of a branch office."""

_FIRST_ROUTER = 20


def kind_of(number: int, chance: Random) -> Kind:
    """The kind of a machine beyond the cast."""
    if number % BRANCH in {_FIRST_ROUTER, _FIRST_ROUTER + 1}:
        return ROUTER
    return chance.choice(SHARES)


def branches(machines: int) -> list[tuple[int, int]]:
    """The numbers of each branch office's two routers."""
    firsts = range(_FIRST_ROUTER, machines - 1, BRANCH)
    return [(first, first + 1) for first in firsts]
