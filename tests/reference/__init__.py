"""A reference implementation: every family from raw JSON, plain and slow.

It is written from the contract alone and does not use the package. So both share an
error only if the contract has it. A subject's module has a function of its own name and
RECORDS, the fields of its records.
"""

from collections.abc import Callable, Mapping

from tests.reference.bodies import known
from tests.reference.fields import Known
from tests.reference.page import Page, Settings
from tests.reference.subjects import MODULES

COLLECTORS: tuple[Callable[[Page, Known, Settings], None], ...] = tuple(
    getattr(module, name) for name, module in MODULES.items()
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
