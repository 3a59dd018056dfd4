"""The words of findings, which pages and terminals have in common."""

from collections.abc import Sequence

import msgspec

from api_exporter.attention.finding import Finding
from api_exporter.formatting import day_or_time, long_duration
from api_exporter.report.document import AccountEntry, FindingEntry
from api_exporter.report.verdict import Verdict, count_texts
from api_exporter.subjects.watch import FindingList

NO_PROBLEM = "No known problem in the network."

_UNCONFIRMED = "Not known yet: possible problems wait for a second reading."

NEW_SECONDS = 24 * 3600.0
"""The age of a finding that is new, if its begin was seen."""


def no_findings(found: FindingList, network: Verdict) -> str | None:
    """Return the words in place of findings; None if there are any."""
    if found.lines:
        return None
    if network.verdict != "unknown":
        return NO_PROBLEM
    if found.counts:
        return "Unknown for now."
    return _UNCONFIRMED if found.kept_back else "Not known yet."


def _begin(finding: Finding, started_at: float, now: float) -> float | None:
    """Return when a finding began; None if it may have been there before the start."""
    if finding.since is not None:
        return finding.since if finding.since <= now else None
    return finding.found_at if finding.found_at > started_at else None


def is_new(finding: Finding, started_at: float, now: float) -> bool:
    """Return whether a finding was seen to begin within a day."""
    begin = _begin(finding, started_at, now)
    return begin is not None and now - begin < NEW_SECONDS


def when(finding: Finding, started_at: float, now: float) -> str | None:
    """Return for example `14 minutes (02:00 UTC)`, or when the object expires."""
    if finding.until is not None:
        left = long_duration(finding.until - now)
        return f"in {left} ({day_or_time(finding.until, now)})"
    begin = _begin(finding, started_at, now)
    if begin is None:
        return None
    return f"{long_duration(now - begin)} ({day_or_time(begin, now)})"


def newest_of_the_worst(
    findings: Sequence[Finding], started_at: float, now: float
) -> Finding | None:
    """Return the newest finding of the worst severity."""
    worst = [one for one in findings if one.severity == findings[0].severity]
    return max(worst, key=lambda one: _begin(one, started_at, now) or 0.0, default=None)


def headline(finding: FindingEntry) -> str:
    """Return the sentence without its numbers."""
    message = finding.sentence.removeprefix(finding.subject)
    return f"{finding.subject}{message.partition(':')[0]}".rstrip(".")


def counts(entry: AccountEntry) -> str:
    """Return for example `2 critical, 1 info`."""
    return ", ".join(count_texts(msgspec.to_builtins(entry.finding_counts)))


def other_counts(entry: AccountEntry) -> str:
    """Return the counts without the worst: `1 more critical · 4 warnings · 6 info`."""
    assert entry.worst is not None
    worst = entry.worst.severity
    counts = msgspec.to_builtins(entry.finding_counts)
    counts[worst] -= entry.worst.count
    texts = count_texts(counts)
    if counts[worst]:
        number, _, word = texts[0].partition(" ")
        texts[0] = f"{number} more {word}"
    return " · ".join(texts)


def unchecked(entry: AccountEntry) -> str:
    return f"Unknown and not checked: {', '.join(entry.unchecked)}."


def few(names: Sequence[str]) -> str:
    """Return for example `peers, groups, users and 4 more`."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"
