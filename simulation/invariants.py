"""The table of invariants that each step of the simulation checks."""

import gc
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.attention.finding import FindingKey
from api_exporter.netbird.resource_state import (
    MIN_MAX_AGE,
    OVERDUE_INTERVALS,
    ResourceState,
)
from api_exporter.netbird.resources import ACCESS_LOG, PEERS, PROBE_PATH
from api_exporter.refresh.budget import GROWTH, MAX_PAUSE, MIN_PAUSE, MIN_RATE, SLOTS
from api_exporter.refresh.network import AccountNetwork
from api_exporter.refresh.schedule import FIRST_WAIT, MAX_SILENT
from api_exporter.subjects.table import RESOURCE_BY_NAME, RULES
from api_exporter.subjects.users import TOKEN_NOT_WATCHED
from api_exporter.subjects.watch import KeptFindings, update_findings
from api_exporter.upstream.fetcher import SILENT_SECONDS
from simulation.account import MARKS, PATHS, SECRET
from simulation.judge import Judge
from simulation.knowledge import Knowledge
from simulation.link import LATENCY
from simulation.logs import EventLog, Row, public_event, public_row
from simulation.upstream import Request
from simulation.world import (
    DAY,
    HOUR,
    MINUTE,
    NAMES,
    QUARTER,
    SHARING,
    START,
    Violation,
    World,
)

Problems = Iterator[str]
Check = Callable[["Checker"], Problems]

_PAGES: tuple[tuple[str, set[int], str | None], ...] = (
    ("/", {200}, None),
    ("/health", {200}, None),
    ("/ready", {200, 503}, None),
    ("/metrics", {200}, None),
    ("/sd/accounts", {200}, None),
    ("/runbooks", {200}, None),
    ("/findings", {400}, None),
    ("/lookup", {400}, None),
    ("/status.json", {200}, None),
    ("/status.schema.json", {200}, None),
    ("/nowhere", {404}, None),
    ("/metrics?account=nobody", {404}, None),
    *(
        (path.format(name), statuses, name)
        for path, statuses in (
            ("/?account={}", {200}),
            ("/findings?account={}", {200}),
            ("/health?account={}", {200}),
            ("/status.json?account={}", {200}),
            ("/ready?account={}", {200, 503}),
            ("/metrics?account={}", {200}),
            ("/sd?port=9100&account={}", {200, 503}),
            ("/lookup.json?account={}", {200, 503}),
            ("/lookup.csv?account={}", {200, 503}),
            ("/lookup?address=100.64.0.1&account={}", {200, 404, 503}),
            ("/sd?port=22&group=All&account={}", {200, 503}),
            ("/metrics?collect[]=groups&account={}", {200}),
        )
        for name in NAMES
    ),
)
"""All pages, their permitted statuses, and their accounts."""

_METRICS_SHARE = 0.25
_OTHERS_SHARE = 0.0625
"""The probability that a check requests a page."""

LINES = {"events": public_event, "access": public_row}

_LINE_COUNTERS = {
    "events": b"api_exporter_audit_events_written_total",
    "access": b"api_exporter_access_log_lines_written_total",
}

_ANSWERS = re.compile(
    rb"^api_exporter_upstream_requests_total\{code=\"(\w+)\"\} (\d+)", re.MULTILINE
)

_PEER_LISTS = ("/sd?port=9100", "/lookup.json")

_METRICS_PATHS = {f"/metrics?account={name}" for name in NAMES}

_FAILS = re.compile(r"cannot refresh (\w+):")
_EXPIRED = re.compile(r"metrics of (\w+) have expired")
_RECOVERS = re.compile(r"(\w+) can be refreshed again")
_UNSUPPORTED = re.compile(
    r"this token may not read (\w+)|does not have (\w+)|(\w+) is not requested"
    r"|(\w+) is withheld"
)

_DELAYED = {ACCESS_LOG, "access_tokens", *RULES.dormant_without}
"""Resources that may wait for others, or that are costly for the NetBird API."""

SETTLED_SECONDS = 15 * MINUTE
"""Seconds after two refreshes without trouble until all audit events are in the log."""

MAX_IDLE_SECONDS = 10.0
"""Seconds that an overdue refresh may wait while no request is running. They cover the
longest pause inside a refresh, and a computation."""

MAX_SENDING_SECONDS = 3 * LATENCY
"""More than the seconds from the begin of an attempt to its last request: a kept
connection ends without a response, and the request is sent again over a new one."""

BUDGET_SECONDS = 6 * HOUR
"""Seconds after which the estimate of a budget is large enough for all requests."""

OUTAGE_INTERVAL = 15.0
"""Seconds between two requests for the peers, at least, in a long outage."""

MAX_RETRIES = 7
"""The most retries of a resource in an hour, after 30 s and then twice as long."""

MAX_ATTEMPTS = 3
"""The most requests of a refresh."""

MAX_OBJECTS = 400_000
"""The most objects of a process with four accounts."""


NEVER = "never"


class Pause(Struct):
    """A pause after a 429, in seconds of the clock.

    Attributes:
        peers_at: the time of the last request for peers.
    """

    begin: float
    end: float
    peers_at: float


LONGEST_COMPUTATION = 60.0
"""Seconds within which findings are evaluated after the end of a wait."""


def _resource(request: Request) -> str:
    return PATHS.get(request.path, "access_tokens")


def _found_keys(state: KeptFindings) -> set[FindingKey]:
    return {finding.key for own in state.by_finder.values() for finding in own}


PROBE = "develop/decisions.md#while-the-peers-fail-they-are-the-probe"
FINDINGS = "develop/decisions.md#findings-follow-the-refreshes"
PAGES = "develop/decisions.md#a-page-is-made-from-the-one-before-it"


class Invariant(Struct, frozen=True, eq=False):
    """One invariant.

    Attributes:
        document: the document that promises it, below `docs`.
        check: yields a text for each violation; its documentation is the promise.
        every: seconds between two checks; 0 for each step.
    """

    document: str
    check: Check
    every: float

    @property
    def name(self) -> str:
        return self.check.__name__.replace("_", " ")

    @property
    def promise(self) -> str:
        return " ".join((self.check.__doc__ or "").split())


INVARIANTS: list[Invariant] = []


def promised(document: str, every: float = 0.0) -> Callable[[Check], Check]:
    """Make an invariant of a check."""

    def add(check: Check) -> Check:
        INVARIANTS.append(Invariant(document, check, every))
        return check

    return add


class Checker:
    """The checks, and their memory from one check to the next."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.log_states: dict[tuple[str, str], str] = {}
        self.requests: list[tuple[Request, bool]] = []
        self._exporter: object = None
        self._networks: dict[str, AccountNetwork] = {}
        self._chance = world.random("invariants")
        self._refreshes: dict[tuple[str, str], object] = {}
        self._watched: list[Request] = []
        self._pauses: dict[str, Pause] = {}
        self._budget_left = self._budget_at = 0.0
        self._busy_at: dict[tuple[str, bool], float] = {}
        self._unreachable_at = self._room_at = -inf
        self._lines_before: dict[str, int] = {}
        self._uncounted: dict[str, int] = {}
        self._sent: Counter[str] = Counter()
        self._answers: dict[str, tuple[Counter[str], Counter[str], int]] = {}
        self._waits: dict[tuple[str, str], Request] = {}
        self._found_at: dict[str, tuple[object, int, dict[FindingKey, float]]] = {}
        self.judge = Judge(world)

    def prepare(self) -> None:
        """Prepare a check. Forget the last process if another one runs, or none."""
        if self._exporter is not self.world.exporter:
            self._exporter = self.world.exporter
            for memory in (
                *(self.log_states, self._refreshes, self._watched, self._pauses),
                *(self._lines_before, self._uncounted, self._busy_at, self._sent),
                *(self._answers, self._waits, self._found_at),
            ):
                memory.clear()
            self._networks.clear()
            self._budget_left = inf
        self._follow_reloads()
        self.requests = [(r, self._is_retry(r)) for r in self.world.unchecked]
        self.world.unchecked.clear()
        self._sent.update(request.account for request, _ in self.requests)
        # A request that ends in this step was under way until now.
        for request in (*(r for r, _ in self.requests), *self._watched):
            peers = request.path == "api/peers"
            self._busy_at[request.account, peers] = self.world.seconds()

        now = self.world.seconds()
        if self.world.weather.may_be_unreachable():
            self._unreachable_at = now
        for known in self.world.known.values():
            room_at = known.network.refused_paths.allowed_at("", now)
            self._room_at = max(self._room_at, room_at)

    def _follow_reloads(self) -> None:
        """Forget what a reload has ended: accounts, and resources of those left."""
        networks = {name: known.network for name, known in self.world.known.items()}
        for name in self._networks.keys() | networks.keys():
            before, after = self._networks.get(name), networks.get(name)
            if before is after:
                continue
            # A new account may have logged a failure before it is known.
            kept = set() if after is None else {*after.states}
            for key in [*self.log_states]:
                if key[0] == name and key[1] not in kept:
                    del self.log_states[key]
            self._sent.pop(name, None)
            if not self._with_token_of(name):  # The budget ends with the last account.
                for token, users in self.world.upstream.tokens.items():
                    if name in users:
                        self._pauses.pop(token, None)
            self._answers.pop(name, None)
            for log in self.world.logs:
                if log.partition(".")[0] == name:
                    self._lines_before.pop(log, None)
        self._networks = networks

    def _is_retry(self, request: Request) -> bool:
        """Return whether the same refresh has tried this request before."""
        if request.account not in self.world.known:
            return True  # it has been killed meanwhile
        state, key = self._state(request), (request.account, _resource(request))
        began, ended = (state.began, state.ended_at) if state else (None, None)
        before, self._refreshes[key] = self._refreshes.get(key, NEVER), ended
        # A try whose name was looked up in vain has sent nothing.
        return before == ended or (began is not None and request.began > began + 1.0)

    def _state(self, request: Request) -> ResourceState | None:
        """Return the state of the resource that a request is for, if it is known."""
        known = self.world.known.get(request.account)
        return known.network.states.every.get(_resource(request)) if known else None

    def _has_no_slot(self, request: Request) -> bool:
        """Return whether the refresh of a request has had no header for too long."""
        state, now = self._state(request), self.world.seconds()
        if state is None or state.began is None:
            return False
        return state.is_silent and state.began <= now - SILENT_SECONDS

    def known(self) -> Iterator[tuple[str, Knowledge]]:
        """Return the accounts of which anything was refreshed in this step."""
        return ((n, k) for n, k in self.world.known.items() if k.has_changed)

    # At each step

    @promised("metrics.md")
    def up(self) -> Problems:
        """`netbird_api_up` and `api_exporter_resource_up` are never 1 over nothing."""
        for account, known in self.known():
            for name, standing in known.network.states.items():
                # Withheld peers are up, and nothing of them is published.
                if standing.last_success and standing.up and name not in known.read_at:
                    yield f"{account}: {name} is up, and nothing is known of it"

    @promised("troubleshooting.md")
    def errors(self) -> Problems:
        """No error is left unhandled, and none is internal."""
        yield from self.world.history.errors

    @promised("troubleshooting.md")
    def failures(self) -> Problems:
        """A refresh fails only after a failed look-up or connection, a bad response, a
        bad body or a full disk.
        """
        world = self.world
        for account, known in self.known():
            for name, reason, began in known.failures:
                troubled_at = max(
                    world.trouble.get(account, -inf),
                    world.trouble.get("", -inf),  # the token is not valid
                    world.weather.unreachable_at,
                )
                if reason == "dns":
                    ends = (at for at in world.name_failures if at <= world.seconds())
                    troubled_at = max(ends, default=-inf)
                # A record may be a spoiled one, and a disk full.
                if reason not in {"decode", "log_file"} and troubled_at < began - 0.01:
                    yield f"{account}: {name} fails without a cause: {reason}"
            known.failures.clear()

    @promised("configuration.md")
    def lost(self) -> Problems:
        """Metrics stay, also over a reload, until they expire or may not be read."""
        for account, known in self.known():
            for name in known.lost:
                yield f"{account}: the records of {name} are lost"
            known.lost.clear()

    @promised("accounts.md")
    def removed(self) -> Problems:
        """An account that was removed sends no request."""
        exporter = self.world.exporter
        if exporter is None:
            return
        for request, _ in self.requests:
            if request.account and request.account not in exporter.settings:
                yield f"{request.path} is asked for {request.account}, which is removed"

    @promised("reference.md")
    def left_over(self) -> Problems:
        """An exporter that has ended leaves no timer, connection, port or open file."""
        yield from self.world.left_over

    @promised("troubleshooting.md")
    def lines(self) -> Problems:
        """The log has one line for the beginning of each failure and one for its end,
        and neither personal data nor a secret.
        """
        for account, line in self.world.history.lines:
            if "zq" in line or "nbp_" in line:
                yield f"personal data or a secret in the log: {line}"
            for expression, before, after in (
                (_FAILS, ("",), "fails"),
                (_EXPIRED, ("", "fails"), "expired"),
                (_RECOVERS, ("fails", "expired"), ""),
                (_UNSUPPORTED, ("", "fails", "expired"), ""),
            ):
                if match := expression.search(line):
                    key = account, next(filter(None, match.groups()))
                    if self.log_states.get(key, "") not in before:
                        yield f"{account}: {line!r} after {self.log_states.get(key)!r}"
                    self.log_states[key] = after
        self.world.history.lines.clear()
        for account, known in self.known():
            yield from self._missing_lines(account, known)

    def _missing_lines(self, account: str, known: Knowledge) -> Problems:
        freshness = known.network.states
        for name, standing in freshness.items():
            is_logged = bool(self.log_states.get((account, name)))
            needs_line = standing.failures and name not in known.failed_as_peers
            if needs_line and not is_logged:
                yield f"{account}: no line tells that {name} fails"
            has_ended = standing.error is None and not standing.withdrawn
            if is_logged and has_ended and standing.ended_at is not None:
                yield f"{account}: no line tells that {name} fails no more"

    @promised(PROBE)
    def slots(self) -> Problems:
        """An account has one request for peers and one for anything else under way, and
        up to three more without a header after 5 s; a token has four of each.
        """
        if not self.requests:
            return
        pending = self.world.upstream.pending
        least = self.world.seconds() - SILENT_SECONDS + MAX_SENDING_SECONDS
        others = [r for r in pending if r.path != "api/peers"]
        fresh = [r for r in others if r.began > least and not self._has_no_slot(r)]
        for what, requests, of_token, of_account in (
            ("for peers", [r for r in pending if r.path == "api/peers"], SLOTS, 1),
            ("for others", fresh, SLOTS, 1),
            ("for others, silent or not,", others, inf, 1 + MAX_SILENT),
        ):
            for whose, limit in (("token", of_token), ("account", of_account)):
                found = Counter(getattr(request, whose) for request in requests)
                for one, count in found.items():
                    if count > limit and one:
                        yield f"{count} requests {what} of {one} at once"

    @promised(PROBE)
    def budget(self) -> Problems:
        """The exporter uses nine tenths of the rate and half of the burst of a stated
        limit, no more.
        """
        # A retry within a refresh does not wait for the budget.
        if (stated := self.world.stated_limit) is None:
            return
        rate, burst = stated
        for request, is_retry in self.requests:
            is_late = request.at - request.began > MAX_SENDING_SECONDS
            # Without a new connection it counts as unsent: see UpstreamAgent.
            is_lost = request.state == "reset" and request.at == request.began
            is_counted = not (is_retry or is_late or is_lost)
            if request.account in SHARING and is_counted:
                gained = 0.9 * rate / 60.0 * (request.at - self._budget_at)
                limit = max(1.0, burst / 2)
                self._budget_left = min(limit, self._budget_left + gained) - 1.0
                self._budget_at = request.at
                if self._budget_left < -0.5:
                    yield f"more requests than {stated}: {request.path}"

    @promised("connections.md")
    def silence(self) -> Problems:
        """After a 429 all requests with the token pause for as long as it asks."""
        for request in self._watched:
            if request.answered_at is not None and request.path != PROBE_PATH:
                self._note_response(request, request.answered_at)
        pending = self.world.upstream.pending
        self._watched = [r for r in self._watched if r in pending]
        for request, retry in self.requests:
            self._watched.append(request)
            pause = self._pauses.get(request.token)
            if (
                pause
                and pause.begin + 1.0 < request.began < pause.end - 1.0
                and not retry
            ):
                if request.path != "api/peers":
                    yield f"{request.path} is asked for in a pause, {pause}"
                elif request.began - pause.peers_at < MAX_PAUSE - 1.0:
                    yield f"the peers are asked for too often in a pause, {pause}"
                pause.peers_at = request.began

    def _note_response(self, request: Request, at: float) -> None:
        """Begin a pause at the first 429. End it at another response to a later
        request. Requests within a second of the first 429 were already running.
        """
        pause = self._pauses.get(request.token)
        if pause is not None and request.began <= pause.begin + 1.0:
            return
        if request.state.startswith("429"):
            wait = request.wait or 0.0
            seconds = wait if wait >= 1.0 else MIN_PAUSE
            self._pauses[request.token] = Pause(at, at + seconds, at)
        elif pause is not None:
            pause.end = min(pause.end, request.began)

    @promised("troubleshooting.md")
    def waits(self) -> Problems:
        """After a 503 with Retry-After a list, but for the peers, is requested again
        after that time, or an interval.
        """
        for request, _ in self.requests:
            key = request.account, request.path
            before, self._waits[key] = self._waits.get(key), request
            if before is None or before.state != "503 and a wait":
                continue
            known, name = self.world.known.get(request.account), PATHS.get(request.path)
            if known is None or before.answered_at is None or name in {None, *_DELAYED}:
                continue
            assert name is not None
            assert before.wait is not None
            # These make resources due: a reload, a token, and the peers' recovery. If a
            # refresh of the token's owner finds a new token, it is repeated at once.
            is_due = max(known.replaced_at, known.recovered_at) >= before.began
            is_due |= name in known.network.pipeline.untried
            if name == PEERS or is_due or request.token != before.token:
                continue
            wait = min(before.wait, known.network.states.intervals[name])
            if request.began < before.answered_at + wait - 0.01:
                passed = request.began - before.answered_at
                yield f"{request.account}: {name} waits {passed:.1f} s, not {wait:.0f}"

    @promised(FINDINGS)
    def dates(self) -> Problems:
        """A finding that stays keeps the time when it was found first, also over a
        reload.
        """
        for account, known in self.world.known.items():
            found = known.network.findings.found
            before = self._found_at.get(account)
            if before is not None and before[0] is found:
                continue
            others = known.network.inventory.former_accounts
            # Of no list: it may end and begin again between two looks.
            dates = {
                finding.key: finding.found_at
                for finding in found.findings
                if finding.kind is not TOKEN_NOT_WATCHED
            }
            self._found_at[account] = found, others, dates
            if before is None or others > before[1]:
                continue
            for key in dates.keys() & before[2].keys():
                if dates[key] != before[2][key]:
                    words = f"found at {before[2][key]:.2f}, now at {dates[key]:.2f}"
                    yield f"{account}: {key} was {words}"
        for account in self._found_at.keys() - self.world.known.keys():
            del self._found_at[account]

    @promised(FINDINGS)
    def reported(self) -> Problems:
        """A finding is reported only if it was true at an instant since the oldest
        reading that it rests on. Each finding that lasts is reported.
        """
        return self.judge.judge()

    # Each minute

    @promised("configuration.md", every=60.0)
    def age(self) -> Problems:
        """Nothing is published that is older than `METRICS_MAX_AGE`, and nothing
        expires earlier.
        """
        now = self.world.seconds()
        for account, known in self.world.known.items():
            freshness = known.network.states
            for name, at in known.read_at.items():
                if name in freshness and name != ACCESS_LOG:
                    max_age = known.max_age_of(name)
                    # A withdrawal waits for the computations before it.
                    late = now - self.world.computed_at > MAX_IDLE_SECONDS
                    if late and now - known.aging_since[name] > max_age + 1.0:
                        yield f"{account}: {name} is {now - at:.0f} s old"
            for name, (age, interval) in known.expired_after.items():
                least = known.max_age or MIN_MAX_AGE
                # The interval of the peers may have been shorter when they were read.
                if name in freshness and name != PEERS:
                    least = max(least, OVERDUE_INTERVALS * interval)
                if age < least - 1.0:
                    yield f"{account}: {name} has expired after {age:.0f} s"
            known.expired_after.clear()

    @promised(PROBE, every=15.0)
    def fresh(self) -> Problems:
        """The peers are fresh soon after NetBird works again, and then all else without
        a pause; nothing waits for ever, nor while no request is under way.
        """
        yield from self._idle()
        now, limits = self.world.seconds(), self.world.upstream.limits
        limited = {self.world.upstream.tokens[token][0] for token in limits}
        for account, known in self.world.known.items():
            well = now - max(self.world.well_at[account], self.world.computed_at)
            if limited & {account, "beta" if account == "gamma" else account}:
                continue  # The budget decides.
            refused = now - self._refused_at(account)
            if refused < 2 * HOUR:
                continue
            freshness = known.network.states
            for name, standing in freshness.items():
                wait = max(15.0, 1.1 * freshness[PEERS].interval) + known.timeout
                if name != PEERS:  # It waits for the peers, then for a slot.
                    wait += 2.2 * standing.interval + 30.0
                # A body that cannot be decoded may be a spoiled one.
                fails = standing.error is not None and standing.error.reason != "decode"
                if standing.error is not None and standing.error.reason == "log_file":
                    usable = now - self.world.disturbed_at > wait + 5.0
                    fails = usable and not self.world.disk.is_troubled
                if well > wait + 5.0 and fails:
                    yield f"{account}: {name} fails {well:.0f} s after all was well"
                at = known.read_at.get(name, 0.0)
                late = min(well, now - at) > wait + 5.0 and standing.error is None
                if name == PEERS and late:
                    yield f"{account}: {name} is {now - at:.0f} s old, and all is well"
                if name not in _DELAYED and known.is_missed(name):
                    since = min(well, now - known.recovered_at)
                    if since > known.timeout + MINUTE + self._queue_seconds(
                        account, refused
                    ):
                        yield f"{account}: {name} waits for {since:.0f} s after all"
                tried = min(well, now - known.tried_at.get(name, 0.0))
                requested = standing.supported is True and name != ACCESS_LOG
                if tried > wait + 60.0 and requested and refused > BUDGET_SECONDS:
                    yield f"{account}: {name} is not asked for since {tried:.0f} s"

    def _queue_seconds(self, account: str, refused: float) -> float:
        """Return seconds until the budget has allowed all requests once.

        Args:
            refused: seconds since the last 429 for the account's token.
        """
        if account in SHARING and (stated := self.world.stated_limit) is not None:
            per_minute = 0.9 * stated[0]
        else:  # It grows from a 429 on.
            per_minute = MIN_RATE + GROWTH * refused / MINUTE
        networks = (one.network for one in self._with_token_of(account))
        return sum(len(one.states) for one in networks) / per_minute * MINUTE

    def _idle(self) -> Problems:
        now = self.world.seconds()
        for account, known in self.world.known.items():
            freshness = known.network.states
            if (
                now - self._refused_at(account) < BUDGET_SECONDS
                or freshness[PEERS].error
            ):
                continue
            if account in SHARING and self.world.stated_limit:
                continue  # The budget decides.
            if now - self._unreachable_at < known.timeout + MAX_IDLE_SECONDS:
                continue  # a request may be connecting
            if now - self.world.computed_at < MAX_IDLE_SECONDS:
                continue
            for name, standing in freshness.items():
                busy_at = self._busy_at.get((account, name == PEERS), 0.0)
                idle = now - max(known.recovered_at, busy_at, self._room_at)
                requested = name not in _DELAYED and standing.supported is not False
                wait = standing.interval
                if not standing.records:
                    wait *= RESOURCE_BY_NAME[name].idle_intervals
                if (error := standing.error) is not None and not error.retry_after:
                    failures = min(standing.failures, 16)
                    backoff = max(standing.seconds, FIRST_WAIT * 2.0**failures)
                    wait = min(wait, backoff)
                # A reload may change the interval.
                tried = max(known.tried_at.get(name, now), known.replaced_at)
                due = tried + 1.1 * wait
                if requested and min(idle, now - due) > MAX_IDLE_SECONDS:
                    words = "waits, and no request is under way"
                    yield f"{account}: {name} {words} for {idle:.0f} s"

    def _refused_at(self, account: str) -> float:
        """Return when the NetBird API last sent a 429 for this account's token."""
        return max(one.refused_at for one in self._with_token_of(account))

    def _with_token_of(self, account: str) -> list[Knowledge]:
        names = SHARING if account in SHARING else {account}
        return [self.world.known[name] for name in names & self.world.known.keys()]

    # Each quarter of an hour

    @promised(PAGES, every=QUARTER)
    def pages(self) -> Problems:
        """A page is byte for byte what its inventory renders. It has the lines of a
        process that starts now, and the joined values of the plain reference.
        """
        for account, known in self.world.known.items():
            # Bodies read before the clock's last jump may belong to another day.
            if (
                known.is_read_since(self.world.jumped_at)
                and not known.is_between_days()
                and known.has_new_inputs()
            ):
                for words in known.differences():
                    yield f"{account}: {words}"

    @promised("security.md", every=QUARTER)
    def web(self) -> Problems:
        """Every page answers, tells no secret and no personal data unless it may, `/sd`
        is 503 or true, and metrics are the same with gzip. No page shows an account
        that was removed.
        """
        exporter = self.world.exporter
        if exporter is None or not exporter.machine.ports:
            return
        for path, statuses, account in _PAGES:
            share = _METRICS_SHARE if path in _METRICS_PATHS else _OTHERS_SHARE
            if self._chance.random() > share:
                continue
            was_there = account in exporter.accounts
            status, body = exporter.machine.get(path)
            if was_there != (account in exporter.accounts):
                continue  # Its removal has ended meanwhile.
            is_removed = account is not None and not was_there
            if is_removed or (path[:7] == "/lookup" and not exporter.has_lookup):
                if status != 404:
                    yield f"{path} is {status}, and there is none: {body[:200]!r}"
                continue
            if status not in statuses:
                yield f"{path} is {status}: {body[:200]!r}"
            if account is None:
                yield from self._shown(path, body)
            yield from self._private(path, body, account)
            # The table of look-ups is made after the page.
            is_late = path[:7] == "/lookup" and exporter.machine.compute_thread.busy
            if account and path.startswith(_PEER_LISTS) and not is_late:
                yield from self._peers(path, account, status, body)
            if account and path.startswith("/status.json"):
                yield from self._status(account, body)
            if account and path.startswith("/metrics?account"):
                yield from self._metrics(account, body)
                yield from self._zipped(path, body)

    def _shown(self, path: str, body: bytes) -> Problems:
        """Check that a page of all accounts has none that was removed."""
        for name in NAMES:
            if name not in self.world.known:
                shown = re.search(
                    rb"account=%b\b|\"%b\"" % (2 * (name.encode(),)), body
                )
                if shown:
                    yield f"{path} shows {name}, which is removed"

    def _private(self, path: str, body: bytes, account: str | None) -> Problems:
        if SECRET.encode() in body or b"nbp_" in body:
            yield f"{path} tells a secret"
        names = [account] if account else [*self.world.known]
        personal = [self.world.known[name].network.inventory.personal for name in names]
        for kind, mark in MARKS.items():
            if all(kind not in kinds for kinds in personal) and mark.encode() in body:
                at = body.index(mark.encode())
                yield f"{path} tells a {kind}: {body[max(0, at - 80) : at + 40]!r}"

    def _peers(self, path: str, account: str, status: int, body: bytes) -> Problems:
        """Check that a list of peers is there if it can be, and has all of them."""
        known = self.world.known[account]
        is_complete = {"peers", "groups"} <= known.bodies.keys()
        if is_complete != (status == 200):
            yield f"{path} is {status}, {sorted(known.bodies)} are known"
        elif is_complete:
            inventory, rows = known.fresh_inventory(), json.loads(body)
            if path.startswith("/sd"):
                found = {row["labels"]["__meta_netbird_peer_id"] for row in rows}
                expected = {peer.id for peer in inventory.peers or () if peer.ip}
            else:
                found = {row["peer_id"] for row in rows}
                expected = {peer.id for peer in inventory.detailed_peers()}
            if found != expected:
                yield f"{path}: {sorted(found ^ expected)[:3]} differ"

    def _status(self, account: str, body: bytes) -> Problems:
        [entry] = json.loads(body)["accounts"]
        network = self.world.known[account].network
        peers, counts = network.inventory.peers, network.findings.found.counts
        total = None if entry["peers"] is None else entry["peers"]["total"]
        if total != (None if peers is None else len(peers)):
            yield f"/status.json of {account} has {total} peers, which is wrong"
        if (entry["finding_counts"] or {}) != counts:
            yield f"/status.json of {account}: {entry['finding_counts']}, not {counts}"
        failing = {n for n, one in network.states.items() if one.error is not None}
        shown = {name for one in entry["failures"] for name in one["resources"]}
        if shown != failing:
            words = f"{sorted(shown)} fail, where {sorted(failing)} do"
            yield f"/status.json of {account}: {words}"

    def _metrics(self, account: str, body: bytes) -> Problems:
        network = self.world.known[account].network
        if not body.startswith(network.text()):
            yield f"/metrics of {account} does not begin with its page"
        up = re.search(rb"^netbird_api_up ([01])", body, re.MULTILINE)
        expected = network.states[PEERS].up
        # The exporter's own metrics are rendered once a second.
        if (None if up is None else up[1] == b"1") is not expected:
            yield f"/metrics of {account}: netbird_api_up is {up}, not {expected}"

    def _zipped(self, path: str, body: bytes) -> Problems:
        assert self.world.exporter is not None
        _, zipped = self.world.exporter.machine.get(path, "gzip")
        try:
            same = gzip.decompress(zipped) == body
        except (OSError, EOFError, zlib.error) as error:
            yield f"{path} as gzip: {error}"
        else:
            if not same:
                yield f"{path} as gzip is another page"

    @promised(FINDINGS, every=QUARTER)
    def findings(self) -> Problems:
        """Findings are those of a fresh look."""
        if (
            self.world.exporter is None
            or self.world.exporter.machine.compute_thread.busy
        ):
            return  # The findings are computed after the page.
        for account, known in self.world.known.items():
            network, now = known.network, self.world.now()
            if network.states[PEERS].error is not None:
                continue  # Findings are updated after a successful refresh.
            if self.world.seconds() - self.world.jumped_at < HOUR:
                continue
            last = network.findings
            # Some findings depend on time alone and appear between two refreshes.
            ago = self.world.seconds() - known.read_at.get(PEERS, 0.0)
            snapshot = network.snapshot()
            now_found, then_found = (
                update_findings(replace(snapshot, now=at), PEERS, KeptFindings())
                for at in (now, now - ago)
            )
            if not last.found.counts:
                continue
            # Names in a finding's text may be outdated until the peers' refresh.
            current, new, old = map(_found_keys, (last, now_found, then_found))
            if wrong := (current - new - old) | ((new & old) - current):
                yield f"{account}: {wrong}, anew {sorted(new)}"
            reported = {finding.key for finding in last.found.findings}
            if wrong := reported ^ (current - last.waits.keys()):
                yield f"{account}: {wrong} are neither reported nor kept back"
            ends = [wait.until for wait in last.waits.values()]
            if min(ends, default=inf) < self.world.seconds() - LONGEST_COMPUTATION:
                yield f"{account}: {last.waits} waits for more than three minutes"

    @promised("logs.md", every=QUARTER)
    def logs(self) -> Problems:
        """Each event and each row of the access log is written and counted once, or
        counted as lost. It has all fields that it may have. Events are in order.
        """
        now, world = self.world.seconds(), self.world
        for name, lines in world.logs.items():
            account, _, kind = name.partition(".")
            ids, new = lines.read()
            # A reload that is refused leaves a log where it was.
            other_ids, other_new = world.other_logs[name].read()
            if account not in world.known:
                continue
            yield from self._counted(name, len(ids) + len(other_ids))
            twice = [id_ for id_, count in Counter(ids).items() if count > 1]
            if twice:
                yield f"{name}: {twice[:5]} stand twice"
            log = world.account(account).log(kind)
            yield from self._lines(name, new + other_new)
            if isinstance(log, EventLog):
                for one, other in pairwise(map(int, ids)):
                    if one >= other and other not in log.delayed:
                        yield f"{name}: {other} comes after {one}"
                        break
            freshness = world.known[account].network.states
            lag = 3 * HOUR  # The access log is read after all other resources.
            if kind == "events":
                lag = SETTLED_SECONDS + 2.2 * freshness[kind].interval
                if freshness[kind].supported is False:  # It is requested each hour.
                    lag += 1.1 * HOUR
            settled = now - max(world.well_at[account], world.disturbed_at) > lag
            settled = settled and now - self._refused_at(account) > BUDGET_SECONDS
            settled = settled and not world.disk.is_troubled
            missing = log.every_id() - set(ids) - lines.excused
            lost = missing - log.recent(now + START - lag) - world.uncertain
            is_judged = settled and self._is_read(account, kind)
            if lost and is_judged and self._has_moved(name):
                yield f"{name}: {sorted(lost)[:5]} of {log.last} are missing"
            if isinstance(log, EventLog):
                log.forget_up_to(min(map(int, missing), default=log.last + 1) - 1)

    def _lines(self, name: str, rows: list[Row]) -> Problems:
        """Check that new lines have all permitted fields and no other one."""
        account, _, kind = name.partition(".")
        line = LINES[kind]
        permitted = self.world.permitted(account)
        ids = {row["id"] for row in rows}
        sent = self.world.account(account).log(kind).rows(ids)
        for row in rows:
            if row["id"] in sent:
                expected = [line(sent[row["id"]], account, p) for p in permitted]
                if row not in expected:
                    yield f"{name}: {row}, where {expected[0]} is promised"
                    break

    def _counted(self, name: str, lines: int) -> Problems:
        account, _, kind = name.partition(".")
        assert self.world.exporter is not None
        _, page = self.world.exporter.machine.get(f"/metrics?account={account}")
        counter = re.search(rb"^%b (\d+)" % _LINE_COUNTERS[kind], page, re.MULTILINE)
        if account not in self.world.exporter.accounts:
            return  # Its removal has ended meanwhile.
        assert counter is not None
        # A log that fails may have written lines that it counts when it succeeds.
        fails = b"_writable 0" in page
        if name not in self._lines_before:
            # A replaced account may still write, or a log may count later.
            if not self.world.disk.may_be_killed and not fails:
                self._lines_before[name] = lines - int(counter[1])
            return
        if fails and kind == "events":  # the metric is of this log
            return
        uncounted = lines - self._lines_before[name] - int(counter[1])
        # Lines that are being written now are counted at the next check.
        if uncounted and uncounted == self._uncounted.get(name):
            yield f"{name}: {uncounted} lines are not counted"
        self._uncounted[name] = uncounted

    def _has_moved(self, name: str) -> bool:
        """Return whether a log is at its new path: a refused reload leaves it."""
        account, _, kind = name.partition(".")
        exporter = self.world.exporter
        if exporter is None or account not in exporter.settings:
            return False
        settings = exporter.settings[account]
        file = settings.events_file if kind == "events" else settings.access_log_file
        return file is not None and file.name == self.world.logs[name].file.name

    def _is_read(self, account: str, kind: str) -> bool:
        """Return whether a log is read, and the budget has room for that."""
        world = self.world
        limited = {n for t in world.upstream.limits for n in world.upstream.tokens[t]}
        if account in limited or kind == "events":
            return account not in limited
        freshness = world.known[account].network.states
        return ACCESS_LOG in freshness and freshness[ACCESS_LOG].supported is True

    @promised("metrics.md", every=QUARTER)
    def counted(self) -> Problems:
        """Each response to a valid token is counted once, by its status."""
        exporter, upstream = self.world.exporter, self.world.upstream
        if exporter is None:
            return
        for account, known in self.world.known.items():
            _, page = exporter.machine.get(f"/metrics?account={account}")
            reader = exporter.accounts.get(account)
            if reader is None or reader.network is not known.network:
                continue  # A reload has ended meanwhile.
            counted = Counter({c.decode(): int(n) for c, n in _ANSWERS.findall(page)})
            sent = Counter(
                {c: n for (a, c), n in upstream.answered.items() if a == account}
            )
            unsure, before = upstream.incomplete[account], self._answers.get(account)
            self._answers[account] = counted, sent, unsure
            if before is None:
                continue
            # A request without a valid token has no account, and 999 counts as other.
            for code in {*counted, *sent} - {"none", "other", "401", "999"}:
                more = counted[code] - before[0][code] - sent[code] + before[1][code]
                if not 0 <= more <= unsure - before[2]:
                    yield f"{account}: {more} too many answers {code}"

    # Each hour

    @promised(PROBE, every=HOUR)
    def traffic(self) -> Problems:
        """In an hour an account sends no more requests than its intervals and retries
        need.
        """
        for account, known in self.world.known.items():
            freshness = known.network.states
            refreshes = sum(
                MAX_RETRIES
                + HOUR / (OUTAGE_INTERVAL if name == PEERS else standing.interval)
                for name, standing in freshness.items()
            )
            if self._sent[account] > MAX_ATTEMPTS * refreshes:
                yield f"{account}: {self._sent[account]} requests in an hour"
        self._sent.clear()

    # Each day

    @promised(FINDINGS, every=DAY)
    def judged(self) -> Problems:
        """Findings of several lists were judged."""
        return self.judge.idle()

    @promised("performance.md", every=DAY)
    def memory(self) -> Problems:
        """The memory that is held is bounded by what is there."""
        gc.collect()
        objects = len(gc.get_objects())
        if objects > MAX_OBJECTS:
            yield f"{objects} objects, {MAX_OBJECTS} are allowed"
        kept = sum(self._bodies())
        if kept > len(NAMES):  # A log may be writing the newest body.
            yield f"{kept} bodies are kept"
        for account, known in self.world.known.items():
            for what, size, limit in known.sizes():
                if size > limit:
                    yield f"{account}: {size} {what}, {limit} are allowed"

    def _bodies(self) -> Iterator[bool]:
        """Yield for each body whether an object outside the simulated API holds it."""
        ours = set(map(id, self.world.bodies()))
        for holder in gc.get_objects():
            for held in gc.get_referents(holder):
                if type(held) is bytes and held[:3] == b'[{"' and len(held) > 200:
                    yield id(held) not in ours


_AT_EACH_STEP = [invariant for invariant in INVARIANTS if not invariant.every]


class Checks:
    """All invariants, each checked when it is due."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._checker = Checker(world)
        self._due_at = {i: 0.0 for i in INVARIANTS if i.every}
        self._next_at = 0.0
        self.counts = dict.fromkeys((i.name for i in INVARIANTS), 0)
        self.judged = self._checker.judge.counts

    def check(self) -> None:
        """Check the invariants that are due. Raise Violation if one does not hold."""
        world, now = self._world, self._world.seconds()
        world.follow()
        self._checker.prepare()
        for known in world.known.values():
            known.update(now)
        self._check_all(_AT_EACH_STEP)
        if now >= self._next_at:
            due = [invariant for invariant, at in self._due_at.items() if now >= at]
            self._check_all(due)
            for invariant in due:
                self._due_at[invariant] = now + invariant.every
            self._next_at = min(self._due_at.values())
        for known in world.known.values():
            known.has_changed = False

    def _check_all(self, invariants: Iterable[Invariant]) -> None:
        for invariant in invariants:
            self.counts[invariant.name] += 1
            for words in invariant.check(self._checker):
                raise Violation(f"{invariant.name}: {words}")
