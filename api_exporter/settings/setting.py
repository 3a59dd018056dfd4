"""One setting: how its text becomes a checked value, and its description."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar, cast

from msgspec import Struct, field
from msgspec.structs import fields, replace

from api_exporter.settings.errors import ConfigurationError, masked, shown

T = TypeVar("T")


class Setting(Struct, frozen=True):
    """A variable of the environment.

    Attributes:
        parse: raises ValueError, with a hint or without words.
        allowed: what a value must be, for a person.
        default: as it would be written; None where the variable is required.
        section: of the documentation, which begins with this one.
        secret: the value is never repeated.
        path: a file's, which in an account's file is relative to that.
        name: the field's in capitals.
    """

    parse: Callable[[str], Any]
    allowed: str
    meaning: str
    default: str | None = ""
    section: str = ""
    secret: bool = False
    path: bool = False
    name: str = ""

    def __call__(self) -> NoReturn:
        """Called where a struct is made without a value for the field."""
        raise TypeError(f"a field without its value: {self.meaning}")

    def read(
        self,
        environ: Mapping[str, str],
        errors: list[ConfigurationError],
        place: str = "",
    ) -> Any:
        """The value, or None with one error more. An empty variable is unset.

        Args:
            place: what a problem begins with: where the value comes from.
        """
        text = environ.get(self.name, "").strip() or self.default
        if text is None:
            problem = f"{place}{self.name} is not set: it must be {self.allowed}"
            errors.append(ConfigurationError(problem))
            return None
        try:
            return self.parse(text)
        except ValueError as error:
            value = "its value" if self.secret else shown(text)
            hint = f" ({masked(str(error))})" if str(error) else ""
            problem = (
                f"{place}{self.name}: {value} is not allowed:"
                f" it must be {self.allowed}{hint}"
            )
            errors.append(ConfigurationError.of(error, problem))
            return None


def setting(
    parse: Callable[[str], T],
    allowed: str,
    meaning: str,
    **more: Any,
) -> T:
    """A setting in the place of the value, of which the field's type is that.

    It is no default: a struct takes it for a maker of one, and that raises TypeError.
    """
    return cast("T", field(default_factory=Setting(parse, allowed, meaning, **more)))


def settings_of(struct: type[Struct]) -> tuple[Setting, ...]:
    """Those of a struct's fields, named, each with its section."""
    found: list[Setting] = []
    for known in fields(struct):
        if isinstance(row := known.default_factory, Setting):
            section = row.section or found[-1].section
            found.append(replace(row, name=known.name.upper(), section=section))
    return tuple(found)
