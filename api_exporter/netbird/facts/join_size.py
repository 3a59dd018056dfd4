"""The bound on joins that go through another list.

A network names routers, and routers name groups. So a few lists of moderate length may
name very many groups. `references.check_named_ids` bounds those of a single list.
"""

from api_exporter.netbird.facts.policies import count_groups_through_policies
from api_exporter.netbird.facts.routing import count_groups_through_routers
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.references import MAX_NAMED_IDS
from api_exporter.ports import UpstreamError


def check_joins(inventory: Inventory, changed: str) -> None:
    """Raise UpstreamError if joins of a changed list look up too many names."""
    if changed in {"networks", "network_routers"}:
        total = count_groups_through_routers(inventory)
        _check("networks name {} groups through their routers", total)
    if changed in {"posture_checks", "policies"}:
        total = count_groups_through_policies(inventory)
        _check("posture checks have {} source groups through their policies", total)


def _check(what: str, total: int) -> None:
    if total > MAX_NAMED_IDS:
        raise UpstreamError(
            "too_large", f"the {what.format(total)}; the maximum is {MAX_NAMED_IDS}"
        )
