"""The records that the exporter must have of an account, from the good responses."""

import json
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import lru_cache
from math import inf
from operator import is_
from random import Random
from typing import Any, TypeVar

from msgspec import Struct

from api_exporter.account import Account as Reader
from api_exporter.collectors.collector import Collector
from api_exporter.exposition.pages import Page as OfCollector
from api_exporter.exposition.rendering import EMPTY_PAGE, render_page
from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.netbird.resources import ACCESS_LOG, PEERS, Resource
from api_exporter.settings.definitions import AccountSettings
from api_exporter.subjects.agent_network.resources import day
from api_exporter.subjects.table import RESOURCES, RULES
from simulation.account import AGENTS, TIME_DEPENDENT, Account
from simulation.company.people import EXPORTER_ID
from tests.collectors.samples import parsed
from tests.inventories import inventory_of
from tests.reference import COLLECTORS
from tests.reference.bodies import records, together
from tests.reference.comparison import JOINED, same
from tests.reference.fields import Known, Record
from tests.reference.page import Key, Page, Settings
from tests.reference.valid import RECORDS

T = TypeVar("T")

_EXTRA_BODIES = {"agent_usage": ("agent_usage_earlier",)}

_REPEAT_PROBABILITY = 0.1
"""The probability of comparing a page whose inputs have not changed."""

Samples = dict[Key, float]
Read = dict[str, list[Record] | None]


class Accepted(Struct, frozen=True):
    """A reading of a resource that the exporter has accepted.

    Attributes:
        at: when it was accepted, in seconds of the clock.
        began: the begin of its refresh.
        made_at: when the NetBird API made the body; None if it was damaged.
    """

    at: float
    began: float
    made_at: float | None


class Knowledge:
    """The expected records of one account in one process of the exporter.

    Args:
        reader: the exporter's account.
        account: the simulated account of the NetBird API.
        chance: decides which unchanged pages are compared again.

    Attributes:
        bodies: the last good body of each resource, and the time of its request.
        read_at: the time of the last good body, in seconds of the clock.
        accepted: the readings of each resource that is known, in their order.
        failed_at: the end of the last refresh of each resource that failed.
        damaged_until: when a body of each resource replaced a damaged one.
        tried_at: the end of the last refresh of each resource, successful or not.
        failed_as_peers: resources whose last refresh failed for the same reason as the
            peers' last one, which need no log line.
        max_age: METRICS_MAX_AGE, or None if it is not set.
        timeout: seconds for an attempt.
        expired_after: the age of what has expired since the last check, from the begin
            of its refresh, and its interval then, in seconds.
        failures: the resource, the reason and the begin of each refresh, or first
            attempt of it, that has failed since the last check.
        lost: resources whose records went without a reason since the last check.
        recovered_at: the time of the peers' first success, or the first after a
            failure.
        refused_at: the time of the last 429.
        replaced_at: the time when a reload made the account, or it started.
        has_changed: whether anything has changed in this step.
    """

    def __init__(
        self,
        reader: Reader,
        account: Account,
        settings: AccountSettings,
        chance: Random,
    ) -> None:
        self.network = reader.network
        self.account = account
        self.bodies: dict[str, tuple[bytes, float]] = {}
        self.read_at: dict[str, float] = {}
        self.aging_since: dict[str, float] = {}
        self.accepted: dict[str, list[Accepted]] = {}
        self.failed_at: dict[str, float] = {}
        self.damaged_until: dict[str, float] = {}
        self.tried_at: dict[str, float] = {}
        self.failed_as_peers: set[str] = set()
        self.expired_after: dict[str, tuple[float, float]] = {}
        self.max_age = settings.metrics_max_age
        self.timeout = settings.http_timeout
        self.failures: list[tuple[str, str, float]] = []
        self.recovered_at = inf
        self.refused_at = -inf
        self.replaced_at = -inf
        self._denied = settings.metrics_deny
        self.has_changed = True
        self.lost: list[str] = []
        self._read_otherwise: set[str] = set()
        self._former_accounts = 0
        self._chance = chance
        self._seen: dict[str, ResourceState] = {}
        self._newest: list[object] = []
        self._compared_inputs: tuple[bytes, dict[str, bytes]] = b"", {}
        # Results computed from bodies, kept until the bodies change.
        self._read: dict[str, tuple[bytes, list[Record] | None]] = {}
        self._decoded: dict[str, tuple[list[tuple[bytes, float]], object]] = {}
        self._expected: dict[str, tuple[Read, Samples]] = {}
        self._compared: dict[str, list[object]] = {}

    def adopt(self, before: "Knowledge") -> None:
        """Take over what was read before a reload."""
        self.bodies.update(before.bodies)
        decoders = {r.name: r.decoder for r in before.network.selection.resources}
        self._read_otherwise = {
            r.name
            for r in self.network.selection.resources
            if decoders.get(r.name) is not r.decoder
        }
        self.read_at.update(before.read_at)
        freshness = self.network.states
        for name in before.aging_since.keys() & before.network.states:
            if name in freshness:
                # A shorter maximum age begins with the reload, but extends nothing.
                shorter = max(0.0, before.max_age_of(name) - self.max_age_of(name))
                since = before.aging_since[name] + shorter
                self.aging_since[name] = min(since, self.replaced_at)
        self.accepted.update(before.accepted)
        self.failed_at.update(before.failed_at)
        self.damaged_until.update(before.damaged_until)
        self.tried_at.update(before.tried_at)
        self.failed_as_peers |= before.failed_as_peers
        self.recovered_at = before.recovered_at
        self.refused_at = before.refused_at
        self._seen = before._seen
        for name in self._seen.keys() - freshness.keys():
            del self._seen[name]

    def update(self, seconds: float) -> None:
        """Update from refreshes since the last call."""
        freshness = self.network.states
        # The inventory shows a withdrawal one computation after the freshness.
        newest: list[object] = [*freshness.values(), self.network.inventory]
        if len(newest) == len(self._newest) and all(map(is_, newest, self._newest)):
            return
        self._newest = newest
        self.has_changed = True
        peers = {_reason(self._seen.get(PEERS)), _reason(freshness[PEERS])} - {None}
        for name, standing in freshness.items():
            before = self._seen.get(name)
            if standing is before:
                continue
            self._seen[name] = standing
            # What a new account did before the first look began at an unknown time.
            if before and (error := standing.error) and error is not before.error:
                is_running = before.ended_at == standing.ended_at
                began = standing.began if is_running else seconds - standing.seconds
                self.failures.append((name, error.reason, began or 0.0))
            names = (name, *_EXTRA_BODIES.get(name, ())) if name != ACCESS_LOG else ()
            if before is None or standing.ended_at != before.ended_at:
                self.tried_at[name] = seconds
                self.failed_as_peers.discard(name)
                if name != PEERS and _reason(standing) in peers:
                    self.failed_as_peers.add(name)
                if standing.error is not None:  # The body was sent but not accepted.
                    self.failed_at[name] = seconds
                    for one in names:
                        self.account.delivered.pop(one, None)
            if standing.error is not None and standing.error.reason == "rate_limited":
                self.refused_at = seconds
            has_expired = standing.withdrawn and before and not before.withdrawn
            if has_expired and name in self.read_at:
                # Peers that wait for the current user expire by their answer's time.
                readings = self.accepted.get(name)
                read_at = readings[-1].began if readings else self.read_at[name]
                self.expired_after[name] = seconds - read_at, standing.interval
            if standing.last_success not in {None, before and before.last_success}:
                self.read_at[name] = self.aging_since[name] = seconds
                if name == PEERS and (
                    before is None or before.failures or not before.last_success
                ):
                    self.recovered_at = seconds
                # Peers that are held are published, and succeed, once more.
                is_held = name == PEERS and self.network.pipeline.held is not None
                for one in () if is_held else names:
                    if one in self.account.delivered:
                        asked = (standing.ended_at or 0.0) - standing.seconds
                        body, made_at = self.account.delivered.pop(one)
                        self.bodies[one] = body, asked
                        began = seconds - standing.seconds
                        began = began if made_at is None else min(began, made_at)
                        readings = self.accepted.setdefault(one, [])
                        if readings and readings[-1].made_at is None:
                            self.damaged_until[one] = seconds
                        readings.append(Accepted(seconds, began, made_at))
        self._forget()
        self._former_accounts = self.network.inventory.former_accounts

    def _forget(self) -> None:
        """Remove the bodies of resources that the exporter has withdrawn. That includes
        resources that depend on a withdrawn one.
        """
        inventory = self.network.inventory
        for name in [*self.bodies]:
            resource = name.removesuffix("_earlier")
            if inventory.records.get(resource) is None or self._is_dropped(resource):
                if not self._may_lose(resource):
                    self.lost.append(resource)
                del self.bodies[name]
                self.accepted.pop(name, None)
                self.read_at.pop(name, None)

    def _may_lose(self, name: str) -> bool:
        """Return whether records may go: they have expired, a user or an account was
        replaced, the user may not read them, or they are read in another way.
        """
        state, inventory = self.network.states.every.get(name), self.network.inventory
        return (
            state is None
            or state.withdrawn
            or state.not_read is not None
            or name in inventory.withheld
            or name in RULES.own
            or name in RULES.dormant_without
            or name in self._read_otherwise
            or inventory.former_accounts > self._former_accounts
        )

    def _is_dropped(self, name: str) -> bool:
        """Return whether a resource is dropped because of another one. The tokens are
        dropped with their user, all of the Agent Network with its last provider.
        """
        if name == "access_tokens":
            current = [u for u in self._records("users") if u.get("is_current")]
            return (
                min((str(u.get("id", "")) for u in current), default="") != EXPORTER_ID
            )
        return name in RULES.dormant_without and not self._records(AGENTS)

    def _records(self, name: str) -> list[Record]:
        return self._body(name) or [] if name in self.bodies else []

    def _body(self, name: str) -> list[Record] | None:
        body, _ = self.bodies[name]
        if name not in self._read or self._read[name][0] is not body:
            parsed = json.loads(body.decode("utf-8", "replace"))
            if name == PEERS and isinstance(parsed, list):
                for peer in parsed:  # The exporter ignores these, however odd.
                    if isinstance(peer, dict):
                        peer.pop("groups", None)
            self._read[name] = body, records(name, parsed)
        return self._read[name][1]

    def is_missed(self, name: str) -> bool:
        """Return whether it failed and was not retried since the peers recovered."""
        standing = self.network.states[name]
        fails = standing.error is not None or standing.ended_at is None
        return fails and self.tried_at.get(name, -inf) < self.recovered_at

    def max_age_of(self, name: str) -> float:
        """Return seconds for which a resource may be published without a refresh."""
        interval = self.network.states[name].interval
        if self.max_age is None:
            return max(300.0, 3 * interval)
        return max(self.max_age, 1.5 * max(interval, 30.0))

    def is_read_since(self, at: float) -> bool:
        """Return whether all resources that depend on the time were read since `at`."""
        return all(self.read_at.get(name, at) >= at for name in TIME_DEPENDENT)

    def is_between_days(self) -> bool:
        """Return whether today's usage is from yesterday, and the earlier usage new. A
        process that starts now would not have both.
        """
        usage = ("agent_usage", *_EXTRA_BODIES["agent_usage"])
        days = {day(self.bodies[one][1]) for one in usage if one in self.bodies}
        return len(days) > 1

    def held_bodies(self) -> Iterator[bytes]:
        yield from (body for body, _ in self.bodies.values())
        yield from (body for body, _ in self._read.values())
        yield from (b for bodies, _ in self._decoded.values() for b, _ in bodies)
        yield from self._compared_inputs[1].values()

    def sizes(self) -> Iterator[tuple[str, int, int]]:
        """Yield the description, size and maximum size of each collection."""
        network = self.network
        resources = len(network.selection.resources) + 1
        yield "freshness", len(network.states), resources
        yield "recent requests", len(network.telemetry.recent), 20
        yield "pages put together", len(network.pages._wholes), 16
        lines = sum(len(c.families) for c in network.selection.collectors)
        longest = max(
            len(network.inventory.records.get(r.name) or ()) for r in RESOURCES
        )
        yield (
            "texts of pages",
            sum(len(page) for page in network.pages._pages.values()),
            lines * (20 + longest // 8),
        )

    def has_new_inputs(self) -> bool:
        """Return whether the page or the bodies have changed since the last call."""
        inputs = self.network.text(), {name: b for name, (b, _) in self.bodies.items()}
        has_new_inputs, self._compared_inputs = inputs != self._compared_inputs, inputs
        return has_new_inputs

    def differences(self) -> Iterator[str]:
        """Yield a text for each difference between the page and the expected page."""
        pages = self.network.pages._pages
        if self.network.text() != b"".join(map(_text, pages.values())):
            yield "the page is not put together of the newest ones"
        inventory, fresh = self.network.inventory, self.fresh_inventory()
        known = together(
            {name: self._body(name) for name in self.bodies if name in RECORDS}
        )
        settings = Settings(
            personal=inventory.personal,
            detail=inventory.detail,
            asked_of={name: asked for name, (_, asked) in self.bodies.items()},
            now=inventory.now,
            consumption_interval=inventory.intervals.get("agent_consumption", 600.0),
        )
        for collector in self.network.selection.collectors:
            page, expected = pages[collector.name], Samples()
            if collector.name in COLLECTORS:
                expected = self._samples(collector.name, known, settings)
            made_of: list[object] = [
                *(
                    i.records.get(name)
                    for i in (inventory, fresh)
                    for name in collector.reads
                ),
                *(page, expected),
            ]
            before = self._compared.get(collector.name, [])
            unchanged = len(before) == len(made_of) and all(map(is_, before, made_of))
            if unchanged and self._chance.random() > _REPEAT_PROBABILITY:
                continue
            self._compared[collector.name] = made_of
            text = _text(page)
            difference = _unlike_rendered(text, collector, inventory)
            # If the records are the same, `_stale` has already compared this page.
            if any(
                inventory.records.get(name) != fresh.records.get(name)
                for name in collector.reads
            ):
                difference = difference or _unlike_a_fresh_one(text, collector, fresh)
            if collector.name in COLLECTORS:
                difference = difference or _unlike_the_reference(text, expected)
            if difference:
                yield f"{collector.name}: {difference}"

    def _samples(self, name: str, known: Known, settings: Settings) -> Samples:
        """Return the reference's samples, computed again if records have changed."""
        read, samples = self._expected.get(name, ({}, {}))
        is_changed = not read or not read.keys().isdisjoint(TIME_DEPENDENT)
        if is_changed or any(known.get(one) is not read[one] for one in read):
            seen = _ReadRecords(known)
            page = Page()
            COLLECTORS[name](page, seen, settings)
            samples = {
                key: float(value)
                for key, value in page.items()
                if not any(fnmatch(key[0], denied) for denied in self._denied)
            }
            self._expected[name] = seen.read, samples
        return samples

    def fresh_inventory(self) -> Inventory:
        """Return the inventory of a process that received the same bodies just now."""
        known_ = self.network.inventory
        inventory = inventory_of(
            personal=known_.personal,
            detail=known_.detail,
            now=known_.now,
            intervals=known_.intervals,
        )
        for resource in self.network.selection.resources:
            if resource.name in self.bodies:
                inventory = inventory.replacing(resource.name, self._decode(resource))
        return inventory

    def _decode(self, resource: Resource[Any]) -> object:
        """Return the decoded records: the same objects while the bodies are the same.
        Records that depend on the time are decoded again at another request time.
        """
        names = (*_EXTRA_BODIES.get(resource.name, ()), resource.name)
        bodies = [self.bodies[name] for name in names if name in self.bodies]
        if resource.name not in TIME_DEPENDENT:
            bodies = [(body, 0.0) for body, _ in bodies]
        if self._decoded.get(resource.name, ([],))[0] != bodies:
            decoded: tuple[object, ...] = ()
            for body, asked in bodies:
                context = DecodeContext(decoded, now=asked)  # type: ignore[arg-type]
                decoded = resource.decoder.decode(body, context).records
            self._decoded[resource.name] = bodies, decoded
        return self._decoded[resource.name][1]


class _ReadRecords(dict[str, list[Record]]):
    """Records that remember which of them were read."""

    def __init__(self, known: Known) -> None:
        super().__init__(known)
        self.read: Read = {}

    def __contains__(self, name: object) -> bool:
        assert isinstance(name, str)
        self.read[name] = super().get(name)
        return super().__contains__(name)

    def __getitem__(self, name: str) -> list[Record]:
        self.read[name] = super().get(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read[name] = super().get(name)
        return super().get(name, default)


def _text(page: OfCollector) -> bytes:
    return b"".join([piece.text for piece in page])


def _rendered(collector: Collector, inventory: Inventory) -> bytes:
    return _text(render_page(collector.make_families(inventory), EMPTY_PAGE).page)


def _unlike_rendered(now: bytes, collector: Collector, inventory: Inventory) -> str:
    rendered = _rendered(collector, inventory)
    return "" if now == rendered else _first_difference(now, rendered)


def _unlike_a_fresh_one(now: bytes, collector: Collector, fresh: Inventory) -> str:
    """Return the difference to the lines of a process that started now, or ""."""
    rendered = _rendered(collector, fresh)
    if now == rendered or sorted(now.split(b"\n")) == sorted(rendered.split(b"\n")):
        return ""
    return _line_differences(now, rendered)


def _unlike_the_reference(now: bytes, expected: Samples) -> str:
    """Return the first joined sample that differs from the plain reference, or ""."""
    samples = filter(None, map(_sample, now.decode().split("\n")))
    got = {key: value for key, value in samples if key[0] in JOINED}
    if got == expected:
        return ""
    for key in sorted(expected.keys() | got.keys(), key=str):
        one, other = got.get(key), expected.get(key)
        if not same(one, other):
            name = f"{key[0]}{dict(sorted(key[1]))}"
            return f"{name}: {one}, where the reference has {other}"
    return ""


@lru_cache(50_000)
def _sample(line: str) -> tuple[Key, float] | None:
    """Parse a line. Most lines are the same as before, so the result is cached."""
    return None if line[:1] in {"", "#"} else parsed(line + "\n")[0]


def _first_difference(now: bytes, rendered: bytes) -> str:
    for one, other in zip(now.split(b"\n"), rendered.split(b"\n"), strict=False):
        if one != other:
            return f"{one!r}, anew {other!r}"
    return f"{len(now)} bytes, anew {len(rendered)}"


def _line_differences(now: bytes, rendered: bytes) -> str:
    one, other = set(now.split(b"\n")), set(rendered.split(b"\n"))
    return f"too many: {sorted(one - other)[:3]}, missing: {sorted(other - one)[:3]}"


def _reason(standing: ResourceState | None) -> str | None:
    return None if standing is None or standing.error is None else standing.error.reason
