"""Networks, with what their lists hold, whether or not it exists."""

from collections.abc import Iterator

from api_exporter.exposition.text import Family, Labels, Metric, labels, single
from api_exporter.netbird.records import Network

NETWORKS = Metric(
    name="netbird_networks",
    help="Number of networks.",
    source="networks[]",
)
ROUTERS = Metric(
    name="netbird_network_routers_count",
    help="Number of the network's routers.",
    source="networks[].routers",
)
RESOURCES = Metric(
    name="netbird_network_resources_count",
    help="Number of the network's resources.",
    source="networks[].resources",
)
POLICIES = Metric(
    name="netbird_network_policies_count",
    help="Number of policies that give access to the network.",
    source="networks[].policies",
)
ROUTING_PEERS = Metric(
    name="netbird_network_routing_peers_count",
    help="Number of the network's routing peers, as the upstream counts them.",
    source="networks[].routing_peers_count",
)
INFO = Metric(
    name="netbird_network_info",
    help="Properties of a network. Always 1.",
    source="networks[]",
)


def families(networks: tuple[Network, ...]) -> Iterator[Family]:
    yield single(NETWORKS, len(networks))
    yield Family(ROUTERS, ((_labels(n), len(n.routers or ())) for n in networks))
    yield Family(RESOURCES, ((_labels(n), len(n.resources or ())) for n in networks))
    yield Family(POLICIES, ((_labels(n), len(n.policies or ())) for n in networks))
    yield Family(ROUTING_PEERS, ((_labels(n), n.routing_peers_count) for n in networks))
    yield Family(
        INFO,
        (
            (
                labels(
                    network_id=network.id,
                    network_name=network.name,
                    description=network.description,
                ),
                1,
            )
            for network in networks
        ),
    )


def _labels(network: Network) -> Labels:
    return labels(network_id=network.id, network_name=network.name)
