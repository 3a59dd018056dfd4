"""The error of settings, and of the files that they name, without a secret."""

import re


class ConfigurationError(ValueError):
    """What is wrong with settings or a file, a line each, without a secret.

    Attributes:
        retryable: whether waiting may mend all of it.
    """

    def __init__(self, *problems: str, retryable: bool = False) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)
        self.retryable = retryable

    @classmethod
    def of(cls, error: ValueError, problem: str) -> "ConfigurationError":
        return cls(problem, retryable=isinstance(error, cls) and error.retryable)


LONGEST_SHOWN = 16
"""Characters of a refused value that an error repeats. A longer one may be a secret in
the wrong place.
"""


def shown(text: str) -> str:
    """A refused value, or a part of one, for an error."""
    if len(text) > LONGEST_SHOWN:
        return f"a value of {len(text)} characters"
    return repr(masked(text))


def masked(text: str) -> str:
    """Without a password in an address, or a token in the wrong place."""
    hidden, at, shown = text.rpartition("@")
    if at:
        scheme = re.match(r"(\w+://)?", hidden)
        assert scheme is not None  # it may be empty
        text = f"{scheme[0]}…@{shown}"
    return re.sub(r"nbp_\w+", "nbp_…", text)
