"""Why files that say who may come in cannot be used."""

from api_exporter.settings.setting import Passing


class Wrong(Exception):
    """Everything that is wrong with a file, a line each, without a secret.

    Attributes:
        lasting: whether it stays wrong until somebody changes it.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        self.lasting = not all(isinstance(problem, Passing) for problem in problems)
