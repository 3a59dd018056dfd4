"""The error of settings, and of the files that they name."""


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
