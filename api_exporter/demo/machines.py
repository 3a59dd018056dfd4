"""What machines the company has: places and kinds.

Public addresses are from the ranges reserved for documentation.
"""

from collections.abc import Callable
from datetime import timedelta, timezone
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.demo.groups import OFFICES, PHONES, ROUTERS, RUNNERS, SERVERS, Group
from api_exporter.demo.schedules import (
    Schedule,
    abandoned,
    jobs,
    office_hours,
    outages,
    roaming,
)
from api_exporter.demo.story import GATEWAYS_UPDATE, LAB_UPDATE, LINE_CUT, Event


class Place(Struct, frozen=True):
    """An office.

    Attributes:
        east: hours from Greenwich, summer and winter.
        public: what its public addresses begin with.
        office: the group of its machines.
    """

    code: str
    country: str
    city: str
    geoname: int
    east: int
    public: str
    office: Group

    @property
    def zone(self) -> timezone:
        return timezone(timedelta(hours=self.east))


PLACES = (
    Place("ber", "DE", "Berlin", 2950159, 1, "203.0.113.", OFFICES[0]),
    Place("lys", "FR", "Lyon", 2996944, 1, "198.51.100.", OFFICES[1]),
    Place("tyo", "JP", "Tōkyō", 1850147, 9, "192.0.2.", OFFICES[2]),
    Place("los", "NG", "Lagos", 2332459, 1, "2001:db8:a::", OFFICES[3]),
)

System = tuple[str, str]
"""An operating system and its kernel, as the client reports them."""

_SERVER_SYSTEMS: tuple[System, ...] = (
    ("Ubuntu 24.04", "6.8.0-45-generic"),
    ("Ubuntu 22.04", "5.15.0-119-generic"),
    ("Debian GNU/Linux 12", "6.1.0-26-amd64"),
    ("Alpine Linux 3.22.1", "6.12.38-0-virt"),
    ("Windows Server 2022", "10.0.20348.2655"),
)
_LAPTOP_SYSTEMS: tuple[System, ...] = (
    ("Windows 11", "10.0.22631.4037"),
    ("Darwin 15.6.1", "24.6.0"),
    ("Fedora Linux 42", "6.15.9-201.fc42.x86_64"),
)
_PHONE_SYSTEMS: tuple[System, ...] = (("Android 16", ""), ("iOS 18.6", ""))


class Kind(Struct, frozen=True, kw_only=True):
    """What machines of one sort have in common.

    Attributes:
        called: their names; `{owner}`, `{place}` and `{number}` are filled in.
        host: what their host names begin with.
        group: theirs; None where it is their owner's team.
        desktop: it shows the client to its owner.
        owned: a person logs in on it; others were enrolled with a setup key.
        logs_in: the owner has ever done so.
        schedule: makes one, given chance and the hours from Greenwich.
        interrupted: by what the schedule is.
    """

    called: str
    host: str
    systems: tuple[System, ...]
    schedule: Callable[[Random, int], Schedule]
    interrupted: Event | None = None
    group: Group | None = None
    desktop: bool = False
    owned: bool = False
    logs_in: bool = True
    ephemeral: bool = False


LAPTOP = Kind(
    called="{owner}'s laptop",
    host="ws",
    systems=_LAPTOP_SYSTEMS,
    schedule=office_hours,
    desktop=True,
    owned=True,
)
SHELVED = replace(LAPTOP, called="{owner}'s old laptop", schedule=abandoned)
UNUSED = replace(SHELVED, called="{owner}'s new laptop", logs_in=False)
PHONE = Kind(
    called="{owner}’s phone",
    host="mobile",
    systems=_PHONE_SYSTEMS,
    schedule=roaming,
    group=PHONES,
    owned=True,
)
SERVER = Kind(
    called="app-{place}-{number}",
    host="srv",
    systems=_SERVER_SYSTEMS,
    schedule=outages,
    interrupted=LINE_CUT,
    group=SERVERS,
)
BUILD = replace(SERVER, interrupted=None, owned=True)
SCRAPPED = replace(SERVER, called="legacy-{place}-{number}", schedule=abandoned)
ROUTER = replace(
    SERVER,
    called="gw-{place}-{number}",
    host="edge",
    interrupted=GATEWAYS_UPDATE,
    group=ROUTERS,
)
LAB_ROUTER = replace(ROUTER, interrupted=LAB_UPDATE)
RUNNER = Kind(
    called="ci-runner-{number}",
    host="job",
    systems=_SERVER_SYSTEMS[:3],
    schedule=jobs,
    group=RUNNERS,
    ephemeral=True,
)

SHARES = (
    *([LAPTOP] * 50),
    *([SERVER] * 26),
    *([PHONE] * 13),
    *([RUNNER] * 4),
    *([SHELVED] * 3),
    *([UNUSED] * 2),
    *([SCRAPPED] * 2),
)
"""Of a hundred machines that are neither in the cast nor a branch office's routers."""

VERSIONS = (
    *(["0.77.1"] * 60),
    *(["0.77.0"] * 20),
    *(["0.74.2"] * 12),
    *(["0.60.7"] * 4),
    *(["0.59.13"] * 2),
    *("0.36.5", "development"),
)
"""Of a hundred clients."""
