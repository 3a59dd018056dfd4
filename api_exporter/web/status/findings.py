"""Findings: the section of the status page, items of a list, and a line of text."""

from collections.abc import Sequence
from html import escape

from api_exporter.attention.finding import Finding
from api_exporter.subjects.watch import FindingList
from api_exporter.web.status import formatting
from api_exporter.web.status.verdict import TONES, count_texts

FINDINGS_PATH = "findings"

NO_PROBLEM = "No known problem in the network."

MAX_SHOWN = 50
"""The maximum number of findings on the status page."""


def section(found: FindingList, now: float, runbooks: str, account: str = "") -> str:
    """Return the section as markup: the worst findings first, then unchecked resources.

    Args:
        account: its name, "" if there is only one.
    """
    if not found.counts and not found.lines:
        body = legend("No refresh of the network yet.")
    elif not found.lines:
        body = legend(NO_PROBLEM)
    else:
        body = items(found.lines[:MAX_SHOWN], now, runbooks)
    count = len(found.lines)
    more = f'<a href="{address(account)}">Show all {count:,}</a>'
    return (
        f"<section><h2>Needs attention</h2>{body}"
        f"{f'<p>{more}</p>' if count > MAX_SHOWN else ''}"
        f"{unchecked_note(found)}</section>"
    )


def address(account: str, page: int = 1) -> str:
    """Return the link to the page of all findings, from another page."""
    query = [
        *([f"account={account}"] if account else []),
        *([f"page={page}"] if page > 1 else []),
    ]
    return escape("?".join(filter(None, (FINDINGS_PATH, "&".join(query)))))


def unchecked_note(found: FindingList) -> str:
    """Return the note on unchecked resources as markup, "" without them."""
    return legend(escape(unchecked_line(found))) if found.unknown else ""


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


# Templates, not tags: tags take 40 times as long.
_ITEM = (
    '<li><span class="state {tone}">{severity}</span><div>'
    '<b dir="ltr">{object}</b> {message} {when}{runbook}</div></li>'
)
_WHEN = '<span class="when">{}.</span> '
_RUNBOOK = '<a href="{}" aria-label="What to do about {}">What to do</a>'


def items(findings: Sequence[Finding], now: float, runbooks: str) -> str:
    """Return a list of findings as markup."""
    shown = "".join(_item(finding, now, runbooks) for finding in findings)
    return f'<ul class="findings">{shown}</ul>'


def _item(finding: Finding, now: float, runbooks: str) -> str:
    time, runbook = when(finding, now), finding.runbook(runbooks)
    object_ = escape(finding.subject)
    return _ITEM.format(
        tone=TONES[finding.severity],
        severity=finding.severity,
        object=object_,
        message=escape(finding.message),
        when=_WHEN.format(f"{time[0].upper()}{time[1:]}") if time else "",
        runbook=_RUNBOOK.format(escape(runbook), object_) if runbook else "",
    )


def legend(markup: str) -> str:
    """Return a note in a soft colour."""
    return f'<p class="legend">{markup}</p>'
