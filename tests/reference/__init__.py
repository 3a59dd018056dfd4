"""A second opinion: every family from raw JSON, plain and slow.

Written from the contract alone. Nothing here uses the package, so that both are wrong
in one way only where the contract is. A new collector is a function here, and a line in
COLLECTORS; a new field of a record stands in `shapes.py`.
"""

from collections.abc import Callable, Mapping

from tests.reference.account import account
from tests.reference.agent_network import agent_network
from tests.reference.bodies import Known, known
from tests.reference.dns import dns
from tests.reference.events import events
from tests.reference.groups import groups
from tests.reference.memberships import memberships
from tests.reference.networks import networks
from tests.reference.page import Page, Settings
from tests.reference.peers import peers
from tests.reference.policies import policies
from tests.reference.reverse_proxy import reverse_proxy
from tests.reference.routes import routes
from tests.reference.setup_keys import setup_keys
from tests.reference.users import users

COLLECTORS: tuple[Callable[[Known, Settings], Page], ...] = (
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
    """What the page should hold.

    Args:
        parsed: `json.loads` of each resource's body; without one it is not known.
    """
    records = known(parsed)
    page = Page()
    for collector in COLLECTORS:
        page |= collector(records, settings)
    return page
