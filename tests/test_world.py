"""The simulation of the whole program is repeatable, and finds bugs."""

import os
import sys
from pathlib import Path
from subprocess import run as start

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.account import Account
from api_exporter.refresh import pipeline
from api_exporter.refresh.refresher import Refresher
from api_exporter.refresh.schedule import Schedule
from simulation.invariants import INVARIANTS
from simulation.run import Run, run

ROOT = Path(__file__).parents[1]


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
            self.assertTrue(
                (ROOT / invariant.document.partition("#")[0]).is_file(), invariant.name
            )


class PlantedTests(SynchronousTestCase):
    def found(self, seed: int = 1, days: float = 0.3) -> Run:
        """Run some seeds until one finds a violation: each change shifts the chance."""
        for each in range(seed, seed + 8):
            made = run(each, days)
            if made.found:
                return made
        raise AssertionError("the bug is not found")

    def name(self) -> str:
        return self.found().found.partition(":")[0]

    def test_removed_account(self) -> None:
        """An account that goes on after its removal is found."""
        self.patch(Account, "disownServiceParent", lambda _: None)
        self.assertIn(self.name(), {"removed", "slots"})

    def test_stale_page(self) -> None:
        """A page that does not follow its body is found."""
        self.patch(pipeline, "_identical", lambda *_: True)
        self.assertEqual("pages", self.name())

    def test_slot(self) -> None:
        """Too many concurrent requests of an account are found."""
        self.patch(Schedule, "_is_busy", lambda _: False)
        self.assertEqual("slots", self.name())

    def test_up(self) -> None:
        """A resource that is up without records is found, with its step."""
        self.patch(Refresher, "_reset_withdrawn", lambda _: None)
        made = self.found(30, 0.2)
        self.assertEqual("up", made.found.partition(":")[0])
        self.assertIn("request", made.recent[-1])
