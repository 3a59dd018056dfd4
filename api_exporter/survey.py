"""One round through all resources, in front of somebody: `--check` and `--once`."""

from msgspec import Struct
from twisted.internet.interfaces import IReactorTime

from api_exporter.inventory import Inventory
from api_exporter.ports import Fetch, UpstreamError
from api_exporter.resources import Resource
from api_exporter.slices import Slicer


class Finding(Struct, frozen=True, kw_only=True):
    """How it went with one resource.

    Attributes:
        error: None where it went well, or where nothing could be asked.
        records: how many could be read, None for none at all.
        rejected: how many could not be.
        complaints: the places of the first ones of them, and what was wrong.
        inventory: what is known after it.
    """

    resource: Resource
    inventory: Inventory
    seconds: float = 0.0
    error: UpstreamError | None = None
    records: int | None = None
    rejected: int = 0
    complaints: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """In a word."""
        if self.error is not None:
            return self.error.reason
        return "not asked" if self.records is None else "ok"


async def visit(
    resource: Resource, inventory: Inventory, *, fetch: Fetch, clock: IReactorTime
) -> Finding:
    """Read a resource once."""
    path = resource.located(inventory)
    if path is None:
        return Finding(resource=resource, inventory=inventory)
    begin = clock.seconds()
    try:
        body = await fetch(path)
        decoded = await Slicer(clock).run(resource.body.decode(body))
    except UpstreamError as error:
        return Finding(
            resource=resource,
            inventory=inventory,
            seconds=clock.seconds() - begin,
            error=error,
        )
    return Finding(
        resource=resource,
        inventory=inventory.with_(resource.name, decoded.records),
        seconds=clock.seconds() - begin,
        records=len(decoded.records),
        rejected=decoded.rejected,
        complaints=decoded.complaints,
    )


def row(finding: Finding) -> str:
    """A line of the table: path, outcome, records, milliseconds."""
    records = "" if finding.records is None else str(finding.records)
    time = f"{1000 * finding.seconds:.0f}"
    return _ROW.format(finding.resource.path, finding.outcome, records, time).rstrip()


_ROW = "{:<34}  {:<12}  {:>7}  {:>7}"

HEADER = _ROW.format("path", "outcome", "records", "ms")
