"""The wait of a finding that several lists make."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.confirmation import MAX_WAIT, Wait, first_wait
from api_exporter.netbird.inventory import Reading

READINGS = {"a": Reading(1, 2), "b": Reading(3, 4), "c": Reading(5, 6)}


class WaitTests(SynchronousTestCase):
    def test_first(self) -> None:
        """The newest changed list has brought a finding; older ones are awaited."""
        until = 10.0 + MAX_WAIT
        for reads, changed, expected in (
            ("abc", "ab", Wait(4, ("a",), until)),
            ("abc", "c", Wait(6, ("a", "b"), until)),
            ("abc", "", Wait(6, ("a", "b"), until)),
            ("abc", "a", None),
            ("ab", "c", Wait(4, ("a",), until)),
            ("b", "b", None),
        ):
            found = first_wait(reads, READINGS, frozenset(changed), 10.0)
            self.assertEqual(expected, found, (reads, changed))

    def test_after(self) -> None:
        """A list that fails or was read again is not awaited; nor any at the end."""
        wait = Wait(6, ("a", "b"), 20.0)
        again = {**READINGS, "a": Reading(6, 7)}
        for readings, failed, seconds, lists in (
            (READINGS, None, 19.0, ("a", "b")),
            (READINGS, "a", 19.0, ("b",)),
            (again, None, 19.0, ("b",)),
            (again, "b", 19.0, None),
            (READINGS, None, 20.0, None),
        ):
            left = wait.after(readings, failed, seconds)
            self.assertEqual(lists, left and left.lists)
