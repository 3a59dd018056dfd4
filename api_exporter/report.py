"""`--check` and `--once`: what one round found, printed."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable

from twisted.internet.defer import maybeDeferred
from twisted.internet.posixbase import PosixReactorBase
from twisted.logger import globalLogBeginner

from api_exporter import logs, service, start
from api_exporter.advice import PARTIAL, advice
from api_exporter.exposition import render
from api_exporter.inventory import Inventory
from api_exporter.options import Options
from api_exporter.ports import UpstreamError
from api_exporter.resources import UP
from api_exporter.selection import Selection, selection
from api_exporter.settings import Settings
from api_exporter.survey import HEADER, Finding, row, visit
from api_exporter.upstream import UNREACHABLE, Upstream

Findings = AsyncIterator[Finding]

Report = Callable[[Settings, Selection, Upstream, Findings], Awaitable[bool]]
"""Prints what is found, as it is found; whether the peers could be read."""


async def run(reactor: PosixReactorBase, options: Options, report: Report) -> None:
    """Read every enabled resource once; raises SystemExit(1) without the peers."""
    _, terminal = logs.standard_streams()
    globalLogBeginner.beginLoggingTo(
        [logs.observer("warning", "text", terminal, terminal)], redirectStandardIO=False
    )
    configured = start.configured(options)
    checked = configured.settings
    client = service.upstream_client(checked, reactor, lambda _: None)
    simulated = start.simulated(configured, reactor)
    if simulated is not None:
        simulated.startService()
    selected = selection(checked.collectors, checked.refresh_intervals)
    findings = _findings(reactor, checked, selected, client.upstream)
    good = await report(checked, selected, client.upstream, findings)
    await client.stopService()
    if simulated is not None:
        await maybeDeferred(simulated.stopService)
    if not good:
        raise SystemExit(1)


async def _findings(
    reactor: PosixReactorBase,
    checked: Settings,
    selected: Selection,
    upstream: Upstream,
) -> Findings:
    inventory = Inventory(personal=checked.expose_personal_data)
    for resource in selected.resources:
        finding = await visit(resource, inventory, fetch=upstream.fetch, clock=reactor)
        inventory = finding.inventory
        yield finding
        if finding.error is not None and finding.error.reason == "rate_limited":
            return


async def check(
    checked: Settings, _selected: Selection, upstream: Upstream, findings: Findings
) -> bool:
    """A table with a line for each resource, then what to do about the failures."""
    _print(f"upstream: {checked.upstream_api_url}")
    unreachable = await upstream.reach()
    _print(f"reachable: {unreachable or 'yes'}")
    _print(HEADER)
    found = []
    async for finding in findings:
        _print(row(finding))
        found.append(finding)
        if unreachable:  # once is enough
            break
    for finding in found:
        for complaint in finding.complaints:
            _print(f"left out: {finding.resource.name}{complaint}")
        if more := finding.rejected - len(finding.complaints):
            _print(f"left out: {more} more of {finding.resource.name}")
    failures: dict[str, tuple[UpstreamError, list[str]]] = {}
    for finding in found:
        if finding.error is not None and not finding.resource.optional:
            _, names = failures.setdefault(str(finding.error), (finding.error, []))
            names.append(finding.resource.name)
    for error, names in failures.values():
        _print(f"{', '.join(names)}: {str(error).rstrip('.')}. {advice(error)}")
    if found[-1].inventory.partial:
        _print(PARTIAL)
    return _has_peers(found)


async def once(
    _checked: Settings, selected: Selection, _upstream: Upstream, findings: Findings
) -> bool:
    """The metrics of the upstream, as a scrape would get them."""
    found = []
    async for finding in findings:
        found.append(finding)
        if finding.error is not None and finding.error.reason in UNREACHABLE:
            break  # once is enough
    for finding in found:
        if finding.error is not None and not finding.resource.optional:
            sys.stderr.write(f"{finding.resource.name}: {finding.error}\n")
    for collector in selected.collectors:
        for chunk in render(collector.measure(found[-1].inventory)):
            sys.stdout.write(chunk)
    return _has_peers(found)


def _has_peers(found: list[Finding]) -> bool:
    return any(f.resource.name == UP and f.error is None for f in found)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
