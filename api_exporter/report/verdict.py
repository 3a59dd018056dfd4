"""The verdict: whether the exporter can read NetBird, and the state of the network."""

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from msgspec import Struct

from api_exporter import formatting
from api_exporter.exposition.text import timestamp
from api_exporter.formatting import with_noun
from api_exporter.netbird import resource_state
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.netbird.resources import PEERS
from api_exporter.refresh.network import AccountNetwork
from api_exporter.subjects.users import own_token
from api_exporter.subjects.watch import FindingList
from api_exporter.upstream.advice import advice

VerdictWord = Literal["ok", "warning", "critical", "unknown"]

WORST_FIRST: tuple[VerdictWord, ...] = ("critical", "warning", "unknown", "ok")

WORKING: tuple[VerdictWord, ...] = ("warning", "ok")
"""The words of accounts whose metrics are published; a warning does not stop them."""


class Verdict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A headline, with details.

    Attributes:
        short: the same in one or two words.
        notes: sentences: the effect, the advice and further problems.
    """

    verdict: VerdictWord
    short: str
    headline: str
    notes: tuple[str, ...] = ()


def worst(verdicts: Iterable[VerdictWord]) -> VerdictWord:
    return min(verdicts, key=WORST_FIRST.index, default="unknown")


_SLOW = "The NetBird API is slow, or has asked the exporter to pause."


def api_verdict(
    states: Mapping[str, ResourceState], inventory: Inventory, now: float
) -> Verdict:
    """Return the verdict on the refreshes of the peers; other failures are notes."""
    peers = states[PEERS]
    state = peers.word(now)
    others = _other_failures(states, now)

    def verdict(word: VerdictWord, short: str, text: str, *notes: str) -> Verdict:
        headline = f"Reading NetBird: {text}"
        every = (*notes, *others)
        return Verdict(verdict=word, short=short, headline=headline, notes=every)

    if state == "failing" and peers.error is not None:
        since = formatting.clock_time(peers.failing_since or now, now)
        notes = advice(peers.error), _metrics_note(peers, inventory, now)
        return verdict("critical", "Not working", f"no, since {since}", *notes)
    if state == "restricted":
        return verdict("warning", "In part", "in part, without the peers")
    if peers.last_success is None and state != "expired":
        return verdict("unknown", "Starting", "not yet, first refresh of the peers")
    age = formatting.long_duration(now - (peers.last_success or peers.ended_at or now))
    last = f"last refresh of the peers {age} ago"
    if state == "expired":
        note = f"The metrics of the peers have expired. {_SLOW}"
        return verdict("critical", "Not working", f"no, {last}", note)
    if state == "late":
        note = f"The next refresh is overdue. {_SLOW}"
        return verdict("warning", "Late", f"late, {last}", note)
    if others:
        return verdict("warning", "In part", "in part")
    return verdict("ok", "Working", "yes")


def network_verdict(found: FindingList, peers: ResourceState) -> Verdict:
    """Return the verdict on the network: its findings, counted by severity."""
    if peers.up is False or not found.counts:
        text = "unknown for now" if peers.up is False else "not known yet"
        headline = f"The network: {text}"
        return Verdict(verdict="unknown", short="Unknown", headline=headline)
    numbers = count_texts(found.counts) or ["no known problem"]
    counts = found.counts
    return Verdict(
        verdict="critical"
        if counts["critical"]
        else "warning"
        if counts["warning"]
        else "ok",
        short=numbers[0] if any(counts.values()) else "Working",
        headline=f"The network: {', '.join(numbers)}",
    )


def count_texts(counts: Mapping[str, int]) -> list[str]:
    """Return for example `2 critical` and `1 info`, the worst first."""
    return [
        with_noun(number, severity)
        if severity == "warning"
        else f"{number:,} {severity}"
        for severity, number in counts.items()
        if number
    ]


def summary(verdicts: Collection[VerdictWord]) -> str:
    """Return the headline of the accounts' verdicts on reading NetBird."""
    if not verdicts:
        return "This shard has no account"
    working = sum(one in WORKING for one in verdicts)
    return f"{working} of {with_noun(len(verdicts), 'account')} working"


StateWord = Literal[resource_state.StateWord, "waiting", "held_back", "dormant"]
"""The state of a resource, as its account shows it."""


STATE_VERDICTS: Mapping[StateWord, VerdictWord] = {
    "fresh": "ok",
    "late": "warning",
    "failing": "critical",
    "expired": "critical",
}

STATE_MEANINGS: Mapping[StateWord, str] = {
    "starting": "no refresh yet: the exporter reads the resources one after another",
    "late": "overdue: older than 1.5 intervals",
    "expired": "no refresh for so long that the metrics have expired",
    "waiting": "no refresh while the refresh of the peers fails",
    "held_back": "not requested: NetBird refused other paths, and more refusals at once"
    " look like a scan",
    "dormant": "no provider of the Agent Network is known",
    "unsupported": "the NetBird API does not offer this resource to this token, or"
    " lists no object that needs it; next attempt within an hour",
    "restricted": "the token's user may read only a part, so the exporter publishes"
    " none of it; see the finding",
}


def state_words(network: AccountNetwork, now: float) -> Mapping[str, StateWord]:
    """Return the state of each requested resource.

    While the refresh of the peers fails, other resources are not late but `waiting`.
    """
    states, resources = network.states, network.selection.resources
    since = states[PEERS].failing_since
    is_waiting = since is not None and all(
        (known.last_success or 0.0) <= since for known in states.values()
    )
    words: dict[str, StateWord] = {n: one.word(now) for n, one in states.items()}
    for resource in resources:
        name = resource.name
        if network.inventory.dormant(name):
            words.setdefault(name, "dormant")
            continue
        words.setdefault(name, "starting")  # it has just woken
        if is_waiting and words[name] in {"starting", "late"}:
            words[name] = "waiting"
        elif words[name] == "starting" and network.is_held_back(resource):
            words[name] = "held_back"
    return words


def _metrics_note(peers: ResourceState, inventory: Inventory, now: float) -> str:
    if peers.restricted:
        return "The metrics of the peers are withheld."
    if peers.last_success is None:
        return "No refresh of the peers has succeeded since the start."
    when = formatting.clock_time(peers.last_success, now)
    if inventory.peers is None:
        return f"The metrics of the peers have expired: last refresh at {when}."
    return f"The metrics show the peers as they were at {when}."


def _other_failures(states: Mapping[str, ResourceState], now: float) -> tuple[str, ...]:
    others = (one for name, one in states.items() if name != PEERS)
    failing = sum(one.word(now) == "failing" for one in others)
    verb = "fails" if failing == 1 else "fail"
    return (f"{with_noun(failing, 'other resource')} {verb}.",) if failing else ()


def token_expiry(inventory: Inventory) -> float | None:
    """Return the expiry of the exporter's token; None if unknown."""
    own = own_token(inventory)
    return None if own is None else timestamp(own.expiration_date)


def expiry_text(seconds: float) -> str:
    """Return for example `expires in 40 days`."""
    if seconds <= 0:
        return f"expired {formatting.long_duration(-seconds)} ago"
    return f"expires in {formatting.long_duration(seconds)}"
