"""The entry of an account as lines for a terminal."""

from collections.abc import Iterator

from api_exporter.report import words
from api_exporter.report.document import AccountEntry, FindingEntry, ResourceEntry
from api_exporter.report.verdict import STATE_MEANINGS

_ROW = "{:<34}  {:<12}  {:>7}  {:>7}"


def resource_lines(entry: AccountEntry) -> Iterator[str]:
    """Yield a table of the resources."""
    yield f"reachable: {'yes' if entry.reachable else 'no'}"
    yield _ROW.format("path", "outcome", "records", "ms")
    for one in entry.resources:
        cells = ("" if n is None else n for n in (one.records, one.milliseconds))
        yield _ROW.format(one.path, one.reason or one.state, *cells).rstrip()


def problem_lines(entry: AccountEntry, runbooks: str) -> Iterator[str]:
    """Yield problems of reading, then all findings."""
    for one in entry.resources:
        yield from _record_lines(one)
    for failure in entry.failures:
        advice = f" {failure.advice}" if failure.advice else ""
        names = words.few(failure.resources)
        yield f"{names}: {failure.error.rstrip('.')}.{advice}"
    for state in ("waiting", "held_back"):
        if any(one.state == state for one in entry.resources):
            yield f"{state}: {STATE_MEANINGS[state]}."
    yield f"needs attention: {entry.no_findings or ''}".rstrip()
    yield from map(finding_line, entry.findings)
    if any(finding.alert for finding in entry.findings):
        yield f"what to do: see the section of the name in brackets in {runbooks}"
    if entry.unchecked:
        yield words.unchecked(entry)


def finding_line(finding: FindingEntry) -> str:
    parts = (
        f"{finding.severity}: {finding.sentence}",
        finding.when and f"– {finding.when}",
        finding.alert and f"[{finding.alert}]",
    )
    return " ".join(filter(None, parts))


def _record_lines(one: ResourceEntry) -> Iterator[str]:
    """Yield lines about rejected records, and about unknown fields and values."""
    for problem in one.problems:
        yield f"left out: {one.resource}{problem}"
    if omitted := one.rejected - len(one.problems):
        yield f"left out: {omitted} more of {one.resource}"
    if one.unknown:
        yield f"unknown to this version: {one.resource}: {', '.join(one.unknown)}"
