"""The company's whole network: what its API has to say on each path at any instant.

A resource is a template, which has its records' fields, and a function, where something
varies. Many machines make their two resources themselves, for speed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace

from api_exporter.demo.go_json import Record, array, encode
from api_exporter.netbird.bodies import Document
from api_exporter.netbird.resources import RESOURCES
from simulation.company import agents, records
from simulation.company.fleet import SimulatedFleet
from simulation.company.people import EXPORTER_ID
from simulation.company.resource import Moment, Template

Content = Callable[[Moment, Template], Iterable[Record] | Record]
"""A resource's records at an instant, or its one object."""


def _records(_moment: Moment, template: Template) -> list[Record]:
    return template.records


def _document(_moment: Moment, template: Template) -> Record:
    return template.template


_CONTENTS: Mapping[str, Content] = {
    "accounts": records.accounts,
    "agent_consumption": agents.consumption,
    "agent_denials": agents.denials,
    "agent_guardrails": agents.guardrails,
    "agent_providers": agents.providers,
    "agent_settings": agents.settings,
    "agent_usage": agents.usage,
    "events": records.events,
    "networks": records.networks,
    "network_resources": records.resources,
    "network_routers": records.routers,
    "proxy_clusters": records.clusters,
    "proxy_tokens": records.tokens,
    "proxy_services": records.services,
    "setup_keys": records.setup_keys,
    "user_invites": agents.invites,
    "users": records.users,
    "access_tokens": records.access_tokens,
}
"""Of resources where something varies; all others are their templates."""

PEERS = "/api/peers"
GROUPS = "/api/groups"

_RESOURCES: Mapping[str, tuple[str, Content]] = {
    f"/{resource.path.format(current_user=EXPORTER_ID)}": (
        resource.name,
        _CONTENTS.get(
            resource.name,
            _document if isinstance(resource.body, Document) else _records,
        ),
    )
    for resource in RESOURCES
}

PATHS = tuple(_RESOURCES)


class SimulatedNetwork:
    """A simulated company: a function of how many machines, the seed and the instant.

    Of `peers` machines about 4 % are ephemeral, and some of those are away at any
    instant. What has to hold at every instant, such as a router that is lost, takes 15.
    """

    def __init__(self, peers: int, seed: int = 0) -> None:
        self._fleet = SimulatedFleet(peers, seed)

    def body(self, path: str, at: float) -> Iterator[bytes] | None:
        """A path's JSON in pieces, or None where there is no such path.

        `at` is in seconds since the epoch. A query may follow the path.
        """
        path, _, query = path.partition("?")
        if path not in PATHS:
            return None
        return self._pieces(path, replace(self._fleet.moment(at), query=query))

    def _pieces(self, path: str, moment: Moment) -> Iterator[bytes]:
        if path == PEERS:
            yield from self._fleet.peers(moment)
        elif path == GROUPS:
            yield from self._fleet.groups(moment)
        else:
            name, content = _RESOURCES[path]
            found = content(moment, moment.load(name))
            if isinstance(found, dict):
                yield encode(found)
            else:
                yield from array(map(encode, found))
        yield b"\n"
