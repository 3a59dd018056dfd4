"""The error of settings and of the files that they name."""

import re


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


MAX_SHOWN_CHARACTERS = 16
"""Characters of a refused value that an error repeats. A longer one may be a secret."""


def quote_value(text: str) -> str:
    """Return a refused value, or a part of it, for an error."""
    if len(text) > MAX_SHOWN_CHARACTERS:
        return f"a value of {len(text)} characters"
    return repr(mask_secrets(text))


def mask_secrets(text: str) -> str:
    """Return the text without a password in an address, or a misplaced token."""
    hidden, at, rest = text.rpartition("@")
    if at:
        scheme = re.match(r"(\w+://)?", hidden)
        assert scheme is not None  # it may be empty
        text = f"{scheme[0]}…@{rest}"
    return re.sub(r"nbp_\w+", "nbp_…", text)
