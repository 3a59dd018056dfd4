"""The judge of findings: what is reported is true, and what is true is reported.

Note [The judge]. It follows the lists of the simulated NetBird API, with the time of
each change, and evaluates the finders over the lists of one instant. It asks for no
order of readings. A finding may be reported if it was true at an instant since the
oldest body was made that it rests on. Exempt is a finding over a list whose request has
failed since, and one that was seen for MAX_WAIT. Two lists that changed since it was
first seen may deceive the rule: these findings are counted.

A true finding is due once the exporter has read all lists as they are, and all but the
last one again, or in vain. It is due at the latest after MAX_WAIT, and after QUICK if
the API works and no limit is known.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import inf

from msgspec import Struct

from api_exporter.attention.confirmation import MAX_WAIT
from api_exporter.attention.finding import Finder, FindingKey, Snapshot
from api_exporter.attention.fleet import drop_at
from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.resources import UP
from api_exporter.ports import UpstreamError
from api_exporter.refresh.refresher import EARLY_INTERVAL
from api_exporter.subjects.findings import find
from api_exporter.subjects.table import FINDERS, RESOURCE_BY_NAME
from simulation.account import TIME_DEPENDENT, Account
from simulation.knowledge import Knowledge
from simulation.world import DAY, HOUR, QUARTER, World
from tests.inventories import inventory_of

Keys = frozenset[FindingKey]
Problems = Iterator[str]

PROMPT = 15.0
"""Seconds from the last request that a finding waits for until it is reported."""

QUICK = EARLY_INTERVAL + 30.0
"""Seconds of the longest wait while the API works and the budget has room."""

SLOW_COMPUTATION = 60.0

_TEAM = re.compile(r"team\d+")


class Version(Struct, frozen=True, eq=False):
    """The records of a list from a time on; None if they cannot be decoded."""

    at: float
    records: tuple[object, ...] | None


_NONE: Keys = frozenset()

Versions = tuple[Version, ...]
"""A version of each list that a finder reads, in their order."""


class Lists:
    """The lists of one account, now and before.

    Attributes:
        count: the number of their changes.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._seen = Counter[str]()
        self.count = 0
        self.versions: dict[str, list[Version]] = {}

    def follow(self, seconds: float) -> None:
        """Note the changes since the last call."""
        if self._account.changes == self._seen:
            return
        for name, count in self._account.changes.items():
            if count != self._seen[name]:
                self._seen[name] = count
                self.count += 1
                version = Version(seconds, self._decoded(name))
                self.versions.setdefault(name, []).append(version)

    def _decoded(self, name: str) -> tuple[object, ...] | None:
        last = self.versions[name][-1].records if name in self.versions else None
        try:
            return (
                RESOURCE_BY_NAME[name]
                .decoder.decode(
                    self._account.listed(name),
                    DecodeContext(last or (), now=self._account.clock()),  # type: ignore[arg-type]
                )
                .records
            )
        except UpstreamError:
            return None

    def at(self, finder: Finder, seconds: float) -> Versions | None:
        """Return what a finder reads as it was at a time; None if it is forgotten."""
        found = [_latest(self.versions[name], seconds) for name in finder.reads]
        known = tuple(version for version in found if version is not None)
        return known if len(known) == len(found) else None

    def changes(self, finder: Finder, since: float) -> list[tuple[float, str]]:
        """Return the changes after a time of what a finder reads."""
        return sorted(
            (version.at, name)
            for name in finder.reads
            for version in self.versions[name]
            if version.at > since
        )

    def forget_before(self, seconds: float) -> None:
        for name, versions in self.versions.items():
            last = _latest(versions, seconds)
            self.versions[name] = [v for v in versions if v is last or v.at > seconds]


def _latest(versions: list[Version], seconds: float) -> Version | None:
    return next((v for v in reversed(versions) if v.at <= seconds), None)


class Judge:
    """Judges the reported findings of all accounts after each step.

    Attributes:
        counts: findings of several lists by the last job of their objects, or "other",
            and by what they were when they were reported: "true", "deceived", "late" or
            "failed".
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._lists = {
            name: Lists(world.account(name)) for name in world.administrators
        }
        self._truth: dict[tuple[str, Finder], dict[Versions, Keys]] = {}
        self._known: dict[str, Knowledge] = {}
        self._reported: dict[str, dict[FindingKey, str]] = {}
        self._missing: dict[str, dict[FindingKey, float]] = {}
        self._explained: dict[tuple[str, FindingKey], tuple[object, str]] = {}
        self._looked: dict[str, tuple[object, int]] = {}
        self._forgot_at = 0.0
        self.counts = Counter[tuple[str, str]]()

    def judge(self) -> Problems:
        world, now = self._world, self._world.seconds()
        for lists in self._lists.values():
            lists.follow(now)
        if now >= self._forgot_at + QUARTER:
            self._forgot_at = now
            self._forget()
        exporter = world.exporter
        for name in self._known.keys() - world.known.keys():
            self._replace(name, None)
        if exporter is None or now - world.jumped_at < QUARTER:
            self._missing.clear()
            return
        # Readings that were accepted may not have been evaluated yet.
        if exporter.machine.compute_thread.busy or exporter.machine.due_at() <= now:
            return
        for name, known in world.known.items():
            if known is not self._known.get(name):
                self._replace(name, known)
            if known.read_at.get(UP, -inf) >= known.replaced_at:
                yield from self._judge_account(name, known)

    def idle(self) -> Problems:
        if self._world.seconds() >= DAY and not self.counts:
            yield "no finding of several lists was judged"

    def _replace(self, name: str, known: Knowledge | None) -> None:
        """Forget what depends on the settings of an account, or on its process."""
        for key in [key for key in self._truth if key[0] == name]:
            del self._truth[key]
        for one in [one for one in self._explained if one[0] == name]:
            del self._explained[one]
        self._missing.pop(name, None)
        self._looked.pop(name, None)
        if known is None:
            del self._known[name]
            self._reported.pop(name, None)
        else:
            self._known[name] = known

    def _forget(self) -> None:
        """Forget versions that no reading has, of the last quarter of an hour."""
        if self._world.seconds() % HOUR < QUARTER:  # The time changes some.
            self._truth.clear()
            self._looked.clear()
        for name, lists in self._lists.items():
            horizon = since = self._world.seconds() - QUARTER
            if name in self._known:
                for readings in self._known[name].accepted.values():
                    last = [i for i, one in enumerate(readings) if one.at <= since]
                    del readings[: max(last, default=0)]
                    horizon = min(horizon, readings[0].made_at or horizon)
            lists.forget_before(horizon)

    def _judge_account(self, name: str, known: Knowledge) -> Problems:
        found, lists = known.network.attention.found, self._lists[name]
        looked, changes = self._looked.get(name, (None, 0))
        if looked is not found or lists.count != changes:
            self._looked[name] = found, lists.count
            keys: dict[Finder, set[FindingKey]] = {finder: set() for finder in JUDGED}
            for finding in found.findings:
                if finding.kind.name in _FINDER_OF:
                    keys[_FINDER_OF[finding.kind.name]].add(finding.key)
            before, after = self._reported.get(name, {}), dict[FindingKey, str]()
            for finder, reported in keys.items():
                truth = self._true_now(name, finder, reported)
                for key in reported:
                    verdict = "true"
                    if truth is None or key not in truth:
                        verdict = self._explain(name, known, finder, key)
                    if verdict not in VERDICTS:
                        yield f"{name}: {key} is reported: {verdict}"
                    after[key] = verdict
                    if key not in before and len(finder.reads) > 1:
                        self._count(name, key, verdict)
                self._note_missing(name, known, finder, (truth or _NONE) - reported)
            self._reported[name] = after
        yield from self._late(name, known)

    def _true_now(
        self, name: str, finder: Finder, reported: set[FindingKey]
    ) -> Keys | None:
        now = self._world.seconds()
        versions = self._lists[name].at(finder, now)
        truth = self._true(name, finder, versions, now)
        if truth is None or reported <= truth:
            return truth
        return self._true(name, finder, versions, now, again=True)

    def _note_missing(
        self, name: str, known: Knowledge, finder: Finder, due: Keys
    ) -> None:
        """Note since when the true findings of a finder are not reported."""
        peers = known.network.states[UP]
        if not known.bodies.keys() >= {*finder.reads} or (
            finder.is_single and peers.error is not None
        ):
            due = _NONE
        missing = self._missing.setdefault(name, {})
        kinds = {kind.name for kind in finder.kinds}
        for key in [key for key in missing if key[0] in kinds and key not in due]:
            del missing[key]
        for key in due:
            missing.setdefault(key, self._world.seconds())

    def _count(self, name: str, key: FindingKey, verdict: str) -> None:
        team = _TEAM.search(key[2])
        kinds = self._world.administrators[name].kinds
        kind = kinds.get(team[0], "other") if team else "other"
        self.counts[kind, verdict] += 1

    # What is reported

    def _explain(
        self, name: str, known: Knowledge, finder: Finder, key: FindingKey
    ) -> str:
        """Return why a finding that is not true now is reported, or what is wrong."""
        lists = self._lists[name]
        held = tuple(known.accepted[one][-1] for one in finder.reads)
        signature = held, len(lists.changes(finder, -inf))
        before, verdict = self._explained.get((name, key), (None, ""))
        if before != signature:
            verdict = self._explanation(name, known, finder, key)
            self._explained[name, key] = signature, verdict
        return verdict

    def _explanation(
        self, name: str, known: Knowledge, finder: Finder, key: FindingKey
    ) -> str:
        lists, now = self._lists[name], self._world.seconds()
        made = [known.accepted[one][-1].made_at for one in finder.reads]
        if None in made:
            return "failed"
        oldest = min(filter(None, made))
        changes = lists.changes(finder, oldest)
        for begin, end in pairwise((oldest, *(at for at, _ in changes), now)):
            versions = lists.at(finder, begin)
            for at in (begin, end, now):  # The clock goes on without a reading.
                keys = self._true(name, finder, versions, at, again=True)
                if keys is None or key in keys:
                    return "true"
        if any(known.failed_at.get(one, -inf) >= oldest for one in finder.reads):
            return "failed"
        seen = self._seen_since(name, known, finder, key)
        if now - seen >= MAX_WAIT:
            return "late"
        changed = {one for at, one in changes if at > seen}
        if len(changed) > 1:
            return "deceived"
        since = (
            f"seen for {now - seen:.1f} s" if seen < inf else "not even in its lists"
        )
        words = ", ".join(f"{one} at {at:.2f}" for at, one in changes)
        return f"false since {oldest:.2f}, {since}; changes: {words}"

    def _seen_since(
        self, name: str, known: Knowledge, finder: Finder, key: FindingKey
    ) -> float:
        """Return since when the lists that were read have had a finding."""
        readings = sorted(
            (reading.at, one, reading.made_at)
            for one in finder.reads
            for reading in known.accepted[one]
        )
        held, seen = dict[str, Version | None](), inf
        for at, one, made_at in readings:
            versions = self._lists[name].versions[one]
            held[one] = None if made_at is None else _latest(versions, made_at)
            mixed = tuple(filter(None, (held.get(other) for other in finder.reads)))
            keys = None
            if len(mixed) == len(finder.reads):
                keys = self._true(name, finder, mixed, at, again=True)
            has_seen = keys is not None and key in keys
            seen = min(seen, made_at or inf) if has_seen else inf
        return seen

    # What is not reported

    def _late(self, name: str, known: Knowledge) -> Problems:
        now = self._world.seconds()
        for key, first in [*self._missing.get(name, {}).items()]:
            finder = _FINDER_OF[key[0]]
            due = self._due(name, known, finder, first)
            if due < now:
                versions = self._lists[name].at(finder, now)
                keys = [
                    self._true(name, finder, versions, at, again=True)
                    for at in (first, now)
                ]
                if all(found is not None and key in found for found in keys):
                    yield f"{name}: {key} is true since {first:.2f}, and not reported"
                self._missing[name][key] = now

    def _due(self, name: str, known: Knowledge, finder: Finder, first: float) -> float:
        """Return when a finding must be reported that is true since `first`."""
        synced = {one: self._synced(name, known, one) for one in finder.reads}
        newest = max(synced, key=lambda one: synced[one])
        begin = synced[newest]
        if first > begin + 1.0:  # Time made it true, or something hid it.
            begin = next((r.at for r in known.accepted[UP] if r.at >= first), inf)
        begin = max(begin, self._world.computed_at)
        others = [one for one in finder.reads if one != newest]
        asked = [self._asked(known, one, begin) for one in others]
        due = begin + MAX_WAIT + SLOW_COMPUTATION
        if max(asked, default=begin) < inf:
            due = min(due, max(asked, default=begin) + PROMPT)
        if begin > self._calm_since(name, known):
            due = min(due, begin + QUICK)
        return due

    def _calm_since(self, name: str, known: Knowledge) -> float:
        """Return since when the API has worked and the budget has had room."""
        world, sharing = self._world, {"beta", "gamma"}
        names = sharing if name in sharing else {name}
        limited = {
            one
            for token in world.upstream.limits
            for one in world.upstream.tokens[token]
        }
        if limited & names or (names == sharing and world.stated_limit):
            return inf
        refused = max(known.refused_at + 6 * HOUR, MAX_WAIT + world.well_at[name])
        return max(refused, known.replaced_at + MAX_WAIT)

    def _synced(self, name: str, known: Knowledge, one: str) -> float:
        """Return since when the exporter has had a list as it is; inf if it has not."""
        changed, since = self._lists[name].versions[one][-1].at, inf
        for reading in reversed(known.accepted[one]):
            if reading.made_at is None or reading.made_at < changed:
                break
            since = reading.at
        return since

    def _asked(self, known: Knowledge, one: str, since: float) -> float:
        """Return when a request ended that is newer than a time, or failed after it."""
        ends = [r.at for r in known.accepted[one] if r.began >= since]
        failed = known.failed_at.get(one, -inf)
        return min(ends + [failed] * (failed > since), default=inf)

    # Truth

    def _true(
        self,
        name: str,
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
        found = self._truth.setdefault((name, finder), {})
        if again or versions not in found:
            found[versions] = self._find(name, finder, versions, seconds)
        return found[versions]

    def _find(
        self, name: str, finder: Finder, versions: Versions, seconds: float
    ) -> Keys:
        settings = self._known[name].network.attention.snapshot()
        now = seconds + self._world.offset
        records = {
            one: version.records
            for one, version in zip(finder.reads, versions, strict=True)
        }
        snapshot = Snapshot(
            inventory=inventory_of(
                detail=settings.inventory.detail, now=now, **records
            ),
            thresholds=settings.thresholds,
            now=now,
            drop_at=drop_at(records.get(UP) or (), now, settings.thresholds),  # type: ignore[arg-type]
            important_groups=settings.important_groups,
        )
        return frozenset(finding.key for finding in find(finder, snapshot))


VERDICTS = {"true", "deceived", "late", "failed"}

_NOT_LISTED = {"events", "current_user", *TIME_DEPENDENT}

JUDGED = [
    finder
    for finder in FINDERS
    if finder.reads and _NOT_LISTED.isdisjoint(finder.reads)
]
"""The finders whose lists change by requests alone, not with the time."""

_FINDER_OF = {kind.name: finder for finder in JUDGED for kind in finder.kinds}
