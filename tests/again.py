"""The tests that failed beside others, run once more by themselves.

Real programs under a bound in time can fail because the machine was busy with the other
half of the tests. `python -m tests.again LOG ...` reads what trial printed, names the
tests that failed and runs them alone: what is wrong fails again. More than a few are
never bad luck.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from twisted.trial.reporter import VerboseTextReporter
from twisted.trial.runner import TestLoader, TrialRunner

MOST = 3
NAME = re.compile(r"^tests[\w.]+$", re.MULTILINE)


def failed(printed: str) -> list[str]:
    """The names that trial puts below each failure, each once, sorted.

    Raises `SystemExit` for a run that broke off, or that failed without a name.
    """
    _, _, failures = printed.partition("\n" + "=" * 79 + "\n")
    names = sorted(set(NAME.findall(failures)))
    ends = re.findall(r"^(PASSED|FAILED)\b", printed, re.MULTILINE)
    if ends != ["FAILED" if names else "PASSED"]:
        sys.exit("The tests did not come to their end.")
    return names


def main(logs: Sequence[str]) -> int:
    """An exit status: 0 if all that failed passes now."""
    names = [
        name for log in logs for name in failed(Path(log).read_text(errors="replace"))
    ]
    if not 0 < len(names) <= MOST:
        sys.stderr.write(f"{len(names)} tests failed.\n")
        return 1
    sys.stderr.write("Failed beside others, now alone: " + ", ".join(names) + "\n")
    runner = TrialRunner(VerboseTextReporter, workingDirectory="build/trial-again")
    return 0 if runner.run(TestLoader().loadByNames(names)).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
