"""The records that joins use while one list is newer than another. Pure.

Note [Joined lists]. Each list is read at its own interval. So a record may name an id
that another list does not have yet, or no longer has. A conclusion from such an id
would be false. So a join obeys two rules:

1. A new or changed record is used once each list that it names has been read after it.
   Until then joins use the record's previous version; a new record is left out.
2. A removed record, and the previous version of a changed one, stay in joins until each
   list that names them has been read again. Groups change often: the previous version
   of a group stays only if the group has lost its last peer.

An id that is missing then counts as missing once the list that names it has been read
again: both may have been deleted in between. The lists that a join waits for are due
early. Families and findings of one list do not wait.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.netbird.references import Lists, Reference, References

K = TypeVar("K")


class Reading(Struct, frozen=True, gc=False):
    """The begin and end of reading a list: growing numbers that order readings."""

    began: int
    ended: int


class Held(Struct, frozen=True, gc=False):
    """A record that joins do not use yet.

    Attributes:
        previous: the version that they use; None for a new record.
        since: the end of the reading that brought the newest version.
        missing_at: the end of the newest reading when the record began to wait only for
            a missing id.
    """

    previous: Any
    newest: Any
    since: int
    missing_at: int | None = None


class Removed(Struct, frozen=True, gc=False):
    """A record, or a version of it, that joins still use.

    Attributes:
        at: the end of the reading that no longer had it.
        listed: whether the list has another version of it.
    """

    record: Any
    at: int
    listed: bool = False


HeldRecords = dict[str, dict[str, Held]]
RemovedRecords = dict[str, dict[str, Removed]]
"""Records by list and id."""


class JoinState(Struct, frozen=True):
    """The records and lists that joins wait for.

    Attributes:
        readings: the newest one of each list.
        held: by list and id.
        removed: by list and id.
        due: the lists that joins wait for.
    """

    readings: Mapping[str, Reading] = MappingProxyType({})
    held: Mapping[str, Mapping[str, Held]] = MappingProxyType({})
    removed: Mapping[str, Mapping[str, Removed]] = MappingProxyType({})
    due: frozenset[str] = frozenset()

    def edition(self, name: str) -> tuple[object, object]:
        """Return a value that changes when joins use other records of a list."""
        return self.held.get(name), self.removed.get(name)


SETTLED = JoinState()
"""The state in which joins use the newest records."""


def next_state(
    state: JoinState,
    name: str,
    before: tuple[Any, ...] | None,
    lists: Lists,
    reading: Reading | None,
    *,
    references: References,
) -> JoinState:
    """Return the state after a list was read, or withdrawn.

    Args:
        before: the records that the list had; None if it was not known.
        lists: all lists as they are now.
        reading: None for a withdrawal.
    """
    if reading is not None and before is lists.get(name) and name not in state.due:
        readings = MappingProxyType({**state.readings, name: reading})
        return replace(state, readings=readings)
    settling = _Settling(state, lists, references)
    if reading is not None and lists.get(name) is not None:
        settling.readings[name] = reading
        if before is None:
            settling.hold_incomplete(name, reading.ended)
        elif before is not lists.get(name):
            settling.compare(name, before, reading.ended)
    return settling.settled()


class _Settling:
    """One step from one JoinState to the next."""

    def __init__(self, state: JoinState, lists: Lists, references: References) -> None:
        self._references = references
        known = {n for n in references.lists if lists.get(n) is not None}
        self.readings = {n: r for n, r in state.readings.items() if n in known}
        self._lists = lists
        self._held = {n: dict(h) for n, h in state.held.items() if n in known}
        self._removed = {n: dict(r) for n, r in state.removed.items() if n in known}
        self._due = set[str]()

    def hold_incomplete(self, name: str, ended: int) -> None:
        """Hold records of a first reading that name an id which joins do not have.

        Every record is new then, so joins use a record whose ids all exist.
        """
        for reference in self._references.of[name]:
            if (known := self._known_ids(reference, self._held)) is None:
                continue  # the target is read later
            for record in self._lists.get(name) or ():
                if not known.issuperset(reference.ids(record)):
                    held = self._held.setdefault(name, {})
                    held[record.id] = Held(None, record, ended)

    def compare(self, name: str, before: tuple[Any, ...], ended: int) -> None:
        """Hold new and changed records, and keep removed ones.

        An unchanged record is the same object as before.
        """
        after = self._lists.get(name) or ()
        old_objects, new_objects = set(map(id, before)), set(map(id, after))
        new = {record.id: record for record in after if id(record) not in old_objects}
        old = {record.id: record for record in before if id(record) not in new_objects}
        held = self._held.setdefault(name, {})
        removed = self._removed.setdefault(name, {})
        for i in old.keys() - new.keys():
            used = removed[i].record if i in removed else old[i]
            used = held.pop(i).previous if i in held else used
            if self._references.to[name] and used is not None:
                removed[i] = Removed(used, ended)
        for i, record in new.items():
            used = removed.pop(i).record if i in removed else old.get(i)
            missed = None
            if i in held:
                used, missed = held[i].previous, held[i].missing_at
            if self._references.of[name]:
                held[i] = Held(used, record, ended, missed)
            if used is not None and self._keeps_previous(name, used, record):
                removed[i] = Removed(used, ended, listed=True)

    def settled(self) -> JoinState:
        self._removed = self._still_named()  # missing ids depend on it
        self._due.clear()
        held, removed = self._still_held(), self._still_named()
        return JoinState(
            MappingProxyType(self.readings),
            _frozen(held),
            _frozen(removed),
            frozenset(self._due),
        )

    def _still_held(self) -> HeldRecords:
        """Return records that wait for a list, or for a record that waits."""
        found: HeldRecords = {}
        for name, target in self._awaited():
            began, records = self.readings[target].began, self._held[name]
            if old := {i: one for i, one in records.items() if began <= one.since}:
                found.setdefault(name, {}).update(old)
                self._due.add(target)
        self._hold_naming(found)
        while more := dict(self._missing(found)):
            for (name, i), one in more.items():
                found.setdefault(name, {})[i] = one
            self._hold_naming(found)
        self._held = found
        return found

    def _awaited(self) -> Iterator[tuple[str, str]]:
        """Yield lists with held records, each with a known list that these name."""
        for name in self._held:
            for reference in self._references.of[name]:
                for target in reference.targets:
                    if target in self.readings:
                        yield name, target

    def _hold_naming(self, waiting: HeldRecords) -> None:
        """Add held records that name a waiting record, directly or through others."""
        naming: dict[int, dict[str, list[str]]] = {}
        fresh = [(name, i) for name, records in waiting.items() for i in records]
        while fresh:
            name, i = fresh.pop()
            newest = self._held[name][i].newest
            for reference in self._references.to[name]:
                source = reference.resource
                if id(reference) not in naming:
                    naming[id(reference)] = self._naming(reference)
                already = waiting.get(source, {})
                for unused in reference.own_ids(newest):
                    # Each id is looked up once: then all records that name it wait.
                    for other in naming[id(reference)].pop(unused, ()):
                        if other not in already:
                            already = waiting.setdefault(source, {})
                            already[other] = self._held[source][other]
                            fresh.append((source, other))

    def _naming(self, reference: Reference) -> dict[str, list[str]]:
        """Return the held records that name ids, by these ids."""
        found: dict[str, list[str]] = {}
        for i, one in self._held.get(reference.resource, {}).items():
            for named in reference.ids(one.newest):
                found.setdefault(named, []).append(i)
        return found

    def _missing(self, waiting: HeldRecords) -> Iterator[tuple[tuple[str, str], Held]]:
        """Yield held records that name a missing id, until their list is read again."""
        for name, records in self._held.items():
            others = records.keys() - waiting.get(name, {}).keys()
            for reference in self._references.of[name] if others else ():
                known = self._known_ids(reference, waiting)
                for i in others:
                    one = records[i]
                    if not (
                        known is None or known.issuperset(reference.ids(one.newest))
                    ):
                        ended = max(reading.ended for reading in self.readings.values())
                        missed = ended if one.missing_at is None else one.missing_at
                        if self.readings[name].began <= missed:
                            self._due.add(name)
                            yield (name, i), replace(one, missing_at=missed)

    def _known_ids(self, reference: Reference, held: HeldRecords) -> set[str] | None:
        """Return the ids that joins have; None while a target is not known."""
        if any(self._lists.get(target) is None for target in reference.targets):
            return None
        return {
            i
            for target in reference.targets
            for record in _used_records(target, self._lists, held, self._removed)
            for i in reference.own_ids(record)
        }

    def _still_named(self) -> RemovedRecords:
        """Return removed records that joins still need.

        An older list names them, or a record that joins use in place of a newer one.
        """
        found: RemovedRecords = {}
        for name in reversed(self._references.lists):
            for reference in (
                self._references.to[name] if self._removed.get(name) else ()
            ):
                if reference.resource in self.readings:
                    self._keep(name, reference, found)
        return found

    def _keep(self, name: str, reference: Reference, found: RemovedRecords) -> None:
        source = reference.resource
        held, removed = self._held.get(source, {}), found.get(source, {})
        substitutes = [
            *(one.previous for one in held.values() if one.previous is not None),
            *(one.record for one in removed.values()),
        ]
        began, removed_ids = self.readings[source].began, set[str]()
        older: dict[str, set[str]] = {}
        for i, one in self._removed[name].items():
            older[i] = set(reference.own_ids(one.record)) if began <= one.at else set()
            removed_ids |= older[i]
        listed = self._lists.get(source) or () if removed_ids else ()
        named = removed_ids.intersection(
            chain.from_iterable(map(reference.ids, listed))
        )
        substitute_ids = set(chain.from_iterable(map(reference.ids, substitutes)))
        for i, one in self._removed[name].items():
            if not older[i].isdisjoint(named):
                self._due.add(source)
                found.setdefault(name, {})[i] = one
            elif not one.listed and not substitute_ids.isdisjoint(
                reference.own_ids(one.record)
            ):
                found.setdefault(name, {})[i] = one

    def _keeps_previous(self, name: str, before: Any, after: Any) -> bool:
        """Return whether joins keep the previous version for records that name it."""
        if name not in _CHANGING_LISTS:
            return bool(self._references.to[name])
        named = [
            any(any(reference.ids(record)) for reference in self._references.of[name])
            for record in (before, after)
        ]
        return named == [True, False]


def _frozen(lists: Mapping[str, Mapping[str, K]]) -> Mapping[str, Mapping[str, K]]:
    return MappingProxyType(
        {name: MappingProxyType(records) for name, records in lists.items()}
    )


_CHANGING_LISTS = frozenset({"peers", "users", "groups"})
"""Lists whose records change often."""


def joined_lists(state: JoinState, lists: Lists) -> dict[str, tuple[Any, ...]]:
    """Return the lists where joins use other records than the newest."""
    return {
        name: tuple(_used_records(name, lists, state.held, state.removed))
        for name in state.held.keys() | state.removed.keys()
    }


def _used_records(
    name: str,
    lists: Lists,
    held: Mapping[str, Mapping[str, Held]],
    removed: Mapping[str, Mapping[str, Removed]],
) -> Iterator[Any]:
    waiting, kept = held.get(name, {}), removed.get(name, {})
    replaced = {**waiting, **kept}
    yield from [r for r in lists.get(name) or () if r.id not in replaced]
    for i, record in waiting.items():
        if i not in kept and record.previous is not None:
            yield record.previous
    for one in kept.values():
        yield one.record
