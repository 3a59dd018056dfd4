"""The section of findings on the status page, and a finding as a line of text."""

from twisted.web.template import Flattenable, Tag, tags

from api_exporter.attention.finding import Finding
from api_exporter.attention.thresholds import Severity
from api_exporter.attention.watch import FindingList
from api_exporter.web.status import formatting, tables
from api_exporter.web.status.verdict import Tone

QUIET = "No known problem in the network."

TONES: dict[Severity, Tone] = {"critical": "bad", "warning": "warn", "info": "none"}


def section(found: FindingList, now: float, runbooks: str) -> Tag:
    """The worst first; where something is not known, it says so.

    Args:
        runbooks: where they are.
    """
    if not found.counts and not found.findings:
        told: Flattenable = tags.p("No refresh of the network yet.", class_="legend")
    elif not found.findings:
        told = tags.p(QUIET, class_="legend")
    else:
        told = tags.ul(
            [_item(finding, now, runbooks) for finding in found.findings],
            class_="findings",
        )
    return tags.section(
        tags.h2("Needs attention"),
        told,
        tags.p(more(found), class_="legend") if found.more else "",
        tags.p(f"{missing(found)}", class_="legend") if found.unknown else "",
    )


def more(found: FindingList) -> str:
    return f"{found.more:,} more findings are not listed."


def missing(found: FindingList) -> str:
    return f"Unknown and not checked: {', '.join(found.unknown)}."


def counts(found: FindingList) -> str | None:
    """Such as `2 critical, 1 info`; None while nothing is known."""
    if not found.counts:
        return None
    told = [
        f"{count:,} {severity}" for severity, count in found.counts.items() if count
    ]
    return ", ".join(told) or "nothing"


def when(finding: Finding, now: float) -> str:
    """Such as `since 12:03 UTC`, nothing where it is unknown or yet to come."""
    if finding.until is not None:
        return f"until {formatting.clock(finding.until, now)}"
    if finding.since is not None and finding.since <= now:
        return f"since {formatting.clock(finding.since, now)}"
    return ""


def line(finding: Finding, now: float, runbooks: str) -> str:
    """The same for a terminal."""
    told = when(finding, now)
    time = f" ({told})" if told else ""
    what = f"{finding.severity}: {finding.text}{time}"
    return f"{what} {finding.runbook(runbooks)}".rstrip()


def _item(finding: Finding, now: float, runbooks: str) -> Tag:
    told, runbook = when(finding, now), finding.runbook(runbooks)
    return tags.li(
        tables.state(TONES[finding.severity], finding.severity),
        tags.div(
            tags.b(finding.object, dir="ltr"),
            f" {finding.message} ",
            tags.span(f"{told[:1].upper()}{told[1:]}.", class_="when") if told else "",
            " ",
            tags.a(
                "What to do",
                href=runbook,
                **{"aria-label": f"What to do about {finding.object}"},
            )
            if runbook
            else "",
        ),
    )
