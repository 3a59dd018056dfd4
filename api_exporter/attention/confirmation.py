"""The confirmation of findings that need several lists. Pure.

Note [Found again]. Lists are read one after the other, so a finding of several lists
may mix two moments. It is reported once it was found again after each of the other
lists was read again: with a reading that began after the one that brought it ended. It
was found at each evaluation in between. A list whose request has failed since is not
waited for, and no finding waits longer than MAX_WAIT.
"""

from collections.abc import Collection, Mapping, Set
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from api_exporter.attention.finding import FindingKey
from api_exporter.netbird.inventory import Reading

MAX_WAIT = 180.0
"""Seconds after which a finding is reported, counted from the first sight."""


class Wait(Struct, frozen=True, gc=False):
    """The wait of a finding that is kept back.

    Attributes:
        since: the end of the newest reading at the first sight; see `Reading`.
        lists: those that were not read again since then.
        until: when it is reported in any case, in seconds of the clock.
    """

    since: int
    lists: tuple[str, ...]
    until: float

    def after(
        self, readings: Mapping[str, Reading], failed: str | None, seconds: float
    ) -> "Wait | None":
        """Return the rest of the wait; None if the finding is reported.

        Args:
            failed: the list whose request has just failed.
        """
        lists = tuple(
            name
            for name in self.lists
            if name != failed and readings[name].began < self.since
        )
        return replace(self, lists=lists) if lists and seconds < self.until else None


Waits = Mapping[FindingKey, Wait]
"""The waits of findings that are kept back, the most severe first."""


def awaited_lists(waits: Waits) -> tuple[str, ...]:
    """Return the lists that findings wait for, the most severe finding's first."""
    lists = chain.from_iterable(wait.lists for wait in waits.values())
    return tuple(dict.fromkeys(lists))


def first_wait(
    reads: Collection[str],
    readings: Mapping[str, Reading],
    changed: Set[str],
    seconds: float,
) -> Wait | None:
    """Return the wait of a finding at its first sight; None if it is reported at once.

    Args:
        reads: the lists of its finder, all of which are known.
        changed: the lists whose records have changed since the last evaluation. The
            newest of them has brought the finding; if time alone has, the newest list.
    """
    by_end = sorted(readings.keys() & reads, key=lambda name: readings[name].ended)
    if len(by_end) < 2:
        return None
    brought_by = ([name for name in by_end if name in changed] or by_end)[-1]
    since, until = readings[brought_by].ended, seconds + MAX_WAIT
    others = tuple(name for name in by_end if name != brought_by)
    return Wait(since, others, until).after(readings, None, seconds)
