"""The older network routes: an exit node and its substitute, domains behind all
routers, one disabled.
"""

from collections.abc import Iterator

from api_exporter.demo.cast import EXIT_NODE, HQ_ROUTERS, LOST_ROUTER
from api_exporter.demo.groups import ALL, RESEARCH, ROUTERS
from api_exporter.demo.moment import Moment
from api_exporter.demo.peers import peer_id
from api_exporter.demo.wire import xid


def routes(_moment: Moment) -> Iterator[object]:
    yield _route(
        1,
        description="exit node",
        network="0.0.0.0/0",
        network_id="exit-de",
        peer=peer_id(EXIT_NODE),
        skip_auto_apply=True,
    )
    yield _route(
        2,
        access_control_groups=[RESEARCH.id],
        domains=["example.com", "bücher.example"],
        keep_route=True,
        network="192.0.2.0/32",
        network_id="dyn",
        network_type="Domain",
        peer_groups=[ROUTERS.id],
    )
    yield _route(
        3,
        description="backup path",
        enabled=False,
        masquerade=False,
        metric=100,
        network="2001:db8:10::/64",
        network_id="exit-de",
        network_type="IPv6",
        peer=peer_id(LOST_ROUTER),
    )
    yield _route(
        4,
        description="the exit node's substitute",
        network="0.0.0.0/0",
        network_id="exit-de",
        peer=peer_id(HQ_ROUTERS[1]),
        skip_auto_apply=True,
    )


def _route(number: int, **fields: object) -> dict[str, object]:
    return {
        "description": "",
        "domains": None,
        "enabled": True,
        "groups": [ALL.id],
        "id": xid("d2u", number),
        "keep_route": False,
        "masquerade": True,
        "metric": 9999,
        "network_type": "IPv4",
        "peer": "",
        "skip_auto_apply": False,
        **fields,
    }
