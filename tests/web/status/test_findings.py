"""The section of what needs attention: what it lists, and what it says of the rest."""

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.template import flattenString

from api_exporter.attention.finding import Finding
from api_exporter.attention.watch import FindingList
from api_exporter.web.status import findings

NOW = 1_800_000_000.0


def finding(number: int = 0, **fields: object) -> Finding:
    usual = {"severity": "warning", "object": f"Network {number}", "message": "Lost."}
    return Finding(**{**usual, **fields})  # type: ignore[arg-type]


def of(*every: Finding, unknown: tuple[str, ...] = (), **counts: int) -> FindingList:
    return FindingList(findings=every, unknown=unknown, counts=counts)


class SectionTests(SynchronousTestCase):
    def markup(self, found: FindingList) -> str:
        drawn = flattenString(None, findings.section(found, NOW, "runbooks"))
        return self.successResultOf(drawn).decode()

    def test_nothing(self) -> None:
        """Where nothing needs attention, a quiet line says so; before anything is
        known, that nothing is.
        """
        self.assertIn(findings.QUIET, self.markup(of(critical=0)))
        starting = self.markup(of(unknown=("peers",)))
        self.assertIn("No refresh of the network yet.", starting)
        self.assertIn("Unknown and not checked: peers.", starting)

    def test_most(self) -> None:
        """Twenty are listed, and how many more there are."""
        markup = self.markup(of(*map(finding, range(20)), warning=51))
        self.assertEqual(20, markup.count("<li>"))
        self.assertIn("Network 19<", markup)
        self.assertIn("31 more findings are not listed.", markup)
        self.assertNotIn("more.", self.markup(of(*map(finding, range(20)), warning=20)))

    def test_markup(self) -> None:
        """Names stay text; the runbook is a link that says what it is about."""
        markup = self.markup(of(finding(object="<b>x</b>", alert="NetBirdX")))
        self.assertIn("&lt;b&gt;x&lt;/b&gt;", markup)
        self.assertIn('href="runbooks#netbirdx"', markup)
        self.assertIn('aria-label="What to do about &lt;b', markup)
        self.assertNotIn("<a", self.markup(of(finding())))

    def test_when(self) -> None:
        """Since when, until when, or that it is over."""
        cases: tuple[tuple[dict[str, object], str], ...] = (
            ({"since": NOW - 60}, "since 07:59 UTC"),
            ({"until": NOW + 60}, "until 08:01 UTC"),
            ({}, ""),
        )
        for fields, told in cases:
            self.assertEqual(told, findings.when(finding(0, **fields), NOW))
        self.assertIn("Since 07:59 UTC.", self.markup(of(finding(since=NOW - 60))))

    def test_counts(self) -> None:
        """In a few words, for the list of accounts."""
        self.assertEqual("2 critical, 1 info", findings.counts(of(critical=2, info=1)))
        self.assertEqual("nothing", findings.counts(of(critical=0, info=0)))
        self.assertIsNone(findings.counts(of()))
