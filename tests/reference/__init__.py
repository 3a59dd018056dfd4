"""A reference implementation: every family from raw JSON, plain and slow.

It is written from the contract alone and does not use the package. So both share an
error only if the contract has it. A new collector needs a function here and an entry in
COLLECTORS; a new field of a record is listed in `shapes.py`.
"""

from collections.abc import Callable, Mapping

from tests.reference.account import account
from tests.reference.agent_network import agent_network
from tests.reference.bodies import Known, known
from tests.reference.dns import dns
from tests.reference.events import events
from tests.reference.groups import groups, memberships
from tests.reference.networks import networks, routes
from tests.reference.page import Page, Settings
from tests.reference.peers import peers
from tests.reference.policies import policies
from tests.reference.reverse_proxy import reverse_proxy
from tests.reference.setup_keys import setup_keys
from tests.reference.users import users

COLLECTORS: tuple[Callable[[Page, Known, Settings], None], ...] = (
    peers,
    groups,
    users,
    setup_keys,
    networks,
    routes,
    policies,
    dns,
    account,
    reverse_proxy,
    agent_network,
    memberships,
    events,
)


def reference(parsed: Mapping[str, object], settings: Settings) -> Page:
    """Return the expected page.

    Args:
        parsed: `json.loads` of each resource's body; a missing resource is unknown.
    """
    records = known(parsed)
    page = Page()
    for collector in COLLECTORS:
        collector(page, records, settings)
    return page
