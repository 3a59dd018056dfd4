"""The tools that measure the tests, for docs/develop/correctness.md."""

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from checks.mutation.mutants import mutants
from simulation.planted import BUGS, ROOT, planted
from simulation.probes import PROBES, probed
from tests.reference.recorded import ledger
from tools.correctness import results

SOURCE = """\
def least(a: int, b: int = 1) -> int:
    \"\"\"Of two.\"\"\"
    assert a >= 0
    if a < b:
        return a
    return b
"""


class ToolsTests(SynchronousTestCase):
    def test_planted(self) -> None:
        """Each bug can be planted, and the result is valid Python with its probes."""
        path = Path(self.mktemp())
        for bug in BUGS:
            text = (ROOT / "api_exporter" / bug.file).read_text()
            path.write_text(planted(bug, text))
            probed(path, [one for one in PROBES if f"{one.file}.py" == bug.file])
        self.assertEqual(len(BUGS), len({bug.name for bug in BUGS}))

    def test_ledger(self) -> None:
        """The ledger of all families is that of the recorded bodies."""
        self.assertEqual(ledger(), results()["ledger"])

    def test_probes(self) -> None:
        """Each probe's text is one statement of its file."""
        for file in {probe.file for probe in PROBES}:
            of_file = [probe for probe in PROBES if probe.file == file]
            compile(probed(ROOT / "api_exporter" / f"{file}.py", of_file), file, "exec")
        self.assertEqual(len(PROBES), len({probe.name for probe in PROBES}))

    def test_mutants(self) -> None:
        """All code has mutants, except for strings and assertions."""
        path = Path(self.mktemp())
        path.write_text(SOURCE)
        self.assertEqual(
            [
                "1: 1  →  2",
                "4: a < b  →  a <= b",
                "4: if a < b:  →  if not a < b:",
                "5: return a  →  return None",
                "6: return b  →  return None",
            ],
            sorted("{}: {}".format(*mutant.made()) for mutant in mutants(path)),
        )
