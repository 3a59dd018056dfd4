"""The report as lines of text."""

from collections.abc import Iterator

from api_exporter.attention.finding import Finding
from api_exporter.report import formatting
from api_exporter.report.verdict import count_texts
from api_exporter.subjects.watch import FindingList

NO_PROBLEM = "No known problem in the network."


def unchecked_line(found: FindingList) -> str:
    """Return the line on unchecked resources, as text for a terminal."""
    return f"Unknown and not checked: {', '.join(found.unknown)}."


def counts_text(found: FindingList) -> str | None:
    """Return for example `2 critical, 1 info`; None before the first check."""
    return (", ".join(count_texts(found)) or "nothing") if found.counts else None


def when(finding: Finding, now: float) -> str:
    """Return `since 12:03 UTC` or `until 12:03 UTC`; "" if unknown or not begun."""
    if finding.until is not None:
        return f"until {formatting.clock_time(finding.until, now)}"
    if finding.since is not None and finding.since <= now:
        return f"since {formatting.clock_time(finding.since, now)}"
    return ""


def finding_line(finding: Finding, now: float) -> str:
    """Return a finding as a line for a terminal."""
    time = when(finding, now)
    suffix = f" ({time})" if time else ""
    runbook = f" [{finding.alert}]" if finding.alert else ""
    return f"{finding.severity}: {finding.text}{suffix}{runbook}"


def finding_lines(found: FindingList, now: float, runbooks: str) -> Iterator[str]:
    """Yield all findings, in the words of the status page."""
    yield "needs attention:" if found.lines else f"needs attention: {NO_PROBLEM}"
    for finding in found.lines:
        yield finding_line(finding, now)
    if any(finding.alert for finding in found.lines):
        yield f"what to do: see the section of the name in brackets in {runbooks}"
    if found.unknown:
        yield unchecked_line(found)
