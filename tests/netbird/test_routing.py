"""Routing peers: single peers and members of groups, each counted once."""

import tracemalloc
from itertools import combinations, islice
from typing import TypeVar

from msgspec.structs import force_setattr
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.collectors.collector import Collector
from api_exporter.exposition.rendering import render_page
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import (
    MAX_GROUPS_PER_RECORD,
    Group,
    GroupId,
    Member,
    Peer,
)
from api_exporter.netbird.routing import routing_peers
from api_exporter.ports import UpstreamError
from api_exporter.subjects import networks, routes
from api_exporter.subjects.networks import Network, NetworkRouter
from api_exporter.subjects.policies import (
    Checks,
    Policy,
    PostureCheck,
    Rule,
    VersionCheck,
    outdated_peer_counts,
)
from api_exporter.subjects.routes import Route
from api_exporter.subjects.table import RESOURCE_BY_NAME
from tests.bodies import decoded
from tests.inventories import inventory_of


def router(peer: str = "", *groups: str) -> NetworkRouter:
    return NetworkRouter(id="r", peer=peer, peer_groups=groups or None)


class CountedId(str):
    """An id that counts how often it is looked up."""

    __slots__ = ()
    lookups = 0

    def __hash__(self) -> int:
        CountedId.lookups += 1
        return super().__hash__()


MANY = 500
_COUNTED = [CountedId(f"p{n}") for n in range(MANY)]
MachineOrMember = TypeVar("MachineOrMember", Peer, Member)


def counted(record: MachineOrMember, id_: CountedId) -> MachineOrMember:
    """Give a record an id that it would not accept."""
    force_setattr(record, "id", id_)
    return record


BIG = inventory_of(
    peers=tuple(counted(Peer(id="", version="0.1.0"), id_) for id_ in _COUNTED),
    groups=tuple(
        Group(id=f"g{g}", peers=tuple(counted(Member(), id_) for id_ in _COUNTED[g:]))
        for g in range(20)
    ),
)
NAMES = ("g0",) * MAX_GROUPS_PER_RECORD


class UnionsTests(SynchronousTestCase):
    """Many records that name different sets of the same large groups."""

    def setUp(self) -> None:
        CountedId.lookups = 0
        self.peers, self.groups = BIG.peers or (), BIG.groups or ()
        names = [group.id for group in self.groups]
        self.sets = list(islice(combinations(names, 4), 200))
        self.once = MANY + sum(len(group.peers or ()) for group in self.groups)

    def test_routes(self) -> None:
        """Members are looked up for each group, not for each route."""
        named = [(str(n), (router("", *some),)) for n, some in enumerate(self.sets)]
        self.assertEqual(500, routing_peers(BIG, named)["0"].peers)
        self.assertLess(CountedId.lookups, 8 * self.once)

    def test_checks(self) -> None:
        """Members are looked up for each group, not for each posture check."""
        uses, checks = [], []
        for n, some in enumerate(self.sets):
            sources = tuple(GroupId(id=id_) for id_ in some)
            rule = Rule(enabled=True, sources=sources)
            check = f"c{n}"
            minimum = VersionCheck(min_version="1.0.0")
            checks.append(
                PostureCheck(id=check, checks=Checks(nb_version_check=minimum))
            )
            uses.append(
                Policy(
                    id=check,
                    enabled=True,
                    rules=(rule,),
                    source_posture_checks=(check,),
                )
            )
        inventory = inventory_of(
            posture_checks=tuple(checks),
            policies=tuple(uses),
            groups=self.groups,
            peers=self.peers,
        )
        self.assertEqual(500, outdated_peer_counts(inventory)["c0"])
        self.assertLess(CountedId.lookups, 8 * self.once)


class HostileTests(SynchronousTestCase):
    """Records of some kilobytes that name a large group very often."""

    def test_pages(self) -> None:
        """One route, one router, or a network of routers with different groups."""
        route = Route(id="r", enabled=True, peer_groups=NAMES)
        for rows, records in (
            (routes.FAMILIES, {"routes": (route,)}),
            (networks.FAMILIES, routed(1)),
            (networks.FAMILIES, routed(100)),
        ):
            CountedId.lookups = 0
            known = replace_(BIG, **records)
            render_page(Collector("", rows, default=True).make_families(known))
            self.assertLess(CountedId.lookups, 20 * MANY * 20)

    def test_small_groups(self) -> None:
        """Many small groups take no memory for each peer of the account."""
        count = 20_000
        peers = tuple(Peer(id=f"p{n}") for n in range(count))
        groups = tuple(
            Group(id=f"g{n}", peers=(Member(id=f"p{n}"),)) for n in range(count)
        )
        routers = [(f"r{n}", (router("", f"g{n}"),)) for n in range(count)]
        known = inventory_of(peers=peers, groups=groups)
        tracemalloc.start()
        try:
            found_ = routing_peers(known, routers)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        self.assertEqual({1}, {behind_.peers for behind_ in found_.values()})
        self.assertLess(peak, 1200 * count)  # bits for each group: 2,500 and more

    def test_bound(self) -> None:
        """A record that names more groups than any network has is left out."""
        for resource in ("network_routers", "routes"):
            self.assertIn(resource, RESOURCE_BY_NAME)
            names = b'"g",' * MAX_GROUPS_PER_RECORD + b'"g"'
            body = b'[{"id":"a"},{"id":"b","peer_groups":[%b]}]' % names
            read = decoded(resource, body)
            self.assertEqual(1, read.rejected)
            self.assertIn("peer_groups is longer than", read.errors[0])
        side = b'{"id":"g"},' * MAX_GROUPS_PER_RECORD + b'{"id":"g"}'
        body = b'[{"id":"b","rules":[{"sources":[%b]}]}]' % side
        self.assertRaises(UpstreamError, decoded, "policies", body)


def routed(count: int) -> dict[str, object]:
    """Return a network with this many routers."""
    routers = tuple(
        NetworkRouter(id=f"r{n}", enabled=True, peer_groups=(*NAMES[n:], f"g{n % 20}"))
        for n in range(count)
    )
    network = Network(id="n", routers=tuple(r.id for r in routers), resources=("x",))
    return {"network_routers": routers, "networks": (network,)}


def replace_(inventory: Inventory, **records: object) -> Inventory:
    for name, found_ in records.items():
        inventory = inventory.replacing(name, found_)
    return inventory
