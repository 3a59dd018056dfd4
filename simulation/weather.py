"""The weather: in what state the upstream is, for whom and since when."""

from collections.abc import Callable
from random import Random

from msgspec import Struct

WELL = "well"

DOOR = ("refused", "lost")
"""States of a server that cannot even be connected to."""

KINDS = (
    *DOOR,
    "hung",
    "reset",
    "slow",
    "very slow",
    "cut",
    "damaged",
    "null",
    "empty",
    "page",
    "redirect",
    "400",
    "401",
    "403",
    "404",
    "407",
    "408",
    "429",
    "429 and a wait",
    "429 and a wait",
    "429 and a wait",
    "500",
    "502",
    "503",
    "503 and a wait",
    "204",
    "999",
)

LONGEST = 4 * 3600.0


class Spell(Struct, frozen=True, eq=False):
    """Some bad time.

    Attributes:
        kinds: one of them, by chance, at each request.
        account: whose; None for all.
        path: of whose answers alone; None for all.
        share: of the requests that have it.
    """

    end: float
    kinds: tuple[str, ...]
    account: str | None
    path: str | None
    share: float


class Weather:
    """Bad times come and go by chance.

    Args:
        accounts: their names.
        paths: of which some may be bad alone.
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

    def worsen(self) -> Spell:
        """A bad time begins."""
        chance = self._chance
        lasting = 3.0 * (LONGEST / 3.0) ** chance.random()
        path = None
        if chance.random() < 0.3:
            path = "api/peers" if chance.random() < 0.3 else chance.choice(self._paths)
        spell = Spell(
            end=self._seconds() + lasting,
            kinds=tuple(chance.sample(KINDS, chance.choice((1, 1, 1, 2, 4)))),
            account=chance.choice((None, *self._accounts)),
            path=path,
            share=chance.choice((1.0, 1.0, 1.0, 0.5, 0.1)),
        )
        self.spells.append(spell)
        return spell

    def improve(self) -> None:
        """What has lasted long enough ends."""
        now = self._seconds()
        self.spells = [spell for spell in self.spells if spell.end > now]

    def shuts(self) -> bool:
        """Whether connecting may fail, or take as long as an attempt."""
        return any(
            spell.account is None and spell.path is None and {*spell.kinds} & {*DOOR}
            for spell in self.spells
        )

    def door(self) -> str:
        """What comes of connecting."""
        for spell in self.spells:
            if spell.account is None and spell.path is None:
                for kind in spell.kinds:
                    if kind in DOOR and self._chance.random() < spell.share:
                        return kind
        return "open"

    def state(self, account: str, path: str) -> str:
        """What a request meets."""
        for spell in self.spells:
            if (
                spell.account in {None, account}
                and spell.path in {None, path}
                and self._chance.random() < spell.share
            ):
                kind = self._chance.choice(spell.kinds)
                return "reset" if kind in DOOR else kind
        return WELL

    def bad(self, account: str) -> bool:
        """Whether anything of an account's may meet any of it."""
        return any(spell.account in {None, account} for spell in self.spells)
