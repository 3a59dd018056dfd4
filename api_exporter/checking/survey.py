"""Every resource once, in front of somebody: `--check` and `--once`."""

from collections.abc import AsyncIterator, Iterator

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from api_exporter.attention.watch import FindingList
from api_exporter.netbird.resources import Resource
from api_exporter.ports import UpstreamError
from api_exporter.refresh.network import Network
from api_exporter.telemetry.freshness import Freshness
from api_exporter.web.status import findings

log = Logger()

PATIENCE = 60.0
"""Seconds after which somebody who waits wants no further attempt."""


_AGAIN = 2
"""Times that a list is read again: for a list that names it, and for its own ids."""


class ResourceCheck(Struct, frozen=True, kw_only=True):
    """How it went with one resource.

    Attributes:
        error: None where it went well, or where nothing could be asked.
        records: how many could be read, None for none at all.
        rejected: how many could not be.
        complaints: the places of the first ones of them, and what was wrong.
        restricted: whether it is withheld: the token's user may not read all of it.
    """

    resource: Resource
    seconds: float = 0.0
    error: UpstreamError | None = None
    records: int | None = None
    rejected: int = 0
    complaints: tuple[str, ...] = ()
    restricted: bool = False

    @property
    def outcome(self) -> str:
        if self.error is not None:
            return self.error.reason
        if self.restricted:
            return "restricted"
        return "skipped" if self.records is None else "ok"

    def standing(self, now: float) -> Freshness:
        """The state of the resource, as the status page knows it."""
        standing = Freshness(
            period=self.resource.period, ended=now, rejected=self.rejected
        )
        if self.restricted:
            return replace(standing, supported=False, restricted=True)
        if self.error is None:
            return replace(standing, last_success=now, supported=True)
        if self.resource.refused(self.error) or self.resource.absent(self.error):
            return replace(standing, supported=False)
        return replace(standing, error=self.error)


async def survey(network: Network, clock: IReactorTime) -> AsyncIterator[ResourceCheck]:
    """Read each resource once, until the upstream asks for a pause.

    A list that joins wait for is read again.
    """
    for resource in network.selection.resources:
        check = await _read(resource, network, clock)
        yield check
        if check.error is not None and check.error.reason == "rate_limited":
            return
    for _ in range(_AGAIN):
        for resource in network.selection.resources:
            if resource.name in network.inventory.joins.due:
                again = await _read(resource, network, clock)
                if again.error is not None and again.error.reason == "rate_limited":
                    return


async def _read(
    resource: Resource, network: Network, clock: IReactorTime
) -> ResourceCheck:
    path = network.pipeline.located(resource)
    if path is None:
        withheld = resource.name in network.inventory.withheld
        return ResourceCheck(resource=resource, restricted=withheld)
    begin = clock.seconds()
    try:
        body = await network.pipeline.read(resource, path, PATIENCE)
        if network.pipeline.located(resource) != path:  # there is more to ask for
            return await _read(resource, network, clock)
    except CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - a defect of ours is a row, too
        if not isinstance(error, UpstreamError):
            log.failure(
                "internal error while reading {resource}", resource=resource.name
            )
            error = UpstreamError("internal", f"internal error: {type(error).__name__}")
        return ResourceCheck(
            resource=resource, seconds=clock.seconds() - begin, error=error.kept()
        )
    return ResourceCheck(
        resource=resource,
        seconds=clock.seconds() - begin,
        records=body.records,
        rejected=body.rejected,
        complaints=body.complaints,
    )


def found(network: Network, checks: list[ResourceCheck], now: float) -> FindingList:
    """All findings.

    Args:
        checks: at least the one of the peers.
        now: seconds since the epoch.
    """
    freshness = {check.resource.name: check.standing(now) for check in checks}
    return network.attention.of(network.inventory, freshness, now)


def attention_lines(found: FindingList, now: float, runbooks: str) -> Iterator[str]:
    """What needs attention, in the words of the status page.

    Args:
        now: seconds since the epoch.
        runbooks: where they are.
    """
    if not found.findings:
        yield f"needs attention: {findings.QUIET}"
    else:
        yield "needs attention:"
    for finding in found.findings:
        yield findings.line(finding, now)
    if any(finding.alert for finding in found.findings):
        yield f"what to do: see the section of the name in brackets in {runbooks}"
    if found.unknown:
        yield findings.unknown(found)


def severity(found: FindingList) -> int:
    """1 for a warning or a resource that could not be read, 2 for a critical finding,
    else 0.
    """
    if found.counts.get("critical"):
        return 2
    return 1 if found.counts.get("warning") or found.unknown else 0
