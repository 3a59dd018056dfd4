"""The report as lines of text."""

from types import MappingProxyType

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.report.lines import NO_PROBLEM, finding_lines
from api_exporter.subjects.watch import FindingList

KNOWN = MappingProxyType({"critical": 0, "warning": 0, "info": 0})


class LinesTests(SynchronousTestCase):
    def test_nothing(self) -> None:
        """Nothing is reported as no problem only if the network is known."""
        for found, words in (
            (FindingList(counts=KNOWN), NO_PROBLEM),
            (
                FindingList(kept_back=1),
                "Not known yet: possible problems wait for a second reading.",
            ),
            (FindingList(), "Not known yet."),
        ):
            [line] = finding_lines(found, 0.0, "")
            self.assertEqual(f"needs attention: {words}", line)
