"""All subjects, each as soon as it is known."""

from collections.abc import Iterator

from api_exporter.collectors.drop_in import (
    dns,
    groups,
    networks,
    peers,
    policies,
    routes,
    setup_keys,
    users,
)
from api_exporter.collectors.once import Once
from api_exporter.exposition.text import Family, Metric
from api_exporter.netbird.inventory import Inventory

FAMILIES = tuple(
    metric
    for subject in (
        peers,
        groups,
        users,
        dns,
        networks,
        setup_keys,
        policies,
        routes,
    )
    for metric in vars(subject).values()
    if isinstance(metric, Metric)
)


def families(inventory: Inventory) -> Iterator[Family | None]:
    """In the order of the other program's documentation."""
    told = inventory.personal
    if inventory.peers is not None:
        detailed = Once((yield from inventory.detailed()))
        yield from peers.families(inventory.peers, detailed, told)
    if inventory.groups is not None:
        yield from groups.families(inventory.groups)
    if inventory.users is not None:
        yield from users.families(inventory.users, told)
    if inventory.nameservers is not None:
        yield from dns.families(inventory.nameservers)
    for settings in inventory.dns_settings or ():
        yield dns.disabled(settings)
    if inventory.networks is not None:
        yield from networks.families(inventory.networks)
    if inventory.setup_keys is not None:
        yield from setup_keys.families(inventory.setup_keys)
    if inventory.policies is not None:
        yield from policies.families(inventory.policies)
    if inventory.routes is not None:
        yield from routes.families(inventory.routes)
