"""One read of each resource, for `--check` and `--once`."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from api_exporter.netbird.resources import UP, Resource
from api_exporter.netbird.unknown import NOTHING_UNKNOWN, Unknown
from api_exporter.ports import UpstreamError
from api_exporter.refresh.network import AccountNetwork
from api_exporter.subjects.watch import FindingList
from api_exporter.telemetry.freshness import Freshness
from api_exporter.web.status import findings

log = Logger()

RETRY_SECONDS = 60.0
"""The number of seconds in which a failed request may be retried."""


_JOIN_PASSES = 2
"""How often a list is read again: for ids in other lists, then for its own ids."""


class ResourceCheck(Struct, frozen=True, kw_only=True):
    """The result of reading one resource.

    Attributes:
        error: None after a success, or if no request was possible.
        records: the number of valid records; None if the resource was not read.
        record_errors: the places and errors of the first invalid records.
        restricted: True if it is withheld: the token's user may not read all of it.
        held_back: True if it was not requested, because NetBird refused the token or
            many other paths; see Note [Not a scanner].
    """

    resource: Resource[Any]
    seconds: float = 0.0
    error: UpstreamError | None = None
    records: int | None = None
    rejected: int = 0
    record_errors: tuple[str, ...] = ()
    unknown: Unknown = NOTHING_UNKNOWN
    restricted: bool = False
    held_back: bool = False

    @property
    def outcome(self) -> str:
        if self.error is not None:
            return self.error.reason
        if self.held_back:
            return "held_back"
        if self.restricted:
            return "restricted"
        return "skipped" if self.records is None else "ok"

    @property
    def has_failed(self) -> bool:
        """True if its request failed, but NetBird neither refuses nor lacks it."""
        error, resource = self.error, self.resource
        return error is not None and not (
            resource.refused(error) or resource.absent(error)
        )

    def freshness(self, now: float) -> Freshness:
        """Return the state of the resource for the status page."""
        freshness = Freshness(
            period=self.resource.period, ended_at=now, rejected=self.rejected
        )
        if self.restricted:
            return replace(freshness, supported=False, restricted=True)
        if self.held_back:
            return replace(freshness, ended_at=None)
        if self.error is None:
            return replace(freshness, last_success=now, supported=True)
        if self.has_failed:
            return replace(freshness, error=self.error)
        return replace(freshness, supported=False)


async def read_resources(
    network: AccountNetwork, clock: IReactorTime
) -> AsyncIterator[ResourceCheck]:
    """Read each resource once, until the NetBird API limits the rate.

    A list that joins wait for is read again. A refused token is sent once.
    """
    is_token_refused = False
    for resource in network.selection.resources:
        if is_token_refused or network.is_held_back(resource):
            yield ResourceCheck(resource=resource, held_back=True)
            continue
        check = await _read(resource, network, clock)
        yield check
        if check.error is not None and check.error.reason == "rate_limited":
            return
        if resource.name == UP and check.error is not None:
            is_token_refused = check.error.reason == "auth"
    for _ in range(_JOIN_PASSES):
        for resource in network.selection.resources:
            if resource.name in network.inventory.joins.due:
                check = await _read(resource, network, clock)
                if check.error is not None and check.error.reason == "rate_limited":
                    return


async def _read(
    resource: Resource[Any], network: AccountNetwork, clock: IReactorTime
) -> ResourceCheck:
    path = network.pipeline.request_path(resource)
    if path is None:
        withheld = resource.name in network.inventory.withheld
        return ResourceCheck(resource=resource, restricted=withheld)
    began_at = clock.seconds()
    try:
        body = await network.pipeline.read(resource, path, RETRY_SECONDS)
        if network.pipeline.request_path(resource) != path:  # it has a new path now
            return await _read(resource, network, clock)
    except CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - an internal error is a row, too
        if not isinstance(error, UpstreamError):
            log.failure(
                "internal error while reading {resource}", resource=resource.name
            )
            error = UpstreamError("internal", "internal error, see the log")
        return ResourceCheck(
            resource=resource,
            seconds=clock.seconds() - began_at,
            error=error.without_traceback(),
        )
    return ResourceCheck(
        resource=resource,
        seconds=clock.seconds() - began_at,
        records=body.records,
        rejected=body.rejected,
        record_errors=body.errors,
        unknown=body.unknown,
    )


def evaluate(
    network: AccountNetwork, checks: list[ResourceCheck], now: float
) -> FindingList:
    """Return all findings.

    Args:
        checks: at least that of the peers.
    """
    inventory, resources = network.inventory, network.selection.resources
    freshness = {r.name: Freshness(period=r.period) for r in resources}
    freshness |= {check.resource.name: check.freshness(now) for check in checks}
    freshness = {n: f for n, f in freshness.items() if not inventory.dormant(n)}
    return network.attention.findings_of(network.inventory, freshness, now)


def attention_lines(found: FindingList, now: float, runbooks: str) -> Iterator[str]:
    """Yield what needs attention, in the words of the status page."""
    if not found.lines:
        yield f"needs attention: {findings.NO_PROBLEM}"
    else:
        yield "needs attention:"
    for finding in found.lines:
        yield findings.finding_line(finding, now)
    if any(finding.alert for finding in found.lines):
        yield f"what to do: see the section of the name in brackets in {runbooks}"
    if found.unknown:
        yield findings.unchecked_line(found)


def worst_status(found: FindingList, checks: list[ResourceCheck]) -> int:
    """Return 2 for a critical finding, 1 for a warning or unread resource, else 0."""
    if found.counts.get("critical"):
        return 2
    held_back = {check.resource.name for check in checks if check.held_back}
    is_unread = {*found.unknown} - held_back or any(c.has_failed for c in checks)
    return 1 if found.counts.get("warning") or is_unread else 0
