"""The report as lines of text."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from api_exporter.attention.finding import Finding
from api_exporter.report import formatting
from api_exporter.report.verdict import count_texts
from api_exporter.subjects.watch import FindingList

NO_PROBLEM = "No known problem in the network."

_UNCONFIRMED = "Not known yet: possible problems wait for a second reading."


def nothing_reported(found: FindingList, unread: str) -> str:
    """Return the words in place of findings; `unread` before the first refresh."""
    if found.counts:
        return NO_PROBLEM
    return _UNCONFIRMED if found.kept_back else unread


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
    if found.lines:
        yield "needs attention:"
    else:
        yield f"needs attention: {nothing_reported(found, 'Not known yet.')}"
    for finding in found.lines:
        yield finding_line(finding, now)
    if any(finding.alert for finding in found.lines):
        yield f"what to do: see the section of the name in brackets in {runbooks}"
    if found.unknown:
        yield unchecked_line(found)


NEW_SECONDS = 24 * 3600.0
"""The age of a finding that is new, if its begin was seen."""


def begin(finding: Finding, started_at: float, now: float) -> float | None:
    """Return when a finding began; None if it may have been there before the start.

    Args:
        started_at: when the exporter started.
    """
    if finding.since is not None:
        return finding.since if finding.since <= now else None
    return finding.found_at if finding.found_at > started_at else None


def by_age(
    findings: Iterable[Finding], started_at: float, now: float
) -> tuple[list[Finding], list[Finding], list[Finding]]:
    """Return new findings, others, and those that are `info`."""
    new: list[Finding] = []
    longer: list[Finding] = []
    infos: list[Finding] = []
    for finding in findings:
        at = begin(finding, started_at, now)
        is_new = at is not None and now - at < NEW_SECONDS
        severe = new if is_new else longer
        (infos if finding.severity == "info" else severe).append(finding)
    return new, longer, infos


def age(finding: Finding, started_at: float, now: float) -> str:
    """Return for example `14 minutes (02:00 UTC)`, or when the object expires."""
    if finding.until is not None:
        left = formatting.long_duration(finding.until - now)
        return f"in {left} ({_day_or_time(finding.until, now)})"
    at = begin(finding, started_at, now)
    if at is None:
        return "since the start or before"
    return f"{formatting.long_duration(now - at)} ({_day_or_time(at, now)})"


def _day_or_time(at: float, now: float) -> str:
    day = formatting.day(at)
    return formatting.clock_time(at, now) if day == formatting.day(now) else day


def newest_of_the_worst(
    found: FindingList, started_at: float, now: float
) -> Finding | None:
    """Return the newest finding of the worst severity."""
    worst = [one for one in found.lines if one.severity == found.lines[0].severity]
    return max(worst, key=lambda one: begin(one, started_at, now) or 0.0, default=None)


def headline(finding: Finding) -> str:
    """Return the finding without its numbers."""
    return f"{finding.subject} {finding.message.partition(':')[0]}".rstrip(".")


def other_counts(found: FindingList, named: Finding | None) -> str:
    """Return for example `1 more critical · 4 warnings · 6 info`."""
    counts = dict(found.counts)
    if named is None or not counts:
        return " · ".join(count_texts(found))
    counts[named.severity] -= 1
    texts = count_texts(replace(found, counts=counts))
    if counts[named.severity]:
        number, _, word = texts[0].partition(" ")
        texts[0] = f"{number} more {word}"
    return " · ".join(texts)
