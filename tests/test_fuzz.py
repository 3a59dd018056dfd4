"""The inputs in the fuzzer's corpus; `python -m checks.fuzz` finds new ones."""

from importlib import import_module

from twisted.trial.unittest import SynchronousTestCase

from checks.fuzz import TARGETS, corpus


class CorpusTests(SynchronousTestCase):
    def test_properties(self) -> None:
        """No input in the corpus breaks a property of its target."""
        for target in TARGETS:
            module = import_module(f"checks.fuzz.{target}")
            for one in (*module.SEEDS, *corpus.load(target)):
                with self.subTest(target=target, one=one):
                    module.attempt(one)

    def test_small(self) -> None:
        """The corpus has a file for each target, and 100 kB at most."""
        files = sorted(corpus.FOLDER.iterdir())
        self.assertEqual(sorted(TARGETS), [path.stem for path in files])
        self.assertLess(sum(path.stat().st_size for path in files), 100_000)
