"""What needs attention, as `--check` prints it: the lines of the status page."""

from collections.abc import Iterator

from msgspec.structs import replace

from api_exporter.attention.watch import Attention
from api_exporter.checking.survey import Finding
from api_exporter.telemetry.standing import Standing
from api_exporter.web.status import findings


def lines(
    found: list[Finding], attention: Attention, now: float, runbooks: str
) -> Iterator[str]:
    """Of one round; the last of it knows what all of them have found.

    Args:
        found: at least the one of the peers.
        now: seconds since the epoch.
        runbooks: where they are.
    """
    standings = {finding.resource.name: _standing(finding, now) for finding in found}
    attending = attention.of(found[-1].inventory, standings, now)
    if not attending.findings:
        yield f"needs attention: {findings.QUIET}"
    else:
        yield "needs attention:"
    for finding in attending.findings:
        yield findings.line(finding, now, runbooks)
    if attending.more:
        yield findings.more(attending)
    if attending.unknown:
        yield findings.missing(attending)


def _standing(finding: Finding, now: float) -> Standing:
    error = finding.error
    resource = finding.resource
    known = Standing(period=resource.period, ended=now, rejected=finding.rejected)
    if error is None:
        return replace(known, last_success=now, supported=True)
    if resource.refused(error) or resource.absent(error):
        return replace(known, supported=False)
    return replace(known, error=error)
