"""The error of settings and of the files that they name."""

import re
from collections.abc import Collection, Iterable


class ConfigurationError(ValueError):
    """Errors in settings or files, one line each, without a secret.

    Attributes:
        retryable: True if every error may disappear without a change of settings.
    """

    def __init__(self, *problems: str, retryable: bool = False) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)
        self.retryable = retryable

    @classmethod
    def of(cls, error: ValueError, problem: str) -> "ConfigurationError":
        return cls(problem, retryable=isinstance(error, cls) and error.retryable)

    @classmethod
    def joined(cls, errors: "Collection[ConfigurationError]") -> "ConfigurationError":
        problems = (problem for error in errors for problem in error.problems)
        return cls(*problems, retryable=all(error.retryable for error in errors))


MAX_SHOWN_CHARACTERS = 16
"""Characters of a refused value that an error repeats. A longer one may be a secret,
unless it begins as a path or a URL."""

_MAX_PLACE_CHARACTERS = 200

_PLAIN = re.compile(
    r".{0,4}|-?[A-Za-z]{1,8}|nbp_…"
    r"|[+-]?\d+([.,:/_]\d+)* ?[A-Za-z%]{0,3}"
    r"|(\d+(\.\d+)?(d|h|min|ms|m|s))+"
    r"|[a-z0-9-]+(\.[a-z0-9-]+)+\.?(:\d+)?|[a-z0-9-]*:\d+|\[[0-9A-Fa-f:.%\w]*\](:\d+)?"
)
"""A word of at most eight letters, a number with its unit, a duration, or a host."""

_PATH = r"(/[\w.@~%-]*)+"
_PLACE = re.compile(
    rf"(~\w*|\.\.?|%\w|\$\w+|\$\{{\w+\}}|unix:|file:)?{_PATH}"
    r"|\$\{\w+\}|\$[A-Z][A-Z0-9_]*"
    rf"|https?://(…@)?[\w.:\[\]-]*({_PATH})?([?#]…)?",
    re.ASCII,
)
"""A path or a URL, also one that a shell or systemd should have expanded."""

_LIKENESS = 0.8
"""The share of equal letters from which on a word is a misspelt name."""

_UNEXPANDED = re.compile(
    r"(%[a-zA-Z]|~\w*)(?=/)|\$(\{\w+\}|[A-Za-z_]\w*(?=/)|[A-Z][A-Z0-9_]*$)|file:(?=/)",
    re.ASCII,
)


JOINED = "/./"
"""Between the folder and a relative path, which `Path` reads as one slash."""

_RELATIVE = re.compile(r"[a-z_.-]+(/[a-z_.-]+)+")


def quote_value(text: str, known: Iterable[str] = ()) -> str:
    """Return a refused value, or a part of it, for an error.

    It is repeated only if it is not likely to be a secret in the wrong place: a number,
    a short word, a path, an address, or nearly one of the known values.
    """
    folder, joined, given = text.partition(JOINED)
    if joined and folder.startswith("/"):
        return _quote_relative(folder, given.replace(JOINED, "/"))
    from difflib import get_close_matches  # noqa: PLC0415 - --health has no such error

    if len(text) <= _MAX_PLACE_CHARACTERS:
        shown = re.sub(r"(https?://[^?#]*[?#]).+", r"\1…", mask_secrets(text))
        is_short = len(shown) <= MAX_SHOWN_CHARACTERS
        names = [name.lower() for name in known]
        if (
            (is_short and _PLAIN.fullmatch(shown))
            or _PLACE.fullmatch(shown)
            or get_close_matches(text.lower(), names, 1, _LIKENESS)
        ):
            return repr(shown)
    return f"a value of {len(text)} characters"


def _quote_relative(folder: str, path: str) -> str:
    """Return a path below a folder. A token may be in place of the name of a file."""
    shown = quote_value(path)
    is_name = _RELATIVE.fullmatch(path) or shown == repr(path)
    return repr(f"{folder}/{path}") if is_name else shown


def unexpanded(text: str) -> str:
    """Return why a value is no path or value yet, or "" if nothing is to expand.

    It begins with what a shell or systemd replaces, such as `~/`, `${NAME}` or `%d/`.
    """
    if (found := _UNEXPANDED.match(text)) is None:
        return ""
    if found[0] == "file:":
        return "leave out file: and write a path"
    return (
        f"{found[0]} is not expanded here, unlike in a shell or a unit: write the whole"
        " value"
    )


def mask_secrets(text: str) -> str:
    """Return the text without a password in an address, or a misplaced token."""
    hidden, at, rest = text.rpartition("@")
    if at:
        scheme = re.match(r"(\w+://)?", hidden)
        assert scheme is not None  # it may be empty
        text = f"{scheme[0]}…@{rest}"
    return re.sub(r"nbp_\w+", "nbp_…", text)
