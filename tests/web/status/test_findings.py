"""The section of findings: its list and its notes."""

from api_exporter.attention.finding import Alert, Finding, FindingKind
from api_exporter.report import lines
from api_exporter.serving.visibility import ALL_ACCOUNTS
from api_exporter.subjects.watch import AttentionState, FindingList
from tests.web.served import ServedTestCase
from tests.web.test_accounts import Knowing
from tests.web.watched import NOON, Watched

KIND = FindingKind("NetBirdX", "Network", "network", alert=Alert("5m", "", ""))

WITHOUT_ALERT = FindingKind("NetBirdY", "Network", "network")


def finding(number: int = 0, **fields: object) -> Finding:
    usual = {
        "kind": WITHOUT_ALERT,
        "severity": "warning",
        "subject": f"Network {number}",
        "message": "Lost.",
    }
    return Finding(**{**usual, **fields})  # type: ignore[arg-type]


def of(*every: Finding, unknown: tuple[str, ...] = (), **counts: int) -> FindingList:
    return FindingList(findings=every, lines=every, unknown=unknown, counts=counts)


class SectionTests(ServedTestCase):
    def markup(self, found: FindingList, account: str = "") -> str:
        """Return the status page of a network with these findings."""
        watched = Watched(name=account)
        watched.attention.last = AttentionState(found=found)
        self.tree = Knowing(watched.tree, ALL_ACCOUNTS)
        return self.request(f"/?account={account}" if account else "/")[2].decode()

    def test_nothing(self) -> None:
        """Without findings a note says so; before the first refresh another one."""
        self.assertIn(lines.NO_PROBLEM, self.markup(of(critical=0)))
        starting = self.markup(of(unknown=("peers",)))
        self.assertIn("No refresh of the network yet.", starting)
        self.assertIn("Unknown and not checked: peers.", starting)

    def test_most(self) -> None:
        """Fifty findings are listed; a link leads to all of the account."""
        many = of(*map(finding, range(1_051)), warning=1_051)
        markup = self.markup(many)
        self.assertEqual(50, markup.count("<li>"))
        self.assertIn("Network 49<", markup)
        self.assertIn('<a href="findings">Show all 1,051</a>', markup)
        few = of(*map(finding, range(50)), warning=50)
        self.assertNotIn("Show all", self.markup(few))
        acme = self.markup(many, "acme")
        self.assertIn('<a href="findings?account=acme">', acme)

    def test_about(self) -> None:
        """A page lists the findings about some objects, such as those that expire."""
        route = FindingKind("NetBirdZ", "Route", "route")
        found = of(finding(1), finding(2, kind=route), finding(3, until=NOON), info=3)
        self.markup(found)
        for about, numbers in (("network", "13"), ("route", "2"), ("expiry", "3")):
            page = self.request(f"/findings?about={about}")[2].decode()
            for number in "123":
                self.assertEqual(number in numbers, f"Network {number}<" in page)
        status, _, body = self.request("/findings?about=x")
        line = "about: it must be one of network, route, expiry"
        self.assertEqual((400, line), (status, body.decode().strip()))

    def test_markup(self) -> None:
        """Markup in names is escaped; the link to the runbook names its object."""
        markup = self.markup(of(finding(subject="<b>x</b>", kind=KIND)))
        self.assertIn("&lt;b&gt;x&lt;/b&gt;", markup)
        self.assertIn('href="runbooks#netbirdx"', markup)
        self.assertIn('aria-label="What to do about &lt;b', markup)
        self.assertNotIn("What to do", self.markup(of(finding())))

    def test_when(self) -> None:
        """A finding shows since when or until when it holds."""
        cases: tuple[tuple[dict[str, object], str], ...] = (
            ({"since": NOON - 60}, "since 11:59 UTC"),
            ({"until": NOON + 60}, "until 12:01 UTC"),
            ({}, ""),
        )
        for fields, expected in cases:
            self.assertEqual(expected, lines.when(finding(0, **fields), NOON))
        shown = self.markup(of(finding(since=NOON - 60)))
        self.assertIn('<span class="when">60 seconds (11:59 UTC)</span>', shown)

    def test_ages(self) -> None:
        """New is what was seen to begin within a day; a start is no begin."""
        start = NOON - 90_000
        cases: tuple[tuple[dict[str, object], bool, str], ...] = (
            ({"since": NOON - 120}, True, "2 minutes (11:58 UTC)"),
            ({"since": NOON - 86_401}, False, "24 hours (2027-01-14)"),
            ({"found_at": NOON - 120}, True, "2 minutes (11:58 UTC)"),
            ({"found_at": start}, False, "since the start or before"),
            ({"until": NOON + 7_200}, False, "in 2 hours (14:00 UTC)"),
        )
        for fields, is_new, shown in cases:
            one = finding(0, **fields)
            new, longer, infos = lines.by_age([one], start, NOON)
            self.assertEqual(([one], []) if is_new else ([], [one]), (new, longer))
            self.assertEqual(([], shown), (infos, lines.age(one, start, NOON)))

    def test_headline(self) -> None:
        """The headline names the newest finding of the worst severity, and the rest."""
        old = finding(1, severity="critical", since=NOON - 9e6, message="Lost: 1 of 2.")
        new = finding(2, severity="critical", since=NOON - 60, message="Lost: 1 of 2.")
        found = of(old, new, finding(3, since=NOON - 1), critical=2, warning=1, info=3)
        worst = lines.newest_of_the_worst(found, 0.0, NOON)
        assert worst is not None
        self.assertEqual("Network 2 Lost", lines.headline(worst))
        counts = lines.other_counts(found, worst)
        self.assertEqual("1 more critical · 1 warning · 3 info", counts)
        alone = of(new, critical=1, warning=0)
        self.assertEqual("", lines.other_counts(alone, new))
        self.assertIsNone(lines.newest_of_the_worst(of(), 0.0, NOON))
        seen = finding(4, severity="critical", found_at=NOON - 30)
        worst = lines.newest_of_the_worst(of(old, seen, new), 0.0, NOON)
        self.assertIs(seen, worst)

    def test_line(self) -> None:
        """A terminal's line has the time and the alert, where there are any."""
        known: dict[str, object] = {"since": NOON - 60, "kind": KIND}
        for fields, rest in (({}, ""), (known, " (since 11:59 UTC) [NetBirdX]")):
            line = lines.finding_line(finding(0, **fields), NOON)
            self.assertEqual(f"warning: Network 0 Lost.{rest}", line)

    def test_counts(self) -> None:
        both = of(critical=2, info=1)
        self.assertEqual("2 critical, 1 info", lines.counts_text(both))
        self.assertEqual("nothing", lines.counts_text(of(critical=0, info=0)))
        self.assertIsNone(lines.counts_text(of()))
