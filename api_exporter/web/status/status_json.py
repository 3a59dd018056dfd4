"""`/status.json`: the state of each account for programs; see `status.schema.json`.

Findings, groups and counts are made once for each publication. Verdicts and ages are
computed for each request.
"""

from collections.abc import Callable, Mapping, Sequence
from pkgutil import get_data
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Raw, Struct
from twisted.web.server import Request

from api_exporter.attention.finding import Finding
from api_exporter.attention.thresholds import SEVERITIES
from api_exporter.netbird.records import Peer
from api_exporter.netbird.resources import UP
from api_exporter.refresh.network import AccountNetwork
from api_exporter.serving.page import TextPage, visible_accounts
from api_exporter.serving.visibility import ALL_ACCOUNTS
from api_exporter.subjects.groups import GroupCount
from api_exporter.subjects.watch import FindingList
from api_exporter.web.account_page import AccountPage, Networks
from api_exporter.web.context import SiteContext, TTLCache
from api_exporter.web.status import verdict
from api_exporter.web.status.formatting import rfc3339
from api_exporter.web.status.verdict import WORST_FIRST, Tone, Verdict

STATUS_PATH = "status.json"
SCHEMA_PATH = "status.schema.json"

SCHEMA = get_data("api_exporter.web.status", SCHEMA_PATH) or b""

SCHEMA_VERSION = 1
"""The version of the schema. A new optional field does not change it."""

MAX_FINDINGS = 100
"""The maximum number of findings of an account; `finding_counts` has all."""

_WORDS: Mapping[Tone, str] = {
    "good": "ok",
    "warn": "warning",
    "bad": "critical",
    "none": "unknown",
}

T = TypeVar("T")
R = TypeVar("R")


class Newest(Generic[T, R]):
    """A function of an immutable value that keeps its newest result."""

    def __init__(self, function: Callable[[T], R]) -> None:
        self._function = function
        self._last: tuple[T, R] | None = None

    def __call__(self, value: T) -> R:
        if self._last is None or self._last[0] is not value:
            self._last = value, self._function(value)
        return self._last[1]


class Numbers(Struct, frozen=True):
    """The numbers of peers."""

    total: int
    connected: int
    offline: int


class GroupEntry(Struct, frozen=True):
    """A group of IMPORTANT_GROUPS; without id and peers if it does not exist."""

    name: str
    id: str | None
    peers: Numbers | None


class FindingEntry(Struct, frozen=True):
    """A finding; times are in RFC 3339."""

    severity: str
    alert: str | None
    subject: str
    sentence: str
    since: str | None
    until: str | None
    runbook: str | None


class ResourceEntry(Struct, frozen=True):
    """A resource with its state, and the reason of a failure."""

    resource: str
    state: str
    reason: str | None
    error: str | None
    last_refresh: str | None


class AccountEntry(Struct, frozen=True, kw_only=True):
    """An account. `groups` and `findings` are encoded already."""

    account: str
    verdict: str
    text: str
    error: str | None
    last_refresh: str | None
    last_refresh_age_seconds: int | None
    token_expires_at: str | None
    peers: Numbers | None
    groups: Raw
    finding_counts: Mapping[str, int] | None
    findings: Raw
    unchecked: tuple[str, ...]
    resources: list[ResourceEntry]


class Document(Struct, frozen=True, kw_only=True):
    """The whole: sums of the accounts, and the accounts themselves."""

    schema: int = SCHEMA_VERSION
    version: str
    generated_at: str
    verdict: str
    text: str
    last_refresh: str | None
    last_refresh_age_seconds: int | None
    accounts_total: int
    accounts_known: int
    peers: Numbers | None
    finding_counts: Mapping[str, int] | None
    accounts: list[AccountEntry]


class AccountState:
    """The entry of one account."""

    def __init__(self, runbooks: str) -> None:
        self._runbooks = runbooks
        self._numbers = Newest(_numbers)
        self._groups = Newest(_groups)
        self._findings = Newest(self._encode)

    def entry(
        self, network: AccountNetwork, now: float
    ) -> tuple[Verdict, AccountEntry]:
        """Return the verdict on reading NetBird, and the entry."""
        freshness, inventory = network.telemetry.freshness, network.inventory
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
            peers=None if inventory.peers is None else self._numbers(inventory.peers),
            groups=self._groups(groups if is_known else None),
            finding_counts=dict(found.counts) or None,
            findings=self._findings(found),
            unchecked=found.unknown,
            resources=_resource_entries(network, now),
        )

    def _encode(self, found: FindingList) -> Raw:
        first = found.lines[:MAX_FINDINGS]
        entries = [finding_entry(finding, self._runbooks) for finding in first]
        return Raw(msgspec.json.encode(entries))


def _resource_entries(network: AccountNetwork, now: float) -> list[ResourceEntry]:
    freshness = network.telemetry.freshness
    words = dict(verdict.state_words(freshness, now))
    for resource in network.selection.resources:
        if network.inventory.dormant(resource.name):
            words.setdefault(resource.name, "dormant")
    entries = []
    for name, word in words.items():
        known = freshness.get(name)
        error = None if known is None or word != "failing" else known.error
        entries.append(
            ResourceEntry(
                name,
                word,
                None if error is None else error.reason,
                None if error is None else error.text_with_request_id,
                None if known is None else _instant(known.last_success),
            )
        )
    return entries


class StatusJson(AccountPage):
    """The state of the accounts that the client may see."""

    def __init__(self, networks: Networks, context: SiteContext) -> None:
        super().__init__(networks, context)
        self._states: WeakKeyDictionary[AccountNetwork, AccountState]
        self._states = WeakKeyDictionary()
        self._cache = TTLCache[str](context.clock.seconds)

    def one(self, _request: Request, network: AccountNetwork) -> str:
        return self.document([network])

    def many(self, request: Request) -> str:
        """Return the document, cached for a second for clients that may see all."""
        visible, every = visible_accounts(request), self.networks
        if visible is ALL_ACCOUNTS:
            return self._cache.get(None, lambda: self.document([*every.values()]))
        return self.document([one for name, one in every.items() if name in visible])

    def _state(self, network: AccountNetwork) -> AccountState:
        state = AccountState(self.context.runbooks)
        return self._states.setdefault(network, state)

    def document(self, networks: Sequence[AccountNetwork]) -> str:
        now = self.now()
        entries = [self._state(network).entry(network, now) for network in networks]
        accounts = [entry for _, entry in entries]
        _, text = verdict.summary([reading for reading, _ in entries])
        if len(accounts) == 1:
            text = accounts[0].text
        known = [entry.peers for entry in accounts if entry.peers is not None]
        counts = [e.finding_counts for e in accounts if e.finding_counts is not None]
        oldest = min(accounts, key=lambda e: e.last_refresh or "", default=None)
        order = [_WORDS[tone] for tone in WORST_FIRST]
        verdicts = [entry.verdict for entry in accounts]
        document = Document(
            version=self.context.build.version,
            generated_at=rfc3339(now),
            verdict=min(verdicts, key=order.index, default="unknown"),
            text=text,
            last_refresh=None if oldest is None else oldest.last_refresh,
            last_refresh_age_seconds=None
            if oldest is None
            else oldest.last_refresh_age_seconds,
            accounts_total=len(accounts),
            accounts_known=len(known),
            peers=_sum(known),
            finding_counts=_added(counts),
            accounts=accounts,
        )
        return f"{msgspec.json.encode(document).decode()}\n"


class Schema(TextPage):
    """The JSON Schema of the document."""

    media_type = b"application/schema+json"

    def text(self, _request: Request) -> str:
        return SCHEMA.decode()


def finding_entry(finding: Finding, runbooks: str) -> FindingEntry:
    return FindingEntry(
        finding.severity,
        finding.alert or None,
        finding.subject,
        finding.text,
        _instant(finding.since),
        _instant(finding.until),
        finding.runbook(runbooks) or None,
    )


def _instant(at: float | None) -> str | None:
    return None if at is None else rfc3339(at)


def _age(at: float | None, now: float) -> int | None:
    return None if at is None else max(0, int(now - at))


def _numbers(peers: Sequence[Peer]) -> Numbers:
    connected = sum(peer.connected for peer in peers)
    return Numbers(len(peers), connected, len(peers) - connected)


def _groups(groups: Sequence[GroupCount] | None) -> Raw:
    if groups is None:
        return Raw(b"null")
    return Raw(msgspec.json.encode([_group(group) for group in groups]))


def _group(group: GroupCount) -> GroupEntry:
    if not group.id:
        return GroupEntry(group.name, None, None)
    offline = group.peers - group.connected
    numbers = Numbers(group.peers, group.connected, offline)
    return GroupEntry(group.name, group.id, numbers)


def _sum(known: Sequence[Numbers]) -> Numbers | None:
    if not known:
        return None
    return Numbers(
        sum(numbers.total for numbers in known),
        sum(numbers.connected for numbers in known),
        sum(numbers.offline for numbers in known),
    )


def _added(counts: Sequence[Mapping[str, int]]) -> Mapping[str, int] | None:
    if not counts:
        return None
    return {severity: sum(c[severity] for c in counts) for severity in SEVERITIES}
