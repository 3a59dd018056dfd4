"""Rows: the name, HELP, source, labels and value of each family in one place.

A row is for objects of one kind, each of which may have a sample in the family.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from operator import attrgetter
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from msgspec import Struct

from api_exporter.exposition import text
from api_exporter.exposition.rendering import PerRecordFamily
from api_exporter.exposition.text import Family, Labels, Metric, Sample
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.members import Named
from api_exporter.netbird.resources import Resource

R = TypeVar("R")
T = TypeVar("T")

Value = float | None
"""The value of a sample; None if the object has no sample."""


Join = Callable[[Inventory], T]
"""A function that concludes something from several records together."""


class MetricOptions(TypedDict, total=False):
    """Properties that few metrics have."""

    alert: str
    self_hosted: str


def once_each(function: Callable[[R], T]) -> Callable[[R], T]:
    """Return a function that is called once for each record, by its identity."""
    results: dict[int, tuple[T, R]] = {}

    def result_of(record: R) -> T:
        result = results.get(id(record))
        if result is None:  # the record is held, so that its id() stays unique
            result = results[id(record)] = function(record), record
        return result[0]

    return result_of


Objects = tuple[Iterable[R], Callable[[R], Labels]]
"""The objects of a kind on one page, and a function that labels them once."""


class FamilyContext:
    """The records that families are made of, and results that families share."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self._joins: dict[object, Any] = {}
        self._objects: dict[object, Objects[Any]] = {}
        self.inputs_key = cache(inventory.inputs_key)  # most families share one

    def join(self, join: Join[T]) -> T:
        """Return the result of a join, which is computed once."""
        if join not in self._joins:
            self._joins[join] = join(self.inventory)
        found: T = self._joins[join]
        return found

    def objects(self, kind: "ObjectKind[R]") -> Objects[R]:
        """Return the objects of a kind, which are found once."""
        if kind not in self._objects:
            self._objects[kind] = kind.find(self.inventory), once_each(kind.key)
        return self._objects[kind]


class Row(Struct, frozen=True):
    """A family.

    Attributes:
        needs: the resources that it is made of. It is absent while one is unknown.
        chosen_by: resources that choose its objects, known or not.
    """

    metric: Metric
    needs: tuple[str, ...]
    make: Callable[[Metric, FamilyContext], Family]
    chosen_by: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return self.needs + self.chosen_by


def _label_value(value: object) -> str:
    return text.boolean(value) if isinstance(value, bool) else str(value)


class ObjectKind(Generic[R]):
    """The objects of a kind. Each has a sample in several families.

    Args:
        resource: the resource whose records the objects are, or are made of.
        key: returns an object's labels, unless a row has others.
        find: returns the objects, unless they are the resource's records; an iterator
            if only one row needs them.
        needs: other resources without which there are no objects.
        keeps_lines: true for very many records, whose lines are copied while they are
            the same objects.
        of_peer: true if each object is a peer's: PEER_DETAIL limits its series.
    """

    def __init__(
        self,
        resource: Resource[Any] | None,
        key: Callable[[R], Labels] = lambda _: "",
        *,
        find: Join[Iterable[R]] | None = None,
        needs: tuple[str, ...] = (),
        keeps_lines: bool = False,
        of_peer: bool = False,
    ) -> None:
        self._needs = ((resource.name,) if resource else ()) + needs
        self._source = resource.source if resource else ""
        self._keeps_lines = keeps_lines
        self._metric = partial(Metric, of_peer=of_peer)
        self.key = key
        self.find: Join[Iterable[R]] = find or (
            lambda inventory: (resource and resource.of(inventory)) or ()
        )

    def samples(
        self,
        name: str,
        description: str,
        source: str,
        make: Callable[[Iterable[R]], Iterable[Sample]],
        **options: Unpack[MetricOptions],
    ) -> Row:
        """Return a row whose samples are made of all objects together."""

        def make_family(metric: Metric, known: FamilyContext) -> Family:
            every, _ = known.objects(self)
            return Family(metric, make(every))

        metric = self._metric(name=name, help=description, source=source, **options)
        return Row(metric, self._needs, make_family)

    def total(self, name: str, description: str) -> Row:
        return self.samples(
            name, description, self._source, lambda every: [("", sum(1 for _ in every))]
        )

    def count_true(
        self, name: str, description: str, field: str, **options: Unpack[MetricOptions]
    ) -> Row:
        source, get = f"{self._source}.{field}", attrgetter(field)
        return self.samples(
            name, description, source, lambda e: [("", sum(map(get, e)))], **options
        )

    def count_true_and_false(
        self, name: str, description: str, field: str, **options: Unpack[MetricOptions]
    ) -> Row:
        get = attrgetter(field)

        def make(every: Iterable[R]) -> Iterator[Sample]:
            counts = text.count_each(map(get, every))
            for value in (True, False):
                yield text.labels(**{field: text.boolean(value)}), counts[value]

        return self.samples(
            name, description, f"{self._source}.{field}", make, **options
        )

    def count_enabled(self, name: str, nouns: str) -> Row:
        description = f"Number of {nouns} by whether they are enabled"
        return self.count_true_and_false(name, description, "enabled")

    def count(
        self,
        name: str,
        description: str,
        by: Mapping[str, str],
        label_value: Callable[[Any], str] = _label_value,
        *,
        elements: Callable[[R], Iterable[object]] | None = None,
        source: str = "",
        **options: Unpack[MetricOptions],
    ) -> Row:
        """Return a row that counts objects with the same labels.

        Args:
            by: the field of each label.
            elements: returns what is counted of each object instead of the object.
        """
        get, names = attrgetter(*by.values()), tuple(by)

        def labelled(key: Any) -> Labels:
            values = map(label_value, key if len(names) > 1 else (key,))
            return text.labels(**dict(zip(names, values, strict=True)))

        def make(every: Iterable[R]) -> Iterable[Sample]:
            found = (
                every if elements is None else chain.from_iterable(map(elements, every))
            )
            return text.count_by(map(get, found), labelled)

        source = source or ", ".join(f"{self._source}.{field}" for field in by.values())
        return self.samples(name, description, source, make, **options)

    def states(
        self,
        name: str,
        description: str,
        field: str,
        label: str,
        known: Sequence[str],
        **options: Unpack[MetricOptions],
    ) -> Row:
        """Return a row with 1 for the state of each object and 0 for other states.

        An unknown state has a sample of its own. An object without a state has zeros.
        """
        get = attrgetter(field)

        def make(every: Iterable[R]) -> Iterator[Sample]:
            for record in every:
                key, current = self.key(record), get(record)
                for state in dict.fromkeys((*known, current or known[0])):
                    shown = text.labels(**{label: state})
                    yield text.join_labels(key, shown), int(state == current)

        return self.samples(
            name, description, f"{self._source}.{field}", make, **options
        )

    def info(
        self,
        name: str,
        description: str,
        fields: Mapping[str, str] = {},
        *,
        source: str = "",
    ) -> Row:
        """Return a row with 1 and all labels of each object.

        Args:
            fields: the field of each label beside those of the key.
        """
        gets = {label: attrgetter(field) for label, field in fields.items()}

        def labels(record: R) -> Labels:
            more = {label: _label_value(get(record)) for label, get in gets.items()}
            return text.join_labels(self.key(record), text.labels(**more))

        return self.each(
            name, description, source or self._source, labels=labels if fields else None
        )

    def each(
        self,
        name: str,
        description: str,
        source: str,
        value: Callable[[R], Value] = lambda _: 1,
        *,
        labels: Callable[[R], Labels] | None = None,
        **options: Unpack[MetricOptions],
    ) -> Row:
        """Return a row with a sample for each object that has a value."""

        def make(metric: Metric, known: FamilyContext) -> Family:
            every, key = known.objects(self)
            return self._family(metric, every, labels or key, value)

        metric = self._metric(name=name, help=description, source=source, **options)
        return Row(metric, self._needs, make)

    def _family(
        self,
        metric: Metric,
        every: Iterable[R],
        key: Callable[[R], Labels],
        value: Callable[[R], Value],
        given: object = None,
    ) -> Family:
        if self._keeps_lines:
            assert isinstance(every, Sequence)  # they are a resource's records
            return PerRecordFamily(metric, every, key, value, given=given)
        return Family(metric, _samples(every, key, value))

    def field(
        self,
        name: str,
        description: str,
        field: str,
        value: Callable[[Any], Value] = int,
        **options: Unpack[MetricOptions],
    ) -> Row:
        get, source = attrgetter(field), f"{self._source}.{field}"
        return self.each(name, description, source, lambda r: value(get(r)), **options)

    def enabled(self, name: str, noun: str) -> Row:
        description = f"Whether the {noun} is enabled (1 = yes, 0 = no)"
        return self.field(name, description, "enabled")

    def joined(
        self,
        name: str,
        description: str,
        source: str,
        join: Join[T],
        value: Callable[[T, R], Value] = lambda _, __: 1,
        *,
        labels: Callable[[T, R], Labels] | None = None,
        needs: tuple[str, ...] = (),
        **options: Unpack[MetricOptions],
    ) -> Row:
        """Return a row whose labels or values follow from a join."""

        def make(metric: Metric, known: FamilyContext) -> Family:
            (every, key), found = known.objects(self), known.join(join)
            key = partial(labels, found) if labels else key
            return self._family(metric, every, key, partial(value, found), found)

        metric = self._metric(name=name, help=description, source=source, **options)
        return Row(metric, (*self._needs, *needs), make)


def id_and_name(kind: str) -> Callable[[Named], Labels]:
    id_label = f"{kind}_id"
    return lambda found: text.labels(**{id_label: found.id, kind: found.name})


def personal_kinds(inventory: Inventory) -> frozenset[str]:
    return inventory.personal


def or_unknown(value: str | None) -> str:
    return value or "unknown"


def length(found: tuple[object, ...] | None) -> int:
    return len(found or ())


def distinct_count(found: tuple[Hashable, ...] | None) -> int:
    return len(set(found or ()))


def _samples(
    every: Iterable[R], key: Callable[[R], Labels], value_of: Callable[[R], Value]
) -> Iterator[Sample]:
    for record in every:
        if (value := value_of(record)) is not None:
            yield key(record), value
