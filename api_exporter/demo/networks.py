"""Networks with their routers and resources.

The headquarters have two connected routers, the laboratory has lost one of two, the
depot both; one network is empty. Each branch office has two, hardly ever offline. The
previews of what is being built are reached through whichever runners there are.
"""

from collections.abc import Iterator

from api_exporter.demo.company import branches
from api_exporter.demo.go_json import xid
from api_exporter.demo.peers import peer_id
from api_exporter.demo.resource import Moment, Record, Template


def networks(moment: Moment, template: Template) -> Iterator[Record]:
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
