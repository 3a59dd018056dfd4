"""What the exporter ought to know of an account: the bodies of good answers."""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from api_exporter.account import Account as Reader
from api_exporter.demo.people import EXPORTER_ID
from api_exporter.exposition.incremental import EMPTY_PAGE, render_page
from api_exporter.netbird.bodies import DecodeContext
from api_exporter.netbird.inventory import OF_AGENTS, Inventory
from api_exporter.netbird.resources import ACCESS_LOG, RESOURCES, UP
from api_exporter.settings.definitions import AccountSettings
from api_exporter.telemetry.freshness import Freshness
from simulation.account import AGENTS, OF_THE_TIME, Account
from tests.collectors.samples import parsed
from tests.reference import COLLECTORS
from tests.reference.bodies import known
from tests.reference.comparison import same
from tests.reference.page import Key, Page, Settings

T = TypeVar("T")

_OTHERS = {"agent_usage": ("agent_usage_earlier",)}


class Knowledge:
    """Of one account, in one life of the exporter.

    Args:
        reader: the exporter's account.
        account: the upstream's.

    Attributes:
        bodies: by resource, the last that was good, and when it was asked for.
        read_at: when that was, in seconds of the clock.
        tried_at: when the last refresh of each ended, however it did.
        max_age: METRICS_MAX_AGE, if it is set.
        timeout: seconds for an attempt.
        refused_at: when the upstream wanted fewer requests last.
        touched: whether anything has changed in this step.
    """

    def __init__(
        self, reader: Reader, account: Account, settings: AccountSettings
    ) -> None:
        self.reader = reader
        self.network = reader.network
        self.account = account
        self.bodies: dict[str, tuple[bytes, float]] = {}
        self.read_at: dict[str, float] = {}
        self.tried_at: dict[str, float] = {}
        self.max_age = settings.metrics_max_age
        self.timeout = settings.http_timeout
        self.refused_at = -1e9
        self.touched = True
        self._seen: dict[str, Freshness] = {}
        self._newest: list[int] = []
        self._parsed: dict[str, tuple[bytes, Sequence[Mapping[str, object]]]] = {}
        self._compared: tuple[bytes, dict[str, bytes]] = b"", {}

    def look(self, seconds: float) -> list[str]:
        """See what refreshes have ended well since the last look; which."""
        standings = self.network.telemetry.standings
        newest = [*map(id, standings.values())]  # whose objects are kept below
        if newest == self._newest:
            return []
        self._newest = newest
        self.touched = True
        read = []
        for name, standing in standings.items():
            before = self._seen.get(name)
            if standing is before:
                continue
            self._seen[name] = standing
            if before is None or standing.ended != before.ended:
                self.tried_at[name] = seconds
            if standing.error is not None and standing.error.reason == "rate_limited":
                self.refused_at = seconds
            if standing.last_success != (before and before.last_success):
                read.append(name)
                self.read_at[name] = seconds
                for one in (name, *_OTHERS.get(name, ())) if name != ACCESS_LOG else ():
                    if one in self.account.delivered:
                        body = self.account.delivered[one]
                        asked = (standing.ended or 0.0) - standing.seconds
                        if one == name or self.bodies.get(one, (b"",))[0] != body:
                            self.bodies[one] = body, asked
        self._forget()
        return read

    def _forget(self) -> None:
        """What the exporter has withdrawn it no longer ought to know, nor what went
        with something else.
        """
        inventory = self.network.inventory
        for name in [*self.bodies]:
            of = name.removesuffix("_earlier")
            if getattr(inventory, of) is None or self._goes(of):
                del self.bodies[name]
                self.read_at.pop(name, None)

    def _goes(self, name: str) -> bool:
        """Tokens with the user whose they are, all of agents with the last provider."""
        if name == "access_tokens":
            current = [u for u in self._records("users") if u.get("is_current")]
            return (
                min((str(u.get("id", "")) for u in current), default="") != EXPORTER_ID
            )
        return name in OF_AGENTS and not self._records(AGENTS)

    def _records(self, name: str) -> Sequence[Mapping[str, object]]:
        """In the last good body of a resource; none where there is no such body."""
        body, _ = self.bodies.get(name, (b"[]", 0.0))
        if self._parsed.get(name, (b"", []))[0] is not body:
            parsed = json.loads(body.decode("utf-8", "replace"))
            self._parsed[name] = body, known({name: parsed}).get(name, [])
        return self._parsed[name][1]

    def longest(self, name: str) -> float:
        """Seconds for which a resource may be told without a refresh."""
        period = self.network.telemetry.standings[name].period
        if self.max_age is None:
            return max(300.0, 3 * period)
        return max(self.max_age, 1.5 * max(period, 30.0))

    def since(self, at: float) -> bool:
        """Whether all that the time alone changes was read since a time."""
        return all(self.read_at.get(name, at) >= at for name in OF_THE_TIME)

    def held(self) -> Iterator[bytes]:
        """All bodies that are held here."""
        yield from (body for body, _ in self.bodies.values())
        yield from (body for body, _ in self._parsed.values())
        yield from self._compared[1].values()

    def sizes(self) -> Iterator[tuple[str, int, int]]:
        """What is held: what, how many there are, and how many may be."""
        network = self.network
        resources = len(network.selection.resources) + 1
        yield "states of resources", len(network.pipeline.states), resources
        yield "standings", len(network.telemetry.standings), resources
        yield "recent requests", len(network.telemetry.recent), 20
        yield "pages put together", len(network.pages._wholes), 16
        lines = sum(len(c.families) for c in network.collectors)
        longest = max(len(getattr(network.inventory, r.name) or ()) for r in RESOURCES)
        yield (
            "texts of pages",
            sum(len(page) for page in network.pages._pages.values()),
            lines * (20 + longest // 8),
        )

    def changed(self) -> bool:
        """Whether there is anything new to compare since this was asked last."""
        told = self.network.text(), {name: b for name, (b, _) in self.bodies.items()}
        changed, self._compared = told != self._compared, told
        return changed

    def stale(self) -> str:
        """Where the page is not what the inventory makes anew."""
        network = self.network
        for collector in network.collectors:
            steps = render_page(collector.measure(network.inventory), EMPTY_PAGE)
            anew = b"".join(piece.text for piece in _finish(steps).page)
            now = b"".join(piece.text for piece in network.pages._pages[collector.name])
            if now != anew:
                return f"{collector.name}: {_first(now, anew)}"
        return ""

    def started_now(self) -> Inventory:
        """What a process would know that got the bodies just now."""
        known_ = self.network.inventory
        inventory = Inventory(
            personal=known_.personal,
            detail=known_.detail,
            now=known_.now,
            consumption_period=known_.consumption_period,
        )
        for resource in self.network.selection.resources:
            before: tuple[object, ...] = ()
            for name in (*_OTHERS.get(resource.name, ()), resource.name):
                if name in self.bodies:
                    body, asked = self.bodies[name]
                    context = DecodeContext(before, now=asked)  # type: ignore[arg-type]
                    steps = resource.body.decode(body, context)
                    before = _finish(steps).records
            if resource.name in self.bodies:
                inventory = inventory.with_(resource.name, before)
        return inventory

    def unlike_a_fresh_one(self) -> str:
        """Where the lines are others than those of a process that started now."""
        inventory = self.started_now()
        for collector in self.network.collectors:
            steps = render_page(collector.measure(inventory), EMPTY_PAGE)
            anew = b"".join(piece.text for piece in _finish(steps).page)
            now = b"".join(
                piece.text for piece in self.network.pages._pages[collector.name]
            )
            if sorted(now.split(b"\n")) != sorted(anew.split(b"\n")):
                return f"{collector.name}: {_differing(now, anew)}"
        return ""

    def unlike_the_reference(self) -> str:
        """Where the samples are others than those of the plain reference."""
        inventory = self.network.inventory
        text = self.network.text().decode()
        enabled = {collector.name for collector in self.network.collectors}
        sent = {
            name: json.loads(body.decode("utf-8", "replace"))
            for name, (body, _) in self.bodies.items()
        }
        if "drop_in" not in enabled and isinstance(sent.get(UP), list):
            for peer in sent[UP]:  # nobody reads their groups, however odd these are
                if isinstance(peer, dict):
                    peer.pop("groups", None)
        records = known(sent)
        settings = Settings(
            personal=inventory.personal,
            detail=inventory.detail,
            asked_of={name: asked for name, (_, asked) in self.bodies.items()},
            now=inventory.now,
            consumption_interval=inventory.consumption_period,
        )
        wanted = Page()
        for collector in COLLECTORS:
            if collector.__name__ in enabled:
                wanted |= collector(records, settings)
        got = dict(filter(None, map(_sample, text.split("\n"))))
        for key in sorted(wanted.keys() | got.keys(), key=str):
            one, other = got.get(key), wanted.get(key)
            if not same(one, other):
                name = f"{key[0]}{dict(sorted(key[1]))}"
                return f"{name}: {one}, where the reference has {other}"
        return ""


@lru_cache(50_000)
def _sample(line: str) -> tuple[Key, float] | None:
    """Of a line, which is mostly one that was there before."""
    return None if line[:1] in {"", "#"} else parsed(line + "\n")[0]


def _finish(steps: Generator[object, None, T]) -> T:
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def _first(now: bytes, anew: bytes) -> str:
    for one, other in zip(now.split(b"\n"), anew.split(b"\n"), strict=False):
        if one != other:
            return f"{one!r}, anew {other!r}"
    return f"{len(now)} bytes, anew {len(anew)}"


def _differing(now: bytes, anew: bytes) -> str:
    one, other = set(now.split(b"\n")), set(anew.split(b"\n"))
    return f"too many: {sorted(one - other)[:3]}, missing: {sorted(other - one)[:3]}"
