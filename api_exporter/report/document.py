"""The document of `/status.json` and `--check`; its types are the schema.

A new field does not change the number in `schema`; a removed one, or a new meaning,
does. What is not known is null.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from api_exporter.attention.thresholds import SEVERITIES, Severity
from api_exporter.formatting import instant
from api_exporter.netbird.routing import Reach
from api_exporter.ports import Reason
from api_exporter.report.verdict import StateWord, Verdict, VerdictWord, summary, worst

Instant = Annotated[datetime, Meta(tz=True)]
"""An instant in whole seconds; RFC 3339 in JSON."""

Number = Annotated[int, Meta(ge=0)]

Text = Annotated[str, Meta(min_length=1)]


class Numbers(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers of peers."""

    total: Number
    connected: Number
    offline: Number

    @classmethod
    def of(cls, total: int, connected: int) -> "Numbers":
        return cls(total=total, connected=connected, offline=total - connected)


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
        count: of the findings that this line joins.
        since: of NetBird; null if it does not say.
        until: when the subject expires.
        when: the age of the finding, or the time until its subject expires.
        new: whether it was seen to begin within a day.
        runbook: a URL, relative to that of the document without RUNBOOKS_URL.
    """

    severity: Severity
    alert: Text | None
    subject: str
    sentence: str
    count: int
    since: Instant | None
    until: Instant | None
    when: Text | None
    new: bool
    runbook: Text | None


class FailureEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Resources that fail for one reason.

    Attributes:
        since: when the first one began to fail.
        advice: what to do; null if an earlier entry has the same.
    """

    resources: Sequence[str]
    reason: Reason
    error: Text
    since: Instant
    advice: Text | None


class ResourceEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A resource.

    Attributes:
        interval_seconds: between two refreshes.
        reason: of a failure, as in api_exporter_refresh_failure_reasons_total.
        records: of the newest good response; `rejected` could not be decoded.
        duration_seconds: of the newest refresh.
        problems: why the first rejected records could not be decoded.
        unknown: fields and values that this version does not know.
    """

    resource: str
    path: str
    state: StateWord
    reason: Reason | None
    error: Text | None
    last_refresh: Instant | None
    interval_seconds: Annotated[float, Meta(gt=0)]
    records: Number | None
    rejected: Number
    duration_seconds: Annotated[float, Meta(ge=0)] | None
    problems: Sequence[str]
    unknown: Sequence[str]


class Machine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An offline peer without a login, which should be connected."""

    name: str
    last_seen: Instant | None


class AccountEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An account; its name is empty without ACCOUNTS_DIR.

    Attributes:
        verdict: the worse of two: whether NetBird can be read, and the network's.
        short: the verdict in one or two words.
        error: why the peers cannot be read.
        url: of the NetBird API.
        reachable: whether the newest request got a response; null before the first.
        requests_per_minute: that the settings cost.
        request_limit_per_minute: that UPSTREAM_RATE_LIMIT states; null without it.
        last_refresh: when the peers were last read.
        token_expires_at: when the exporter's access token expires.
        networks: those with enabled resources, and how many of them can be reached.
        routes: the enabled ones, likewise.
        offline_machines_total: without those that PEER_DETAIL hides.
        offline_machines: the ten that went offline last.
        expiring: findings about what expires soon.
        worst: the newest of the worst findings; null without a warning.
        findings: the worst, at most 100 in `/status.json`.
        no_findings: the words in place of findings; null if there are any.
        unchecked: resources that are not known, so findings may be missing.
        off: resources that the settings leave out.
        failures: the causes of failing resources.
    """

    account: str
    verdict: VerdictWord
    short: str
    text: str
    reading: Verdict
    network: Verdict
    error: Text | None
    url: str
    reachable: bool | None
    requests_per_minute: float
    request_limit_per_minute: float | None
    last_refresh: Instant | None
    last_refresh_age_seconds: Number | None
    token_expires_at: Instant | None
    peers: Numbers | None
    networks: Reach | None
    routes: Reach | None
    offline_machines_total: Number | None
    offline_machines: Sequence[Machine]
    groups: Sequence[GroupEntry] | None
    expiring: Number | None
    finding_counts: FindingCounts | None
    worst: FindingEntry | None
    findings: Sequence[FindingEntry]
    no_findings: Text | None
    unchecked: Sequence[str]
    off: Sequence[str]
    failures: Sequence[FailureEntry]
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


_NEVER = datetime.min.replace(tzinfo=UTC)


def document_of(accounts: Sequence[AccountEntry], version: str, now: float) -> Document:
    known = [entry.peers for entry in accounts if entry.peers is not None]
    counts = [e.finding_counts for e in accounts if e.finding_counts is not None]
    oldest = min(accounts, key=lambda e: e.last_refresh or _NEVER, default=None)
    return Document(
        schema=1,
        version=version,
        generated_at=instant(now),
        verdict=worst(entry.verdict for entry in accounts),
        text=accounts[0].text
        if len(accounts) == 1
        else summary([entry.reading.verdict for entry in accounts]),
        last_refresh=oldest.last_refresh if oldest else None,
        last_refresh_age_seconds=oldest.last_refresh_age_seconds if oldest else None,
        accounts_total=len(accounts),
        accounts_known=len(known),
        peers=Numbers.of(
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
