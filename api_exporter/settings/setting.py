"""One setting: from the environment's text to a checked value."""

import re
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from api_exporter.settings.credential import NotYet

T_co = TypeVar("T_co", covariant=True)


class Passing(str):
    """A problem that waiting may mend."""

    __slots__ = ()


class SettingsError(Exception):
    """Everything that is wrong with the settings, a line each.

    Attributes:
        lasting: whether any of it stays wrong until somebody changes it.
    """

    def __init__(self, problems: list[str], *, lasting: bool) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
        self.lasting = lasting


class Setting(Struct, Generic[T_co], frozen=True):
    """One variable of the environment.

    Attributes:
        default: as it would be written; None where the variable is required.
        allowed: what a value must be, for a person.
        parse: raises ValueError, with a hint or without words.
        secret: the value is never repeated.
        of_account: whether it belongs to an account; else it belongs to the process.
        path: a file's, which in an account's file is relative to that.
    """

    name: str
    default: str | None
    allowed: str
    meaning: str
    parse: Callable[[str], T_co]
    secret: bool = False
    of_account: bool = False
    path: bool = False

    def read(
        self, environ: Mapping[str, str], problems: list[str], place: str = ""
    ) -> T_co | None:
        """The value, or None with one problem more. An empty variable is unset.

        Args:
            place: what a problem begins with: where the value comes from.
        """
        text = environ.get(self.name, "").strip() or self.default
        if text is None:
            problems.append(f"{place}{self.name} is not set: it must be {self.allowed}")
            return None
        try:
            return self.parse(text)
        except ValueError as error:
            value = "its value" if self.secret else repr(masked(text))
            hint = f" ({masked(str(error))})" if str(error) else ""
            problem = (
                f"{place}{self.name}: {value} is not allowed:"
                f" it must be {self.allowed}{hint}"
            )
            passing = isinstance(error, NotYet)
            problems.append(Passing(problem) if passing else problem)
            return None


def masked(text: str) -> str:
    """Without a password in an address, or a token in the wrong place."""
    hidden, at, shown = text.rpartition("@")
    if at:
        scheme = re.match(r"(\w+://)?", hidden)
        assert scheme is not None  # it may be empty
        text = f"{scheme[0]}…@{shown}"
    return re.sub(r"nbp_\w+", "nbp_…", text)
