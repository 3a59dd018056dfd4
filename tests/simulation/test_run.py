"""The simulation of the whole program is repeatable."""

import os
import sys
from pathlib import Path
from subprocess import run as start

from twisted.trial.unittest import SynchronousTestCase

from simulation.invariants import INVARIANTS
from simulation.run import run

ROOT = Path(__file__).parents[2]


class RunTests(SynchronousTestCase):
    def test_repeated(self) -> None:
        """A seed gives the same run with any hash seed; another seed differs."""
        digests = [self.digest("1", "0"), self.digest("1", "1"), self.digest("2", "1")]
        self.assertEqual(digests[0], digests[1])
        self.assertNotEqual(digests[1], digests[2])

    def digest(self, seed: str, hashes: str) -> str:
        command = (sys.executable, "-m", "simulation", "--days", "0.01", "--seed", seed)
        env = {**os.environ, "PYTHONHASHSEED": hashes, "COVERAGE_PROCESS_START": ""}
        done = start(command, cwd=ROOT, env=env, capture_output=True, check=True)
        return done.stdout.decode().partition("digest ")[2].split()[0]

    def test_until(self) -> None:
        """A run ends with the requested step."""
        whole = run(3, 0.01)
        part = run(3, 1.0, until=whole.step)
        self.assertEqual(("", ""), (whole.found, part.found))
        self.assertEqual((whole.step, whole.digest), (part.step, part.digest))

    def test_documents(self) -> None:
        """Each invariant names an existing document."""
        for invariant in INVARIANTS:
            file = ROOT / "docs" / invariant.document.partition("#")[0]
            self.assertTrue(file.is_file(), invariant.name)
