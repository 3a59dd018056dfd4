"""The document of `/status.json` and `--check`; its types are the schema.

A new field does not change the number in `schema`; a removed one, or a new meaning,
does. What is not known is null.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from api_exporter.attention.finding import Finding
from api_exporter.attention.thresholds import SEVERITIES, Severity
from api_exporter.netbird.records import Peer
from api_exporter.netbird.resources import UP
from api_exporter.ports import Reason
from api_exporter.refresh.network import AccountNetwork
from api_exporter.report import verdict
from api_exporter.report.formatting import rfc3339
from api_exporter.report.verdict import WORST_FIRST, Tone, Verdict
from api_exporter.subjects.groups import GroupCount
from api_exporter.subjects.table import RESOURCE_BY_NAME

MAX_FINDINGS = 100
"""The maximum number of findings of an account; `finding_counts` has all."""

_WORDS: Mapping[Tone, "VerdictWord"] = {
    "good": "ok",
    "warn": "warning",
    "bad": "critical",
    "none": "unknown",
}

VerdictWord = Literal["ok", "warning", "critical", "unknown"]

Instant = Annotated[
    str,
    Meta(
        pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$",
        extra_json_schema={"format": "date-time"},
    ),
]
"""An instant in RFC 3339."""

Number = Annotated[int, Meta(ge=0)]

Text = Annotated[str, Meta(min_length=1)]


class Numbers(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers of peers."""

    total: Number
    connected: Number
    offline: Number


class FindingCounts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers of findings by severity."""

    critical: Number
    warning: Number
    info: Number


class GroupEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of IMPORTANT_GROUPS; without id and peers if it does not exist."""

    name: str
    id: Text | None
    peers: Numbers | None


class FindingEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finding. The sentence begins with the subject.

    Attributes:
        alert: the name of the alert with the same condition.
        until: when the subject expires.
        runbook: a URL, relative to that of the document without RUNBOOKS_URL.
    """

    severity: Severity
    alert: Text | None
    subject: str
    sentence: str
    since: Instant | None
    until: Instant | None
    runbook: Text | None


class ResourceEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A resource.

    Attributes:
        reason: of a failure, as in api_exporter_refresh_failure_reasons_total.
        records: of the newest good response; `rejected` could not be decoded.
        problems: why the first rejected records could not be decoded.
        unknown: fields and values that this version does not know.
    """

    resource: str
    path: str
    state: verdict.StateWord
    reason: Reason | None
    error: Text | None
    last_refresh: Instant | None
    records: Number | None
    rejected: Number
    milliseconds: Number | None
    problems: Sequence[str]
    unknown: Sequence[str]


class AccountEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An account; its name is empty without ACCOUNTS_DIR.

    Attributes:
        verdict: the worse of two: whether NetBird can be read, and the network's.
        error: why the peers cannot be read.
        last_refresh: when the peers were last read.
        token_expires_at: when the exporter's access token expires.
        findings: the worst, at most 100 in `/status.json`.
        unchecked: resources that are not known, so findings may be missing.
    """

    account: str
    verdict: VerdictWord
    text: str
    error: Text | None
    last_refresh: Instant | None
    last_refresh_age_seconds: Number | None
    token_expires_at: Instant | None
    peers: Numbers | None
    groups: Sequence[GroupEntry] | None
    finding_counts: FindingCounts | None
    findings: Sequence[FindingEntry]
    unchecked: Sequence[str]
    resources: Sequence[ResourceEntry]


class Document(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of NetBird accounts: sums, and the accounts that the client may see.

    Attributes:
        version: the exporter's version.
        verdict: the worst of all accounts.
        last_refresh: the oldest of all accounts; null if one has none.
        accounts_known: the accounts whose peers are known. `peers` is their sum.
    """

    schema: Literal[1]
    version: str
    generated_at: Instant
    verdict: VerdictWord
    text: str
    last_refresh: Instant | None
    last_refresh_age_seconds: Number | None
    accounts_total: Number
    accounts_known: Number
    peers: Numbers | None
    finding_counts: FindingCounts | None
    accounts: Sequence[AccountEntry]


def document_of(
    networks: Sequence[AccountNetwork],
    *,
    runbooks: str,
    version: str,
    now: float,
    max_findings: int | None = MAX_FINDINGS,
) -> Document:
    """Return the document of some accounts.

    Args:
        runbooks: the URL of the runbooks.
        now: seconds since the epoch.
        max_findings: of an account; None for all.
    """
    entries = [_entry(one, runbooks, now, max_findings) for one in networks]
    accounts = [entry for _, entry in entries]
    _, text = verdict.summary([reading for reading, _ in entries])
    known = [entry.peers for entry in accounts if entry.peers is not None]
    counts = [e.finding_counts for e in accounts if e.finding_counts is not None]
    oldest = min(accounts, key=lambda e: e.last_refresh or "", default=None)
    order = [_WORDS[tone] for tone in WORST_FIRST]
    verdicts = [entry.verdict for entry in accounts]
    return Document(
        schema=1,
        version=version,
        generated_at=rfc3339(now),
        verdict=min(verdicts, key=order.index, default="unknown"),
        text=accounts[0].text if len(accounts) == 1 else text,
        last_refresh=oldest.last_refresh if oldest else None,
        last_refresh_age_seconds=oldest.last_refresh_age_seconds if oldest else None,
        accounts_total=len(accounts),
        accounts_known=len(known),
        peers=_numbers(
            sum(one.total for one in known), sum(one.connected for one in known)
        )
        if known
        else None,
        finding_counts=FindingCounts(
            **{name: sum(getattr(c, name) for c in counts) for name in SEVERITIES}
        )
        if counts
        else None,
        accounts=accounts,
    )


def _entry(
    network: AccountNetwork, runbooks: str, now: float, max_findings: int | None
) -> tuple[Verdict, AccountEntry]:
    """Return the verdict on reading NetBird, and the entry."""
    freshness, inventory = network.states, network.inventory
    found, groups = network.attention.found, network.attention.last.groups
    reading = verdict.reading_verdict(freshness, inventory, now)
    of_network = verdict.network_verdict(found, freshness[UP])
    is_known = inventory.peers is not None and inventory.groups is not None
    last_refresh = freshness[UP].last_success
    return reading, AccountEntry(
        account=network.account,
        verdict=_WORDS[verdict.worst([reading, of_network])],
        text=f"{reading.headline}. {of_network.headline}.",
        error=reading.why or None,
        last_refresh=_instant(last_refresh),
        last_refresh_age_seconds=_age(last_refresh, now),
        token_expires_at=_instant(verdict.token_expiry(inventory)),
        peers=None if inventory.peers is None else _peer_numbers(inventory.peers),
        groups=[*map(_group, groups)] if is_known and groups is not None else None,
        finding_counts=FindingCounts(**found.counts) if found.counts else None,
        findings=[_finding(one, runbooks) for one in found.lines[:max_findings]],
        unchecked=found.unknown,
        resources=_resources(network, now),
    )


def _resources(network: AccountNetwork, now: float) -> list[ResourceEntry]:
    words = verdict.state_words(network, now)
    entries = []
    for name, word in words.items():
        known = network.states.get(name)
        body = network.states.every[name].body
        error = known.error if known and word == "failing" else None
        has_ended = known is not None and known.ended_at is not None
        entries.append(
            ResourceEntry(
                resource=name,
                path=RESOURCE_BY_NAME[name].path,
                state=word,
                reason=error.reason if error else None,
                error=error.text_with_request_id if error else None,
                last_refresh=_instant(known.last_success) if known else None,
                records=known.records if known and known.last_success else None,
                rejected=known.rejected if known else 0,
                milliseconds=round(1000 * known.seconds)
                if known and has_ended
                else None,
                problems=body.errors if body and known and known.rejected else (),
                unknown=known.unknown.names() if known else (),
            )
        )
    return entries


def _finding(finding: Finding, runbooks: str) -> FindingEntry:
    return FindingEntry(
        severity=finding.severity,
        alert=finding.alert or None,
        subject=finding.subject,
        sentence=finding.text,
        since=_instant(finding.since),
        until=_instant(finding.until),
        runbook=finding.runbook(runbooks) or None,
    )


def _instant(at: float | None) -> str | None:
    return None if at is None else rfc3339(at)


def _age(at: float | None, now: float) -> int | None:
    return None if at is None else max(0, int(now - at))


def _numbers(total: int, connected: int) -> Numbers:
    return Numbers(total=total, connected=connected, offline=total - connected)


def _peer_numbers(peers: Sequence[Peer]) -> Numbers:
    return _numbers(len(peers), sum(peer.connected for peer in peers))


def _group(group: GroupCount) -> GroupEntry:
    numbers = _numbers(group.peers, group.connected) if group.id else None
    return GroupEntry(name=group.name, id=group.id or None, peers=numbers)
