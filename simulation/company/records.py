"""Records of the company's resources that vary with the time.

A function returns a resource's records, given the time and the template. Times are
periodic, because some facts must hold at every time. Examples: a token expires in about
two months, and a person logged in within the last day.
"""

from collections.abc import Iterable, Iterator

from api_exporter.demo.go_json import Record, rfc3339, xid
from simulation.company.company import branches
from simulation.company.incidents import (
    CONTRACTOR,
    NARROW_RANGE,
    NO_CERTIFICATE,
    NO_TUNNEL,
    OPEN,
    OWN_PROXY_DOWN,
    SETTINGS_LOST,
)
from simulation.company.machines import peer_id
from simulation.company.people import MACHINES_EACH, person
from simulation.company.resource import Moment, Template
from simulation.company.schedules import DAY, FOUNDED, HOUR, MINUTE, MONDAY, WEEK


def accounts(moment: Moment, template: Template) -> Iterable[Record]:
    """Return the account, whose address range NetBird chose for that many machines."""
    narrow = 32 - (moment.machines + 1).bit_length()
    prefix = narrow if NARROW_RANGE.is_active(moment.at) else min(16, narrow - 2)
    [account] = template.records
    account["settings"]["network_range"] = f"100.64.0.0/{prefix}"
    if SETTINGS_LOST.is_active(moment.at):
        account["settings"]["lazy_connection_enabled"] = False
        account["settings"]["groups_propagation_enabled"] = False
    return [account]


def setup_keys(moment: Moment, template: Template) -> Iterable[Record]:
    runners, unlimited, daily, *_, guests = template.records
    renewed, started = moment.latest(WEEK), moment.latest(7 * MINUTE)
    runners["expires"] = rfc3339(renewed + WEEK + DAY // 2, ".500112")
    runners["last_used"] = rfc3339(started, ".10021")
    runners["updated_at"] = rfc3339(renewed, ".500112")
    runners["used_times"] = (started - FOUNDED) // (7 * MINUTE)
    unlimited["last_used"] = rfc3339(moment.latest(5 * HOUR))
    daily["last_used"] = rfc3339(moment.latest(DAY))
    daily["used_times"] = 2 + int(moment.at - moment.latest(WEEK, MONDAY)) // DAY
    emptied = moment.latest(50 * MINUTE)
    uses = min(5, int(moment.at - emptied) // (8 * MINUTE))
    guests["last_used"] = rfc3339(emptied + uses * 8 * MINUTE)
    guests["used_times"] = uses
    guests["valid"] = uses < 5
    guests["state"] = "valid" if uses < 5 else "overused"
    return template.records


def users(moment: Moment, template: Template) -> Iterator[Record]:
    """Yield officers and service users first, then people with machines."""
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
    """Return the exporter's token, a forgotten one, and sometimes a contractor's. The
    exporter's token is renewed monthly, long before it expires. The contractor's was
    made 30 days before its first use.
    """
    own, forgotten, contractor = template.records
    renewed = moment.latest(30 * DAY)
    own["created_at"] = rfc3339(renewed, ".123456")
    own["expiration_date"] = rfc3339(renewed + 75 * DAY, ".123456")
    own["last_used"] = rfc3339(moment.latest(MINUTE // 2), ".000317")
    created = moment.latest(300 * DAY)
    forgotten["created_at"] = rfc3339(created)
    forgotten["expiration_date"] = rfc3339(created + 365 * DAY)
    if not CONTRACTOR.is_active(moment.at):
        return own, forgotten
    begun = CONTRACTOR.start(moment.at)
    contractor["created_at"] = rfc3339(begun - 30 * DAY)
    contractor["expiration_date"] = rfc3339(begun + 3 * DAY + 2 * HOUR)
    contractor["last_used"] = rfc3339(moment.latest(HOUR))
    return template.records


def networks(moment: Moment, template: Template) -> Iterator[Record]:
    """Yield the networks. The headquarters have two connected routers. The laboratory
    has lost one of two routers, the depot both. One network is empty. Each branch
    office has two, which are hardly ever offline. Every runner routes to the preview
    network.
    """
    known = {router["id"]: router for router in moment.load("network_routers").records}
    for network in template.records:
        network["routing_peers_count"] = sum(
            1 if known[id_]["peer"] else moment.members[known[id_]["peer_groups"][0]]
            for id_ in network["routers"]
        )
        yield network
    for number, _ in enumerate(branches(moment.machines)):
        yield template.record(
            id=xid("d2n", 100 + number),
            name=f"branch {number}",
            resources=[xid("d2r", 100 + number)],
            routers=[_router(number, 0), _router(number, 1)],
            routing_peers_count=2,
        )


def routers(moment: Moment, template: Template) -> Iterator[Record]:
    yield from template.records
    for number, first in enumerate(branches(moment.machines)):
        yield template.record(id=_router(number, 0), peer=peer_id(first))
        yield template.record(id=_router(number, 1), peer=peer_id(first + 1))


def resources(moment: Moment, template: Template) -> Iterator[Record]:
    yield from template.records
    for number, _ in enumerate(branches(moment.machines)):
        yield template.record(
            address=f"10.{64 + number // 256}.{number % 256}.0/24",
            id=xid("d2r", 100 + number),
            name=f"branch-lan-{number}",
        )


def _router(branch: int, place: int) -> str:
    return xid("d2q", 100 + 2 * branch + place)


def services(moment: Moment, template: Template) -> Iterable[Record]:
    wiki = template.records[1]
    issued = rfc3339(moment.latest(60 * DAY))
    active = {"status": "active", "certificate_issued_at": issued}
    failed = {"status": "certificate_failed"}
    cut, pending = {"status": "tunnel_not_created"}, {"status": "certificate_pending"}
    shop = failed if NO_CERTIFICATE.is_active(moment.at) else active
    new = cut if NO_TUNNEL.is_active(moment.at) else pending
    states = (active, active, shop, new, cut, active)
    for service, state in zip(template.records, states, strict=True):
        service["meta"] = service["meta"] | state
    if OPEN.is_active(moment.at):
        wiki["auth"] = {}
    return template.records


def clusters(moment: Moment, template: Template) -> Iterable[Record]:
    """Return the clusters. One of two proxies of a cluster is updated every hour; a
    single proxy restarts. A cluster's id is that of one of its proxies, which changes
    at each start.
    """
    shared, own, lab = template.records
    updated = moment.latest(HOUR)
    shared["id"] = xid("d2x", updated)
    shared["connected_proxies"] = 1 if moment.at - updated < 5 * MINUTE else 2
    own["online"] = not OWN_PROXY_DOWN.is_active(moment.at)
    restarted = moment.latest(50 * MINUTE, 10 * MINUTE)
    lab["id"] = xid("d2x", restarted + 1)
    lab["online"] = moment.at - restarted >= 5 * MINUTE
    for cluster in own, lab:
        cluster["connected_proxies"] = int(cluster["online"])
    return template.records


def tokens(moment: Moment, template: Template) -> Iterable[Record]:
    """Return the tokens. Each week the proxy gets one that is 30 days old and valid
    for 20 more.
    """
    edge, _, leaked = template.records
    weekly, renewed = moment.latest(WEEK), moment.latest(90 * DAY)
    edge["created_at"] = rfc3339(weekly - 30 * DAY)
    edge["expires_at"] = rfc3339(weekly + 20 * DAY)
    edge["last_used"] = rfc3339(moment.latest(MINUTE))
    leaked["created_at"] = rfc3339(renewed)
    leaked["expires_at"] = rfc3339(renewed + 100 * DAY)
    return template.records


_MAX_EVENTS = 10_000
"""The number of newest events that NetBird lists."""

_EVENT_SECONDS = 10 * MINUTE


def events(moment: Moment, template: Template) -> Iterator[Record]:
    """Yield events, newest first. The template has one record of each kind of event."""
    kinds, machines = template.records, max(moment.machines, 1)
    past = int((moment.at - FOUNDED) // _EVENT_SECONDS)
    for number in range(past, max(past - _MAX_EVENTS, 0), -1):
        # Squared, so that neither kinds nor targets come in turn.
        kind = kinds[number * number // 7 % len(kinds)]
        target = number * number // 3 % machines
        initiator = person(target // MACHINES_EACH)
        yield kind | {
            "id": str(number),
            "initiator_email": initiator.email,
            "initiator_id": initiator.id,
            "initiator_name": f"{initiator.first} {initiator.last}",
            "meta": kind["meta"]
            | {
                "fqdn": f"{target}.netbird.demo",
                "ip": f"100.64.{target >> 8 & 255}.{target & 255}",
                "name": f"{initiator.first}'s machine",
            },
            "target_id": peer_id(target),
            "timestamp": rfc3339(FOUNDED + number * _EVENT_SECONDS, ".001002003"),
        }
