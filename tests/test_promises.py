from twisted.trial.unittest import SynchronousTestCase

from tools.promises import kept, promises


class PromisesTests(SynchronousTestCase):
    maxDiff = None

    def test_names(self) -> None:
        """Each promised name exists, and each name is promised.

        A new name: `python -m tools.promises`. A name that is missing breaks a promise
        of 1.x: docs/reference.md says how a promise ends.
        """
        self.assertEqual(kept(), promises())
