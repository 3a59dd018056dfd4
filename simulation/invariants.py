"""What must hold, whatever happens: the table of invariants."""

import gc
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

from msgspec import Struct

from api_exporter.netbird.resources import ACCESS_LOG, UP
from api_exporter.refresh.budget import SLOTS
from api_exporter.serving.token_bucket import TokenBucket
from simulation.account import MARKS, SECRET
from simulation.knowledge import Knowledge
from simulation.world import DAY, HOUR, NAMES, QUARTER, START, Violation, World
from tests.parts import limiter

Problems = Iterator[str]

_PAGES = (
    ("/", {200}),
    ("/health", {200}),
    ("/ready", {200, 503}),
    ("/metrics", {200}),
    ("/sd/accounts", {200}),
    ("/runbooks", {200}),
    ("/nowhere", {404}),
    ("/metrics?account=nobody", {404}),
)
_OF_ACCOUNT = (
    ("/?account={}", {200}),
    ("/health?account={}", {200}),
    ("/ready?account={}", {200, 503}),
    ("/metrics?account={}", {200}),
    ("/sd?port=9100&account={}", {200, 503}),
)
"""All pages, and the statuses that they may have."""

_FAILS = re.compile(r"cannot refresh (\w+):")
_EXPIRED = re.compile(r"metrics of (\w+) have expired")
_AGAIN = re.compile(r"(\w+) can be refreshed again")
_UNSUPPORTED = re.compile(
    r"this token may not read (\w+)|does not have (\w+)|(\w+) is not requested"
)

_OF_A_PEER = re.compile(r'^netbird_api_peer_\w+{peer_id="([^"]+)"', re.MULTILINE)

SETTLED = 2 * HOUR
"""Seconds after the last trouble in which a log has caught up."""

OBJECTS = 400_000
"""Objects in a process with four accounts, at most."""


class Checker:
    """What the invariants remember from one look to the next."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.told: dict[tuple[str, str], str] = {}
        self.bucket: TokenBucket | None = None
        self._life: object = None
        self._objects = 0

    def began(self) -> None:
        """Another life of the exporter has begun, or none is there."""
        if self._life is not self.world.life:
            self._life = self.world.life
            self.told.clear()
            stated = self.world.stated
            self.bucket = limiter(*stated) if stated else None

    def known(self) -> Iterator[tuple[str, Knowledge]]:
        """Accounts of which anything was refreshed in this step."""
        return ((n, k) for n, k in self.world.known.items() if k.touched)

    # At each step

    def up(self) -> Problems:
        for account, known in self.known():
            for name, standing in known.network.telemetry.standings.items():
                if standing.up and name not in known.read_at:
                    yield f"{account}: {name} is up, and nothing is known of it"

    def errors(self) -> Problems:
        yield from self.world.history.errors

    def left_over(self) -> Problems:
        yield from self.world.left_over

    def lines(self) -> Problems:
        """Of the log: a failure begins once before it ends, and ends once."""
        for account, line in self.world.history.lines:
            if "zq" in line or "nbp_" in line:
                yield f"personal data or a secret in the log: {line}"
            for expression, before, after in (
                (_FAILS, ("",), "fails"),
                (_EXPIRED, ("", "fails"), "expired"),
                (_AGAIN, ("fails", "expired"), ""),
                (_UNSUPPORTED, ("", "fails", "expired"), ""),
            ):
                if match := expression.search(line):
                    key = account, next(filter(None, match.groups()))
                    if self.told.get(key, "") not in before:
                        yield f"{account}: {line!r} after {self.told.get(key)!r}"
                    self.told[key] = after
        self.world.history.lines.clear()

    def slots(self) -> Problems:
        if not self.world.asked:
            return
        under_way = self.world.upstream.under_way
        accounts = Counter((r.account, r.path == "api/peers") for r in under_way)
        tokens = Counter((r.token, r.path == "api/peers") for r in under_way)
        for found, most in ((accounts, 1), (tokens, SLOTS)):
            for (whose, peers), count in found.items():
                if count > most and whose:
                    what = "for peers" if peers else "for others"
                    yield f"{count} requests {what} of {whose} at once"

    def budget(self) -> Problems:
        asked, bucket = self.world.asked, self.bucket
        for request in asked:
            shared = request.account in {"beta", "gamma"}
            if bucket is not None and shared and bucket.wait(request.at):
                yield f"more requests than {self.world.stated}: {request.path}"
        asked.clear()

    # Each minute

    def age(self) -> Problems:
        now = self.world.seconds()
        for account, known in self.world.known.items():
            standings = known.network.telemetry.standings
            for name, at in known.read_at.items():
                if name in standings and name != ACCESS_LOG:
                    most = known.longest(name)
                    if now - at > most + 1.0:
                        yield f"{account}: {name} is {now - at:.0f} s old"

    def fresh(self) -> Problems:
        """What the schedule promises after the last trouble."""
        now, limits = self.world.seconds(), self.world.upstream.limits
        refused = {self.world.upstream.tokens[token][0] for token in limits}
        for account, known in self.world.known.items():
            well = now - self.world.troubled[account]
            if refused & {account, "beta" if account == "gamma" else account}:
                continue  # the budget decides
            if now - known.refused_at < 2 * HOUR:
                continue
            for name, standing in known.network.telemetry.standings.items():
                period = standing.period
                wait = max(15.0, 1.1 * period) + known.timeout
                if name != UP:  # a failed one comes again after its period at most
                    wait += 1.1 * period + 30.0
                # What cannot be decoded may be odd by itself.
                fails = standing.error is not None and standing.error.reason != "decode"
                if well > wait + 5.0 and fails:
                    yield f"{account}: {name} fails {well:.0f} s after all was well"
                at = known.read_at.get(name, 0.0)
                late = min(well, now - at) > wait + 5.0 and standing.error is None
                if name == UP and late:
                    yield f"{account}: {name} is {now - at:.0f} s old, and all is well"

    # Each quarter of an hour

    def pages(self) -> Problems:
        for account, known in self.world.known.items():
            # What was known at the clock's last jump may tell of another day.
            if known.since(self.world.jumped) and known.changed():
                for words in (
                    known.stale(),
                    known.unlike_a_fresh_one(),
                    known.unlike_the_reference(),
                ):
                    if words:
                        yield f"{account}: {words}"

    def gone(self) -> Problems:
        """Ids of peers that the last good body does not have."""
        for account, known in self.world.known.items():
            told = set(_OF_A_PEER.findall(known.network.text().decode()))
            body, _ = known.bodies.get(UP, (b"", 0.0))
            for id_ in known.account.removed & told:
                if id_.encode() not in body:
                    yield f"{account}: peer {id_} is gone"

    def web(self) -> Problems:
        life = self.world.life
        if life is None or not life.machine.ports:
            return
        wanted: list[tuple[str, set[int], str | None]] = [
            (path, statuses, None) for path, statuses in _PAGES
        ]
        for name in NAMES:
            wanted += [(path.format(name), s, name) for path, s in _OF_ACCOUNT]
        for path, statuses, account in wanted:
            status, body = life.machine.get(path)
            if status not in statuses:
                yield f"{path} is {status}: {body[:200]!r}"
            yield from self._private(path, body, account)
            if account and path.startswith("/sd"):
                yield from self._discovery(account, status, body)
            if account and path.startswith("/metrics"):
                yield from self._metrics(account, body)

    def _private(self, path: str, body: bytes, account: str | None) -> Problems:
        if SECRET.encode() in body or b"nbp_" in body:
            yield f"{path} tells a secret"
        names = [account] if account else NAMES
        personal = [self.world.known[name].network.inventory.personal for name in names]
        for kind, mark in MARKS.items():
            if all(kind not in told for told in personal) and mark.encode() in body:
                at = body.index(mark.encode())
                yield f"{path} tells a {kind}: {body[max(0, at - 80) : at + 40]!r}"

    def _discovery(self, account: str, status: int, body: bytes) -> Problems:
        known = self.world.known[account]
        there = {"peers", "groups"} <= known.bodies.keys()
        if there != (status == 200):
            yield f"/sd of {account} is {status}, {sorted(known.bodies)} are known"
        elif there:
            told = {t["labels"]["__meta_netbird_peer_id"] for t in json.loads(body)}
            peers = known.started_now().peers or ()
            wanted = {peer.id for peer in peers if peer.ip}
            if told != wanted:
                yield f"/sd of {account}: {sorted(told ^ wanted)[:3]} differ"

    def _metrics(self, account: str, body: bytes) -> Problems:
        network = self.world.known[account].network
        if not body.startswith(network.text()):
            yield f"/metrics of {account} does not begin with its page"
        up = re.search(rb"^netbird_api_up ([01])", body, re.MULTILINE)
        wanted = network.telemetry.standings[UP].up
        # Our own metrics are made once a second.
        if (None if up is None else up[1] == b"1") is not wanted:
            yield f"/metrics of {account}: netbird_api_up is {up}, not {wanted}"

    def findings(self) -> Problems:
        for account, known in self.world.known.items():
            network, now = known.network, self.world.now()
            if network.telemetry.standings[UP].error is not None:
                continue  # they are looked for after a refresh
            if self.world.seconds() - self.world.jumped < HOUR:
                continue
            there = network.attention.found
            # Some wait for their day, which comes between two refreshes, too.
            ago = self.world.seconds() - known.read_at.get(UP, 0.0)
            fresh, then = (
                network.attention.of(network.inventory, network.telemetry.standings, at)
                for at in (now, now - ago)
            )
            anew = (fresh.counts, then.counts)
            if all(anew) and there.counts and there.counts not in anew:
                one, other = (
                    set(map(str, there.findings)),
                    set(map(str, fresh.findings)),
                )
                yield f"{account}: {sorted(one - other)}, anew {sorted(other - one)}"

    # Each hour

    def logs(self) -> Problems:
        now, world = self.world.seconds(), self.world
        for name, lines in world.logs.items():
            account, _, kind = name.partition(".")
            ids = lines.ids
            twice = [id_ for id_, count in Counter(ids).items() if count > 1]
            if twice:
                yield f"{name}: {twice[:5]} stand twice"
            log = world.account(account)
            told = log.events.told if kind == "events" else log.requests.told
            prefix = "" if kind == "events" else "row-"
            if kind == "events":
                for one, other in pairwise(map(int, ids)):
                    if one >= other:
                        yield f"{name}: {other} comes after {one}"
                        break
            settled = now - max(world.troubled[account], world.disturbed) > SETTLED
            settled = settled and not world.disk.full
            missing = {f"{prefix}{n}" for n in range(1, told + 1)} - set(ids)
            young = log.events.young if kind == "events" else log.requests.young
            late = missing - young(now + START - 3 * HOUR) - world.uncertain
            if settled and late and self._asks(account, kind):
                yield f"{name}: {sorted(late)[:5]} of {told} are missing"
            if kind == "events" and ids and not missing:
                log.events.forget(int(ids[-1]))

    def _asks(self, account: str, kind: str) -> bool:
        """Whether a log is asked for, and the budget has room for that."""
        world = self.world
        if account not in world.known:
            return False
        limited = {n for t in world.upstream.limits for n in world.upstream.tokens[t]}
        if account in limited or kind == "events":
            return account not in limited
        standings = world.known[account].network.telemetry.standings
        return ACCESS_LOG in standings and standings[ACCESS_LOG].supported is True

    # Each day

    def memory(self) -> Problems:
        gc.collect()
        objects = len(gc.get_objects())
        if objects > OBJECTS:
            yield f"{objects} objects, {OBJECTS} are allowed"
        kept = sum(self._bodies())
        if kept > len(NAMES):  # a log may be writing the newest
            yield f"{kept} bodies are kept"
        for account, known in self.world.known.items():
            for what, size, most in known.sizes():
                if size > most:
                    yield f"{account}: {size} {what}, {most} are allowed"

    def _bodies(self) -> Iterator[bool]:
        """Lists of records that somebody holds who is not the upstream."""
        ours = set(map(id, self.world.bodies()))
        for holder in gc.get_objects():
            for held in gc.get_referents(holder):
                if type(held) is bytes and held[:3] == b'[{"' and len(held) > 200:
                    yield id(held) not in ours


class Invariant(Struct, frozen=True):
    """One of them.

    Attributes:
        document: that promises it.
        promise: the same in words.
        check: what is wrong, a text each.
        every: seconds between two looks; 0 for each step.
    """

    name: str
    document: str
    promise: str
    check: Callable[[Checker], Problems]
    every: float = 0.0


INVARIANTS = (
    Invariant(
        "left over",
        "docs/operations.md",
        "An exporter that has ended leaves no timer, connection or port.",
        Checker.left_over,
    ),
    Invariant(
        "up",
        "docs/metrics.md",
        "`netbird_api_up` and `api_exporter_resource_up` are never 1 over nothing.",
        Checker.up,
    ),
    Invariant(
        "errors",
        "docs/operations.md",
        "No error is left unhandled, and none is internal.",
        Checker.errors,
    ),
    Invariant(
        "lines",
        "docs/operations.md",
        "The log has one line for the beginning of a failure and one for its end, and"
        " neither personal data nor a secret.",
        Checker.lines,
    ),
    Invariant(
        "slots",
        "docs/decisions/0008-the-peers-are-the-probe.md",
        "An account has one request for peers and one for anything else under way, a"
        " token four of each.",
        Checker.slots,
    ),
    Invariant(
        "budget",
        "docs/decisions/0008-the-peers-are-the-probe.md",
        "A limit that is stated is never exceeded.",
        Checker.budget,
    ),
    Invariant(
        "age",
        "docs/configuration.md",
        "Nothing is published that is older than `METRICS_MAX_AGE`.",
        Checker.age,
        60.0,
    ),
    Invariant(
        "fresh",
        "docs/decisions/0008-the-peers-are-the-probe.md",
        "The peers are fresh soon after NetBird works again, and then all else.",
        Checker.fresh,
        60.0,
    ),
    Invariant(
        "pages",
        "docs/decisions/0017-a-page-is-made-of-the-one-before.md",
        "A page is byte for byte what its inventory renders, has the lines of a"
        " process that starts now, and the values of the plain reference.",
        Checker.pages,
        QUARTER,
    ),
    Invariant(
        "gone",
        "docs/metrics.md",
        "The series of a deleted object disappear with the next refresh.",
        Checker.gone,
        QUARTER,
    ),
    Invariant(
        "web",
        "docs/security.md",
        "Every page answers, tells no secret and no personal data unless it may, and"
        " `/sd` is 503 or true.",
        Checker.web,
        QUARTER,
    ),
    Invariant(
        "findings",
        "docs/decisions/0019-findings-follow-the-rounds.md",
        "Findings are those of a fresh look.",
        Checker.findings,
        QUARTER,
    ),
    Invariant(
        "logs",
        "docs/events.md",
        "Each event and each row of the access log is written once, events in order,"
        " or counted as lost.",
        Checker.logs,
        HOUR,
    ),
    Invariant(
        "memory",
        "docs/performance.md",
        "What is held is bounded by what is there.",
        Checker.memory,
        DAY,
    ),
)


class Checks:
    """All of them, each when it is its time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._checker = Checker(world)
        self._next = dict.fromkeys((i.name for i in INVARIANTS), 0.0)
        self.made = 0

    def look(self) -> None:
        """Raises Violation."""
        world, now = self._world, self._world.seconds()
        self._checker.began()
        for known in world.known.values():
            known.look(now)
        for invariant in INVARIANTS:
            if invariant.every:
                if now < self._next[invariant.name]:
                    continue
                self._next[invariant.name] = now + invariant.every
            self.made += 1
            for words in invariant.check(self._checker):
                raise Violation(invariant.name, words)
        for known in world.known.values():
            known.touched = False
