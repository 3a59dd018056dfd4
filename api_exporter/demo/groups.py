"""The groups: which there are. Their members are the fleet's business."""

from msgspec import Struct

from api_exporter.demo.wire import xid


class Group(Struct, frozen=True):
    """A group of machines and of network resources.

    Attributes:
        issued: where it comes from, "" on old rows.
        resources: ids of network resources and their types.
    """

    id: str
    name: str
    issued: str = "api"
    resources: tuple[tuple[str, str], ...] = ()


ALL = Group(xid("d2g", 0), "All")
SERVERS = Group(xid("d2g", 1), "servers", "api", ((xid("d2r", 1), "subnet"),))
ROUTERS = Group(xid("d2g", 2), "routers", "")
PHONES = Group(xid("d2g", 3), "phones")
RUNNERS = Group(xid("d2g", 4), "ci-runners")
ENGINEERING = Group(xid("d2g", 5), "engineering", "jwt")
RESEARCH = Group(
    xid("d2g", 6),
    "R&D <core>",
    "api",
    ((xid("d2r", 2), "domain"), (xid("d2r", 3), "host")),
)
SALES = Group(xid("d2g", 7), "Vertrieb für Übersee", "jwt")
OFFICES = tuple(
    Group(xid("d2g", 8 + number), name)
    for number, name in enumerate(("ber", "lys", "東京オフィス", 'los "south"'))
)
LEGACY_ENGINEERING = Group(xid("d2g", 12), "engineering", "integration")
DECOMMISSIONED = Group(xid("d2g", 13), "decommissioned")
SAAS = Group(xid("d2g", 14), "saas", "api", ((xid("d2r", 4), "domain"),))

TEAMS = (ENGINEERING, RESEARCH, SALES)

GROUPS = (
    ALL,
    SERVERS,
    ROUTERS,
    PHONES,
    RUNNERS,
    *TEAMS,
    *OFFICES,
    LEGACY_ENGINEERING,
    DECOMMISSIONED,
    SAAS,
)
