"""The entry of one account in the report."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from api_exporter.attention.finding import Finding
from api_exporter.exposition.text import timestamp
from api_exporter.formatting import instant, safe_line
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Peer
from api_exporter.netbird.resources import PEERS
from api_exporter.ports import UpstreamError
from api_exporter.refresh.network import AccountNetwork
from api_exporter.refresh.states import States
from api_exporter.report import verdict, words
from api_exporter.report.document import (
    AccountEntry,
    FailureEntry,
    FindingCounts,
    FindingEntry,
    GroupEntry,
    Instant,
    Machine,
    Numbers,
    ResourceEntry,
)
from api_exporter.report.verdict import StateWord, Verdict
from api_exporter.subjects.groups import GroupCount
from api_exporter.subjects.table import RESOURCE_BY_NAME
from api_exporter.subjects.watch import FindingList
from api_exporter.upstream.advice import advice

MAX_MACHINES = 10
"""The maximum number of offline machines that are named."""


def account_entry(
    network: AccountNetwork,
    *,
    runbooks: str,
    now: float,
    max_findings: int | None = None,
    lines: Sequence[Finding] | None = None,
) -> AccountEntry:
    """Return the entry of an account.

    Args:
        max_findings: None for all.
        lines: some of the findings; None for the most severe ones.
    """
    inventory, peers = network.inventory, network.states[PEERS]
    machines, last = inventory.offline_machines, network.findings
    found, groups, started_at = last.found, last.groups, last.started_at
    reading = verdict.api_verdict(network.states, inventory, now)
    of_network = verdict.network_verdict(found, peers)
    states = verdict.state_words(network, now)
    worse = verdict.worst((reading.verdict, of_network.verdict))
    worst = None
    if of_network.verdict in {"critical", "warning"}:
        worst = words.newest_of_the_worst(found.lines, started_at, now)
    shown = (found.lines if lines is None else lines)[:max_findings]
    entry = partial(finding_entry, runbooks=runbooks, started_at=started_at, now=now)

    return AccountEntry(
        account=network.account,
        verdict=worse,
        short=reading.short if reading.verdict == worse else of_network.short,
        text=f"{reading.headline}. {of_network.headline}.",
        reading=reading,
        network=of_network,
        error=peers.error.text_with_request_id if peers.error else None,
        url=network.url,
        reachable=network.telemetry.reachable,
        requests_per_minute=round(network.requests_per_minute, 2),
        request_limit_per_minute=network.request_limit,
        last_refresh=_instant(peers.last_success),
        last_refresh_age_seconds=_age(peers.last_success, now),
        token_expires_at=_instant(verdict.token_expiry(inventory)),
        peers=_peer_numbers(inventory),
        networks=last.networks,
        routes=last.routes,
        offline_machines_total=None if machines is None else len(machines),
        offline_machines=[*map(_machine, (machines or ())[:MAX_MACHINES])],
        groups=_groups(inventory, groups),
        expiring=_expiring(found, of_network),
        finding_counts=FindingCounts(**found.counts) if found.counts else None,
        worst=entry(worst) if worst else None,
        findings=[*map(entry, shown)],
        no_findings=words.no_findings(found, of_network),
        unchecked=found.unknown,
        off=[name for name in RESOURCE_BY_NAME if name not in states],
        failures=[*_failures(network.states, now)],
        resources=[*_resources(network.states, states)],
    )


def finding_entry(
    finding: Finding, runbooks: str, started_at: float, now: float
) -> FindingEntry:
    return FindingEntry(
        severity=finding.severity,
        alert=finding.alert or None,
        subject=finding.subject,
        sentence=finding.text,
        count=finding.count,
        since=_instant(finding.since),
        until=_instant(finding.until),
        when=words.when(finding, started_at, now),
        new=words.is_new(finding, started_at, now),
        runbook=f"{runbooks}#{finding.alert.lower()}" if finding.alert else None,
    )


def _machine(peer: Peer) -> Machine:
    last_seen = _instant(timestamp(peer.last_seen))
    return Machine(name=safe_line(peer.name or peer.id), last_seen=last_seen)


def _failures(states: States, now: float) -> Iterator[FailureEntry]:
    """Yield an entry for each cause, in the order of the resources."""
    failing: dict[str, tuple[UpstreamError, list[str]]] = {}
    for name, known in states.items():
        if (error := known.error) is not None:
            failing.setdefault(str(error), (error, []))[1].append(name)
    given = set[str]()
    for error, names in failing.values():
        steps = advice(error, token_accepted=states[PEERS].up is True)
        yield FailureEntry(
            resources=names,
            reason=error.reason,
            error=error.text_with_request_id,
            since=instant(min(states[n].failing_since or now for n in names)),
            advice=None if steps in given else steps,
        )
        given.add(steps)


def _resources(
    states: States, words: Mapping[str, StateWord]
) -> Iterator[ResourceEntry]:
    for name, word in words.items():
        state = states.every[name]
        error, has_ended = state.error, state.ended_at is not None
        yield ResourceEntry(
            resource=name,
            path=RESOURCE_BY_NAME[name].path,
            state=word,
            reason=error.reason if error else None,
            error=error.text_with_request_id if error else None,
            last_refresh=_instant(state.last_success),
            interval_seconds=state.interval,
            records=state.records if state.last_success else None,
            rejected=state.rejected,
            duration_seconds=round(state.seconds, 3) if has_ended else None,
            problems=state.body.errors if state.body and state.rejected else (),
            unknown=state.unknown.names(),
        )


def _instant(at: float | None) -> Instant | None:
    return None if at is None else instant(at)


def _age(at: float | None, now: float) -> int | None:
    return None if at is None else max(0, int(now - at))


def _peer_numbers(inventory: Inventory) -> Numbers | None:
    if inventory.peers is None:
        return None
    return Numbers.of(len(inventory.peers), inventory.connected_count)


def _expiring(found: FindingList, of_network: Verdict) -> int | None:
    if of_network.verdict == "unknown":
        return None
    return sum(one.until is not None for one in found.findings)


def _groups(
    inventory: Inventory, counts: Sequence[GroupCount] | None
) -> list[GroupEntry] | None:
    if counts is None or inventory.peers is None or inventory.groups is None:
        return None
    return [
        GroupEntry(
            name=group.name,
            id=group.id or None,
            peers=Numbers.of(group.peers, group.connected) if group.id else None,
        )
        for group in counts
    ]
