"""A reference for the families that join lists: from raw JSON, plain and slow.

It is written from the contract alone and does not use the package. So both share an
error only if the contract has it.
"""

from collections.abc import Callable, Mapping

from tests.reference import agents, joins
from tests.reference.bodies import known
from tests.reference.fields import Known
from tests.reference.page import Page, Settings

COLLECTORS: Mapping[str, Callable[[Page, Known, Settings], None]] = {
    "peers": joins.peers,
    "users": joins.users,
    "groups": joins.groups,
    "policies": joins.policies,
    "networks": joins.networks,
    "routes": joins.routes,
    "agent_network": agents.agent_network,
}
"""A function for each collector with such families."""


def reference(parsed: Mapping[str, object], settings: Settings) -> Page:
    """Return the expected samples.

    Args:
        parsed: `json.loads` of each resource's body; a missing resource is unknown.
    """
    records = known(parsed)
    page = Page()
    for collector in COLLECTORS.values():
        collector(page, records, settings)
    return page
