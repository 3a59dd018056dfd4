"""The words of findings."""

from types import MappingProxyType

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.checking.report import finding_line, problem_lines
from api_exporter.report import words
from api_exporter.report.account import account_entry
from api_exporter.subjects.watch import FindingList, KeptFindings
from tests.web.status.test_pages_findings import KIND, finding, of
from tests.web.watched import NOON, Watched

KNOWN = MappingProxyType({"critical": 0, "warning": 0, "info": 0})

RUNBOOKS = "runbooks.html"


class WordsTests(SynchronousTestCase):
    def test_nothing(self) -> None:
        """Nothing is reported as no problem only if the network is known."""
        for found, expected in (
            (FindingList(counts=KNOWN), words.NO_PROBLEM),
            (
                FindingList(kept_back=1),
                "Not known yet: possible problems wait for a second reading.",
            ),
            (FindingList(), "Not known yet."),
        ):
            watched = Watched()
            watched.findings = KeptFindings(found=found)
            entry = account_entry(watched, runbooks=RUNBOOKS, now=NOON)
            *_, line = problem_lines(entry, RUNBOOKS)
            self.assertEqual(f"needs attention: {expected}", line)

    def test_ages(self) -> None:
        """New is what was seen to begin within a day; a start is no begin."""
        start = NOON - 90_000
        cases: tuple[tuple[dict[str, object], bool, str | None], ...] = (
            ({"since": NOON - 120}, True, "2 minutes (11:58 UTC)"),
            ({"since": NOON - 86_399}, True, "23 hours (2027-01-14)"),
            ({"since": NOON - 86_401}, False, "24 hours (2027-01-14)"),
            ({"found_at": NOON - 120}, True, "2 minutes (11:58 UTC)"),
            ({"since": NOON + 60}, False, None),
            ({"found_at": start}, False, None),
            ({"until": NOON + 7_200}, False, "in 2 hours (14:00 UTC)"),
        )
        for fields, is_new, shown in cases:
            one = finding(0, **fields)
            self.assertIs(is_new, words.is_new(one, start, NOON))
            self.assertEqual(shown, words.when(one, start, NOON))

    def test_newest(self) -> None:
        """The newest of the worst findings may have no time of NetBird."""
        old = finding(1, severity="critical", since=NOON - 9e6)
        new = finding(2, severity="critical", since=NOON - 60)
        seen = finding(3, severity="critical", found_at=NOON - 30)
        lesser = finding(4, since=NOON - 1)
        for expected, findings in (
            (new, (old, new, lesser)),
            (seen, (old, seen, new, lesser)),
            (None, ()),
        ):
            self.assertIs(expected, words.newest_of_the_worst(findings, 0.0, NOON))

    def test_counts(self) -> None:
        """The finding of the headline is not counted again."""
        critical = finding(
            severity="critical", subject="Route to fd00::/8", message="Lost: 1 of 2."
        )
        for joined, numbers, every, others in (
            (
                1,
                {"critical": 2, "info": 1},
                "2 critical, 1 info",
                "1 more critical · 1 info",
            ),
            (1, {"critical": 1}, "1 critical", ""),
            (16, {"critical": 16, "info": 7}, "16 critical, 7 info", "7 info"),
            (1, {"critical": 1, "warning": 2}, "1 critical, 2 warnings", "2 warnings"),
        ):
            watched = Watched()
            watched.findings = KeptFindings(
                found=FindingList(
                    lines=(replace(critical, count=joined),),
                    counts={**KNOWN, **numbers},
                )
            )
            entry = account_entry(watched, runbooks=RUNBOOKS, now=NOON)
            assert entry.worst is not None
            self.assertEqual("Route to fd00::/8 Lost", words.headline(entry.worst))
            self.assertEqual(every, words.counts(entry))
            self.assertEqual(others, words.other_counts(entry))

    def test_line(self) -> None:
        """A terminal's line has the time and the alert, where there are any."""
        known: dict[str, object] = {"since": NOON - 120, "kind": KIND}
        for fields, rest in (({}, ""), (known, " – 2 minutes (11:58 UTC) [NetBirdX]")):
            watched = Watched()
            found = of(finding(0, **fields), warning=1)
            watched.findings = KeptFindings(found=found)
            entry = account_entry(watched, runbooks=RUNBOOKS, now=NOON)
            [line] = map(finding_line, entry.findings)
            self.assertEqual(f"warning: Network 0 Lost.{rest}", line)

    def test_few(self) -> None:
        self.assertEqual("a, b, c", words.few([*"abc"]))
        self.assertEqual("a, b, c and 2 more", words.few([*"abcde"]))
