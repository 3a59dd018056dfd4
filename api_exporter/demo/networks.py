"""Networks with their routers and resources.

The headquarters have two connected routers, the laboratory has lost one of two, the
depot both; one network is empty. Each branch office has two, hardly ever offline. The
previews of what is being built are reached through whichever runners there are.
"""

from collections.abc import Iterator

from msgspec import Struct

from api_exporter.demo.cast import (
    DEPOT_ROUTERS,
    HQ_ROUTERS,
    LAB_ROUTERS,
    branches,
)
from api_exporter.demo.groups import GROUPS, ROUTERS, RUNNERS, Group
from api_exporter.demo.moment import Moment
from api_exporter.demo.peers import peer_id
from api_exporter.demo.policies import TO_PRINTER, TO_SERVERS
from api_exporter.demo.wire import xid


class _Resource(Struct, frozen=True):
    """What is reached through a network."""

    id: str
    name: str
    type: str
    address: str
    enabled: bool = True


class _Router(Struct, frozen=True):
    """A machine that leads into a network; None stands for those of a group."""

    id: str
    machine: int | None
    enabled: bool = True
    group: Group = ROUTERS

    def peers(self, moment: Moment) -> int:
        """How many they are."""
        return moment.members[self.group.id] if self.machine is None else 1


class _Network(Struct, frozen=True):
    """Resources behind routers."""

    id: str
    name: str
    description: str
    routers: tuple[_Router, ...] = ()
    resources: tuple[_Resource, ...] = ()
    policies: tuple[str, ...] = ()


def _pair(number: int, machines: tuple[int, int]) -> tuple[_Router, _Router]:
    first, second = machines
    return _Router(xid("d2q", number), first), _Router(xid("d2q", number + 1), second)


_NETWORKS = (
    _Network(
        xid("d2n", 1),
        "hq",
        "HQ LAN & lab",
        (*_pair(1, HQ_ROUTERS), _Router(xid("d2q", 9), None, enabled=False)),
        (
            _Resource(xid("d2r", 1), "hq-lan", "subnet", "10.20.0.0/16"),
            _Resource(xid("d2r", 3), "printer", "host", "10.20.1.5/32"),
        ),
        (TO_SERVERS, TO_PRINTER),
    ),
    _Network(
        xid("d2n", 2),
        "lab",
        "has lost a router",
        _pair(3, LAB_ROUTERS),
        (
            _Resource(xid("d2r", 2), "*.lab", "domain", "*.lab.example.com"),
            _Resource(xid("d2r", 5), "attic", "subnet", "10.31.0.0/24", enabled=False),
        ),
    ),
    _Network(
        xid("d2n", 3),
        "depot",
        "",
        _pair(5, DEPOT_ROUTERS),
        (_Resource(xid("d2r", 6), "depot-lan", "subnet", "10.40.0.0/24"),),
    ),
    _Network(
        xid("d2n", 4),
        "saas",
        "through whichever router is nearest",
        (_Router(xid("d2q", 7), None),),
        (_Resource(xid("d2r", 4), "crm", "domain", "crm.example.com"),),
    ),
    _Network(xid("d2n", 5), "empty network", ""),
    _Network(
        xid("d2n", 6),
        "previews",
        "through the runners that build them",
        (_Router(xid("d2q", 10), None, group=RUNNERS),),
        (_Resource(xid("d2r", 7), "preview", "domain", "*.preview.example.com"),),
    ),
)


def networks(moment: Moment) -> Iterator[object]:
    for network in _all(moment):
        yield {
            "description": network.description,
            "id": network.id,
            "name": network.name,
            "policies": network.policies,
            "resources": [resource.id for resource in network.resources] or None,
            "routers": [router.id for router in network.routers],
            "routing_peers_count": sum(r.peers(moment) for r in network.routers),
        }


def routers(moment: Moment) -> Iterator[object]:
    for network in _all(moment):
        for router in network.routers:
            alone = router.machine is not None
            yield {
                "enabled": router.enabled,
                "id": router.id,
                "masquerade": True,
                "metric": 100 if alone else 9999,
                "peer": "" if router.machine is None else peer_id(router.machine),
                "peer_groups": None if alone else [router.group.id],
            }


def resources(moment: Moment) -> Iterator[object]:
    for network in _all(moment):
        for resource in network.resources:
            groups = [g for g in GROUPS if (resource.id, resource.type) in g.resources]
            yield {
                "address": resource.address,
                "description": "",
                "enabled": resource.enabled,
                "groups": [moment.in_short(group) for group in groups] or None,
                "id": resource.id,
                "name": resource.name,
                "type": resource.type,
            }


def _all(moment: Moment) -> Iterator[_Network]:
    yield from _NETWORKS
    for number, pair in enumerate(branches(moment.machines)):
        yield _Network(
            xid("d2n", 100 + number),
            f"branch {number}",
            "",
            _pair(100 + 2 * number, pair),
            (
                _Resource(
                    xid("d2r", 100 + number),
                    f"branch-lan-{number}",
                    "subnet",
                    f"10.{64 + number // 256}.{number % 256}.0/24",
                ),
            ),
        )
