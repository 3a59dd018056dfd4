"""Keeps an account's findings: they are looked for when something has changed."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import is_

from msgspec import Struct

from api_exporter.attention.finding import Finding, Seen
from api_exporter.attention.findings import findings, unknown
from api_exporter.attention.thresholds import SEVERITIES, shipped
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.resources import UP
from api_exporter.telemetry.history import Count, History
from api_exporter.telemetry.standing import Standing

LIFE = 10.0
"""Seconds after which they are looked for in any case: some only wait for their day."""


class Found(Struct, frozen=True, kw_only=True):
    """What was found at some time.

    Attributes:
        findings: the worst first.
        unknown: resources in which nothing could be looked for.
        counts: of all severities, the worst first; empty while nothing is known at all.
    """

    findings: tuple[Finding, ...]
    unknown: tuple[str, ...]
    counts: Mapping[str, int]


class Attention:
    """What needs attention in one account.

    Args:
        inventory: what is known of its network.
        standings: by resource.
        chosen: IMPORTANT_GROUPS.
    """

    def __init__(
        self,
        inventory: Callable[[], Inventory],
        *,
        standings: Mapping[str, Standing],
        history: History,
        chosen: tuple[str, ...] = (),
    ) -> None:
        self._inventory = inventory
        self._standings = standings
        self._history = history
        self._chosen = chosen
        self._thresholds = shipped()
        self._kept: tuple[float, Inventory, tuple[Standing, ...], Found] | None = None

    def __call__(self, now: float) -> Found:
        """What there is at a time in seconds since the epoch."""
        inventory, standings = self._inventory(), tuple(self._standings.values())
        if self._kept is not None:
            at, known, before, found = self._kept
            same = known is inventory and all(map(is_, before, standings))
            if same and 0 <= now - at < LIFE:
                return found
        found = self.of(inventory, self._standings, now, self._history.runs(now))
        self._kept = now, inventory, standings, found
        return found

    def of(
        self,
        inventory: Inventory,
        standings: Mapping[str, Standing],
        now: float,
        runs: Sequence[Sequence[Count]] = (),
    ) -> Found:
        """What there is in what somebody else knows."""
        seen = Seen(
            inventory=inventory,
            thresholds=self._thresholds,
            now=now,
            standings=standings,
            runs=runs,
            chosen=self._chosen,
        )
        every = findings(seen)
        numbers = Counter(finding.severity for finding in every)
        started = standings[UP].up is not None
        return Found(
            findings=every,
            unknown=unknown(seen),
            counts={s: numbers[s] for s in SEVERITIES} if started else {},
        )
