from twisted.trial.unittest import SynchronousTestCase

from tests.again import failed

RULE = "=" * 79
GOOD = """tests.test_door
  DoorTests
    test_open ...   [OK]

-------
Ran 1 tests in 0.1s

PASSED (successes=1)
"""
BAD = f"""tests.test_door
  DoorTests
    test_open ...   [FAIL]

{RULE}
[FAIL]
Traceback (most recent call last):
builtins.ValueError: tests.integration is no name

tests.test_door.DoorTests.test_open
tests.test_door.DoorTests.test_shut
{RULE}
[ERROR]
builtins.ImportError: nothing

tests.test_gone
-------
Ran 3 tests in 0.1s

FAILED (failures=2, errors=1)
"""


class AgainTests(SynchronousTestCase):
    def test_names(self) -> None:
        """All tests below a failure are named, and modules that could not be read."""
        self.assertEqual(
            [
                "tests.test_door.DoorTests.test_open",
                "tests.test_door.DoorTests.test_shut",
                "tests.test_gone",
            ],
            failed(BAD),
        )
        self.assertEqual([], failed(GOOD))

    def test_broken_off(self) -> None:
        """A run without its last line is not excused, nor is an unnamed failure."""
        for printed in (
            "",
            GOOD.replace("PASSED", ""),
            BAD.replace("FAILED", ""),
            GOOD.replace("PASSED", "FAILED"),
        ):
            self.assertRaises(SystemExit, failed, printed)
