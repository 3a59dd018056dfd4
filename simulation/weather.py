"""The failures of the simulated NetBird API, by account, path and time."""

from collections.abc import Callable
from math import inf
from random import Random

from msgspec import Struct

WELL = "well"

UNREACHABLE = ("refused", "lost")
"""States in which no connection is made."""

SPOILING = ("damaged", "null", "empty")
"""States in which the body is not that of the records."""

KINDS = (
    *UNREACHABLE,
    *("hung", "reset", "slow", "very slow", "cut", *SPOILING),
    *("page", "redirect", "400", "401", "403", "404", "407", "408", "429"),
    *("429 and a wait", "429 and a wait", "429 and a wait"),
    *("500", "502", "503", "503 and a wait", "204", "999"),
)

MAX_SPELL_SECONDS = 4 * 3600.0
MAX_SHORT_SECONDS = 600.0


class Spell(Struct, frozen=True, eq=False):
    """A time of failures.

    Attributes:
        kinds: the states, one of which each request meets by chance.
        account: the affected account; None for all.
        path: the affected path; None for all.
        share: the probability that a request is affected.
    """

    end: float
    kinds: tuple[str, ...]
    account: str | None
    path: str | None
    share: float


class Weather:
    """Failures that come and go by chance.

    Args:
        chance: decides which requests a spell affects.
        accounts: names of the accounts.
        paths: paths that may fail alone.

    Attributes:
        slow_names: the most seconds that the look-up of a name takes now; 0 if all are
            quick and succeed.
        unreachable_at: when a connection failed last, in seconds of the clock, or the
            look-up of its name began that was slow or failed.
    """

    def __init__(
        self,
        chance: Random,
        accounts: tuple[str, ...],
        paths: tuple[str, ...],
        seconds: Callable[[], float],
    ) -> None:
        self._chance = chance
        self._accounts = accounts
        self._paths = paths
        self._seconds = seconds
        self.spells: list[Spell] = []
        self.slow_names = 0.0
        self.unreachable_at = -inf

    def worsen(self, chance: Random, account: str | None = None) -> Spell:
        """Begin a spell, of one account if it is given; that lasts minutes at most."""
        longest = MAX_SPELL_SECONDS if account is None else MAX_SHORT_SECONDS
        seconds = 3.0 * (longest / 3.0) ** chance.random()
        path = None
        if chance.random() < 0.3:
            path = "api/peers" if chance.random() < 0.3 else chance.choice(self._paths)
        spell = Spell(
            end=self._seconds() + seconds,
            kinds=tuple(chance.sample(KINDS, chance.choice((1, 1, 1, 2, 4)))),
            account=account or chance.choice((None, *self._accounts)),
            path=path,
            share=chance.choice((1.0, 1.0, 1.0, 0.5, 0.1)),
        )
        self.spells.append(spell)
        return spell

    def improve(self) -> None:
        now = self._seconds()
        self.spells = [spell for spell in self.spells if spell.end > now]

    def may_be_unreachable(self) -> bool:
        """Return whether connecting may fail or time out."""
        return self.slow_names > 0.0 or any(
            spell.account is None
            and spell.path is None
            and {*spell.kinds} & {*UNREACHABLE}
            for spell in self.spells
        )

    def connection_state(self) -> str:
        for spell in self.spells:
            if spell.account is None and spell.path is None:
                for kind in spell.kinds:
                    if kind in UNREACHABLE and self._chance.random() < spell.share:
                        self.unreachable_at = self._seconds()
                        return kind
        return "open"

    def state(self, account: str, path: str) -> str:
        for spell in self.spells:
            if (
                spell.account in {None, account}
                and spell.path in {None, path}
                and self._chance.random() < spell.share
            ):
                kind = self._chance.choice(spell.kinds)
                return "reset" if kind in UNREACHABLE else kind
        return WELL
