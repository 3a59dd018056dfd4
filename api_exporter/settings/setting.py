"""One setting: its parser and its description."""

import os
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar, cast

from msgspec import Struct, field
from msgspec.structs import fields, replace

from api_exporter.settings.errors import (
    JOINED,
    ConfigurationError,
    mask_secrets,
    quote_value,
    unexpanded,
)

T = TypeVar("T")

HTTPS = "an https address in UPSTREAM_API_URL"


class Setting(Struct, frozen=True):
    """A variable of the environment.

    Attributes:
        parse: raises ValueError, with or without a hint.
        allowed: description of allowed values.
        default: as text; None if the variable is required.
        section: the section of the documentation that begins with this setting.
        secret: True if errors must not repeat the value.
        is_path: True for a file or folder. It is relative to the folder of the start,
            or to the account's file that names it.
        writes: True for a file that the exporter writes.
        needs: settings without all of which this one has no effect, or HTTPS.
        name: the field's name in capitals.
    """

    parse: Callable[[str], Any]
    allowed: str
    meaning: str
    default: str | None = ""
    section: str = ""
    secret: bool = False
    is_path: bool = False
    writes: bool = False
    needs: tuple[str, ...] = ()
    name: str = ""

    def __call__(self) -> NoReturn:
        """Fail: msgspec calls this for a field without a value."""
        raise TypeError(f"a field without its value: {self.meaning}")

    def read(
        self,
        environ: Mapping[str, str],
        errors: list[ConfigurationError],
        place: str = "",
    ) -> Any:
        """Return the value, or None and append an error. An empty variable is unset.

        Args:
            place: where the value is from, as the beginning of an error.
        """
        text = environ.get(self.name, "").strip() or self.default
        if text is None:
            problem = f"{place}{self.name} is not set: it must be {self.allowed}"
            errors.append(ConfigurationError(problem))
            return None
        failed = ValueError(unexpanded(text))
        if not (self.is_path and str(failed)):
            try:
                return self._parse(text)
            except ValueError as error:
                failed = failed if str(failed) else error
        value = "its value" if self.secret else quote_value(text)
        hint = f" ({mask_secrets(str(failed))})" if str(failed) else ""
        problem = (
            f"{place}{self.name}: {value} is not allowed:"
            f" it must be {self.allowed}{hint}"
        )
        errors.append(ConfigurationError.of(failed, problem))
        return None

    def _parse(self, text: str) -> Any:
        """Parse a value. Pages and metrics may repeat it, so it must be UTF-8."""
        value = self.parse(text)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("the value is not UTF-8") from None
        return value


def absolute_path(folder: str, text: str) -> str:
    """Return the value of a setting that is a path, relative to a folder.

    Standard output is no path, and neither is what a shell should have expanded.
    """
    path = text.strip()
    if path in {"", "-"} or os.path.isabs(path) or unexpanded(path):
        return path
    return f"{folder}{JOINED}{path}" if folder else path


def setting(parse: Callable[[str], T], allowed: str, meaning: str, **more: Any) -> T:
    """Return the setting of a struct's field, typed as the field's value.

    It stands in the place of a default. Without a value msgspec calls it: TypeError.
    """
    return cast("T", field(default_factory=Setting(parse, allowed, meaning, **more)))


def settings_of(struct: type[Struct]) -> tuple[Setting, ...]:
    """Return the settings of a struct's fields with their names and sections."""
    found: list[Setting] = []
    for known in fields(struct):
        if isinstance(row := known.default_factory, Setting):
            section = row.section or found[-1].section
            found.append(replace(row, name=known.name.upper(), section=section))
    return tuple(found)
