"""The judge of findings: what is reported is true, and what is true is reported.

Note [The judge]. It follows the lists of the simulated NetBird API, with the time of
each change, and evaluates the finders over the lists of one instant. It asks for no
order of readings. A finding may be reported if it was true at an instant since the
oldest body was made that it rests on. Exempt is a finding over a list whose request has
failed since, or that was damaged until then, and one that was seen for MAX_WAIT. Two
lists that changed since it was first seen may deceive the rule: these findings are
counted.

A true finding is due once the exporter has read all lists as they are, and all but the
last one again, or in vain. It is due at the latest after MAX_WAIT.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import inf
from typing import Any

from api_exporter.attention.confirmation import MAX_WAIT
from api_exporter.attention.finding import Finder, FindingKey, Snapshot
from api_exporter.attention.fleet import drop_at
from api_exporter.netbird.resources import PEERS
from api_exporter.subjects.table import FINDERS
from api_exporter.subjects.watch import find
from simulation.account import TIME_DEPENDENT
from simulation.knowledge import Knowledge
from simulation.lists import Lists, Version, Versions, latest
from simulation.world import DAY, QUARTER, World
from tests.inventories import inventory_of

Keys = frozenset[FindingKey]
Problems = Iterator[str]

PROMPT = 15.0
"""Seconds from the last request that a finding waits for until it is reported."""

SLOW_COMPUTATION = 60.0

VERDICTS = {"true", "deceived", "late", "failed"}
"""Why a finding may be reported: see Note [The judge]."""

_NOT_LISTED = {"events", "current_user", *TIME_DEPENDENT}

JUDGED = [f for f in FINDERS if f.reads and _NOT_LISTED.isdisjoint(f.reads)]
"""The finders whose lists change by requests alone, not with the time."""

_FINDER_OF = {kind.name: finder for finder in JUDGED for kind in finder.kinds}

_TEAM = re.compile(r"team\d+")


class Judge:
    """Judges the reported findings of all accounts after each step.

    Attributes:
        counts: findings of several lists by the last job of their objects, or "other",
            and by their verdicts when they were reported.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._lists = {n: Lists(world.account(n)) for n in world.administrators}
        self._accounts: dict[str, AccountJudge] = {}
        self._forgot_at = 0.0
        self.counts = Counter[tuple[str, str]]()

    def judge(self) -> Problems:
        world, now = self._world, self._world.seconds()
        for lists in self._lists.values():
            lists.follow(now)
        if now >= self._forgot_at + QUARTER:
            self._forgot_at = now
            self._forget(now - QUARTER)
        for name in self._accounts.keys() - world.known.keys():
            del self._accounts[name]  # it was removed
        exporter = world.exporter
        if exporter is None or now - world.jumped_at < QUARTER:
            self._accounts.clear()
            return
        # Readings that were accepted may not have been evaluated yet.
        if exporter.machine.compute_thread.busy or exporter.machine.due_at() <= now:
            return
        for name, known in world.known.items():
            judge = self._accounts.get(name)
            if judge is None or not judge.is_about(known):
                reported = {} if judge is None else judge.reported
                judge = AccountJudge(world, known, self._lists[name], reported)
                self._accounts[name] = judge
            if known.read_at.get(PEERS, -inf) >= known.replaced_at:
                yield from judge.judge(self.counts)

    def idle(self) -> Problems:
        if self._world.seconds() >= DAY and not self.counts:
            yield "no finding of several lists was judged"

    def _forget(self, since: float) -> None:
        """Forget versions that no reading has had since a time."""
        for name, lists in self._lists.items():
            horizon = since
            if name in self._world.known:
                for readings in self._world.known[name].accepted.values():
                    last = [i for i, one in enumerate(readings) if one.at <= since]
                    del readings[: max(last, default=0)]
                    horizon = min(horizon, readings[0].made_at or horizon)
            lists.forget_before(horizon)
        for judge in self._accounts.values():
            judge.forget()


class AccountJudge:
    """Judges the findings of one account with the same settings.

    Attributes:
        reported: the reported findings, and whether they are not true now.
    """

    def __init__(
        self,
        world: World,
        known: Knowledge,
        lists: Lists,
        reported: dict[FindingKey, bool],
    ) -> None:
        self._world = world
        self._known = known
        self._lists = lists
        self._settings = known.network.snapshot()
        self._truth: dict[tuple[Finder, Versions], Keys] = {}
        self._missing: dict[FindingKey, float] = {}
        self._explained: dict[FindingKey, tuple[object, str]] = {}
        self._looked: tuple[object, int] = (None, 0)
        self.reported = reported

    def is_about(self, known: Knowledge) -> bool:
        """Return whether the account was not replaced, nor its thresholds."""
        thresholds = known.network.thresholds
        return self._known is known and self._settings.thresholds is thresholds

    def forget(self) -> None:
        """Forget what was true: the time has changed some of it."""
        self._truth.clear()
        self._looked = (None, 0)

    def judge(self, counts: Counter[tuple[str, str]]) -> Problems:
        found, count = self._known.network.findings.found, self._lists.count
        looked, counted = self._looked
        if looked is not found:
            self._looked = found, count
            keys = {f.key for f in found.findings if f.kind.name in _FINDER_OF}
            is_same = counted == count and keys == self.reported.keys()
            if not is_same or any(self.reported.values()):
                yield from self._look(keys, counts)
        yield from self._late()

    def _look(
        self, keys: set[FindingKey], counts: Counter[tuple[str, str]]
    ) -> Problems:
        """Judge the reported findings, and note since when others are missing."""
        now, missing = self._world.seconds(), self._missing
        before, self.reported, self._missing = self.reported, {}, {}
        for finder in JUDGED:
            reported = {key for key in keys if _FINDER_OF[key[0]] is finder}
            versions = self._lists.at(finder, now)
            truth = self._true(finder, versions, now)
            if truth is not None and not reported <= truth:
                truth = self._true(finder, versions, now, again=True)
            for key in reported:
                is_doubted = truth is None or key not in truth
                verdict = self._explain(finder, key) if is_doubted else "true"
                if verdict not in VERDICTS:
                    yield f"{self._known.account.name}: {key} is reported: {verdict}"
                self.reported[key] = is_doubted
                if key not in before and len(finder.reads) > 1:
                    counts[self._job(key), verdict] += 1
            for key in (truth or frozenset()) - reported:
                self._missing[key] = missing.get(key, now)

    def _job(self, key: FindingKey) -> str:
        team = _TEAM.search(key[2])
        kinds = self._world.administrators[self._known.account.name].kinds
        return kinds.get(team[0], "other") if team else "other"

    # What is reported

    def _explain(self, finder: Finder, key: FindingKey) -> str:
        """Return why a finding that is not true now is reported, or what is wrong."""
        held = tuple(self._known.accepted[one][-1] for one in finder.reads)
        signature = held, len(self._lists.changes(finder, -inf))
        before, verdict = self._explained.get(key, (None, ""))
        if before != signature:
            verdict = self._explanation(finder, key)
            self._explained[key] = signature, verdict
        return verdict

    def _explanation(self, finder: Finder, key: FindingKey) -> str:
        now = self._world.seconds()
        made = [self._known.accepted[one][-1].made_at for one in finder.reads]
        if None in made:
            return "failed"
        oldest = min(filter(None, made))
        changes = self._lists.changes(finder, oldest)
        for begin, end in pairwise((oldest, *(at for at, _ in changes), now)):
            versions = self._lists.at(finder, begin)
            for at in (begin, end, now):  # The clock goes on without a reading.
                keys = self._true(finder, versions, at, again=True)
                if keys is None or key in keys:
                    return "true"
        for ended in (self._known.failed_at, self._known.damaged_until):
            if any(ended.get(one, -inf) >= oldest for one in finder.reads):
                return "failed"
        seen = self._seen_since(finder, key)
        if now - seen >= MAX_WAIT:
            return "late"
        if len({one for at, one in changes if at > seen}) > 1:
            return "deceived"
        since = (
            f"seen for {now - seen:.1f} s" if seen < inf else "not even in its lists"
        )
        words = ", ".join(f"{one} at {at:.2f}" for at, one in changes)
        return f"false since {oldest:.2f}, {since}; changes: {words}"

    def _seen_since(self, finder: Finder, key: FindingKey) -> float:
        """Return since when the lists that were read have had a finding."""
        readings = sorted(
            (reading.at, one, reading.made_at)
            for one in finder.reads
            for reading in self._known.accepted[one]
        )
        held, seen = dict[str, Version | None](), inf
        for at, one, made_at in readings:
            versions = self._lists.versions[one]
            held[one] = None if made_at is None else latest(versions, made_at)
            mixed = tuple(filter(None, (held.get(other) for other in finder.reads)))
            is_whole = len(mixed) == len(finder.reads)
            keys = self._true(finder, mixed, at, again=True) if is_whole else None
            has_seen = keys is not None and key in keys
            seen = min(seen, made_at or inf) if has_seen else inf
        return seen

    # What is not reported

    def _late(self) -> Problems:
        now, peers = self._world.seconds(), self._known.network.states[PEERS]
        for key, first in [*self._missing.items()]:
            finder = _FINDER_OF[key[0]]
            is_blind = finder.hidden_in_outage and peers.error is not None
            if is_blind or not self._known.bodies.keys() >= {*finder.reads}:
                self._missing[key] = now
            elif self._due(finder, first) < now:
                self._missing[key] = now
                versions = self._lists.at(finder, now)
                then = self._true(finder, versions, first, again=True)
                truth = self._true(finder, versions, now, again=True)
                if then and truth and key in then & truth:
                    name = self._known.account.name
                    yield f"{name}: {key} is true since {first:.2f}, and not reported"

    def _due(self, finder: Finder, first: float) -> float:
        """Return when a finding must be reported that is true since `first`."""
        synced = {one: self._synced(one) for one in finder.reads}
        *others, newest = sorted(synced, key=lambda one: synced[one])
        begin = synced[newest]
        if first > begin + 1.0:  # Time made it true, or something hid it.
            peers = self._known.accepted[PEERS]
            begin = next((reading.at for reading in peers if reading.at >= first), inf)
            others = [one for one in finder.reads if one != PEERS]
        begin = max(begin, self._world.computed_at)
        asked = max((self._asked(one, begin) for one in others), default=begin)
        # A request may have been under way when the finding was seen first.
        asked = max(asked, self._asked(newest, min(first, begin)))
        return min(begin + MAX_WAIT + SLOW_COMPUTATION, asked + PROMPT)

    def _synced(self, one: str) -> float:
        """Return since when the exporter has had a list as it is; inf if it has not."""
        changed, since = self._lists.versions[one][-1].at, inf
        for reading in reversed(self._known.accepted[one]):
            if reading.made_at is None or reading.made_at < changed:
                break
            since = reading.at
        return since

    def _asked(self, one: str, since: float) -> float:
        """Return when a request ended that began after a time, or that failed."""
        ends = [r.at for r in self._known.accepted[one] if r.began >= since]
        failed = self._known.failed_at.get(one, -inf)
        return min(ends + [failed] * (failed > since), default=inf)

    # Truth

    def _true(
        self,
        finder: Finder,
        versions: Versions | None,
        seconds: float,
        *,
        again: bool = False,
    ) -> Keys | None:
        """Return the findings of a finder over these lists; None if it is unknown.

        Args:
            again: whether the time may have changed them.
        """
        if versions is None or any(version.records is None for version in versions):
            return None
        if again or (finder, versions) not in self._truth:
            self._truth[finder, versions] = self._find(finder, versions, seconds)
        return self._truth[finder, versions]

    def _find(self, finder: Finder, versions: Versions, seconds: float) -> Keys:
        settings, now = self._settings, seconds + self._world.offset
        lists = [version.records for version in versions]
        records: dict[str, Any] = dict(zip(finder.reads, lists, strict=True))
        drop = drop_at(records.get(PEERS, ()), now, settings.thresholds)
        inventory = inventory_of(detail=settings.inventory.detail, now=now, **records)
        snapshot = Snapshot(
            inventory=inventory,
            thresholds=settings.thresholds,
            now=now,
            seconds=seconds,
            drop_at=drop,
            important_groups=settings.important_groups,
        )
        return frozenset(finding.key for finding in find(finder, snapshot))
