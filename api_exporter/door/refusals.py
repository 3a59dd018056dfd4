"""Why files that say who may come in cannot be used."""


class Wrong(Exception):
    """Everything that is wrong with a file, a line each, without a secret.

    Attributes:
        retryable: whether waiting may mend all of it.
    """

    def __init__(self, problems: list[str], *, retryable: bool = False) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        self.retryable = retryable
