"""The findings: fifty in a section of the status page, a thousand on their own."""

import re

from api_exporter.attention.finding import Finding, FindingKind
from api_exporter.ports import ALL_ACCOUNTS
from api_exporter.report.words import NO_PROBLEM
from api_exporter.subjects.watch import FindingList, KeptFindings
from tests.web.served import ServedTestCase, header
from tests.web.test_discovery_accounts import Knowing
from tests.web.watched import NOON, VERSION, Watched, lost_routes

KIND = FindingKind("NetBirdX", "Network", "network", lasts="5m")

WITHOUT_ALERT = FindingKind("NetBirdY", "Network", "network")


def finding(number: int = 0, **fields: object) -> Finding:
    usual = {
        "kind": WITHOUT_ALERT,
        "severity": "warning",
        **dict.fromkeys(("object_id", "object"), ""),
        **dict.fromkeys(("since", "until")),
        "subject": f"Network {number}",
        "message": "Lost.",
    }
    return Finding(**{**usual, **fields})  # type: ignore[arg-type]


NONE = {"critical": 0, "warning": 0, "info": 0}


def of(*every: Finding, unknown: tuple[str, ...] = (), **counts: int) -> FindingList:
    """Return findings with numbers by severity; without any they are not known."""
    known = {**NONE, **counts} if counts else {}
    return FindingList(findings=every, lines=every, unknown=unknown, counts=known)


class SectionTests(ServedTestCase):
    def markup(self, found: FindingList, account: str = "") -> str:
        """Return the status page of a network with these findings."""
        watched = Watched(name=account)
        watched.findings = KeptFindings(found=found)
        self.tree = Knowing(watched.tree, ALL_ACCOUNTS)
        return self.request(f"/?account={account}" if account else "/")[2].decode()

    def test_nothing(self) -> None:
        """Without findings a note says so; before the first refresh another one."""
        self.assertIn(NO_PROBLEM, self.markup(of(critical=0)))
        starting = self.markup(of(unknown=("peers",)))
        self.assertIn("Not known yet.", starting)
        self.assertIn("Unknown and not checked: peers.", starting)

    def test_most(self) -> None:
        """Fifty findings are listed; a link leads to all of the account."""
        many = of(*map(finding, range(1_051)), warning=1_051)
        markup = self.markup(many)
        self.assertEqual(50, markup.count("<li>"))
        self.assertIn("Network 49<", markup)
        self.assertIn('<a href="findings">All findings</a>', markup)
        self.assertIn('<a href="findings?account=acme">', self.markup(many, "acme"))

    def test_infos(self) -> None:
        """The folded section has the number of the headline, not that of the lines."""
        users = finding(severity="info", subject="12 users", message="wait.")
        markup = self.markup(of(users, info=12))
        self.assertIn("The network: 12 info", markup)
        self.assertIn("<summary>12 info</summary>", markup)

    def test_about(self) -> None:
        """A page lists the findings about some objects, such as those that expire."""
        route = FindingKind("NetBirdZ", "Route", "route")
        found = of(finding(1), finding(2, kind=route), finding(3, until=NOON), info=3)
        self.markup(found)
        for about, numbers in (("network", "13"), ("route", "2"), ("expiry", "3")):
            page = self.request(f"/findings?about={about}")[2].decode()
            self.assertIn(f"<span>api-exporter {VERSION}</span>", page)  # no host
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

    def test_age(self) -> None:
        """A finding shows its age; without one it may be older than the start."""
        for fields, shown in (
            ({"since": NOON - 60}, "60 seconds (11:59 UTC)"),
            ({}, "since the start or before"),
        ):
            markup = self.markup(of(finding(0, **fields), warning=1))
            self.assertIn(f'<span class="when">{shown}</span>', markup)

    def test_headline(self) -> None:
        """The headline names the newest of the worst findings, and counts the rest."""
        lost = {"severity": "critical", "message": "Lost: 1 of 2."}
        old, new = finding(1, since=NOON - 9e6, **lost), finding(2, since=NOON, **lost)
        markup = self.markup(of(old, new, critical=2, warning=1, info=3))
        self.assertIn("<em>critical</em> Network 2 Lost <small>", markup)
        self.assertIn("1 more critical · 1 warning · 3 info", markup)


class FindingsTests(ServedTestCase):
    def watch(self, routes: int) -> None:
        """Return an account with a number of routes without peers."""
        watched = Watched(collectors=("peers", "groups", "routes"))
        names = (f"<b>{number}</b>" for number in range(routes))
        watched.bodies["api/routes"] = lost_routes(*names)
        self.tree = watched.start(60).tree

    def page(self, path: str = "/findings") -> str:
        status, headers, body = self.request(path)
        self.assertEqual(200, status)
        self.assertEqual("text/html; charset=utf-8", header(headers, "content-type"))
        self.assertIn("script-src", header(headers, "content-security-policy"))
        return body.decode()

    def routes(self, page: str) -> list[str]:
        return re.findall(r"Route &lt;b&gt;(\d+)&lt;/b&gt; to 10", page)

    def test_all(self) -> None:
        """The page has all findings, of which the status page lists fifty."""
        self.watch(51)
        status, every = self.page("/"), self.page()
        self.assertEqual(50, status.count("<li>"))
        self.assertIn('<a href="findings">All findings</a>', status)
        self.assertEqual(51, len(set(self.routes(every)) & {f"{n}" for n in range(51)}))
        self.assertIn('<a href="./">Status page</a>', every)
        self.assertIn("<h1>The network: 51 critical", every)
        self.assertIn("<title>51 critical – findings – api-exporter</title>", every)
        self.assertNotIn("Next", every)
        self.assertNotIn("<b>0</b>", every)

    def test_pages(self) -> None:
        """A thousand are on a page; an invalid number means the first one."""
        self.watch(2_500)
        found = [self.routes(self.page(f"/findings?page={n}")) for n in (1, 2, 3)]
        self.assertEqual(2_500, len({route for page in found for route in page}))
        first, second = self.page(), self.page("/findings?page=2")
        self.assertIn("1 to 1,000 of ", first)
        self.assertIn('<a href="findings?page=2">Next</a>', first)
        self.assertNotIn("Previous", first)
        self.assertIn('<a href="findings">Previous</a>', second)
        for odd in ("0", "-1", "x", "1e9", "%00", "&page=2", "%D9%A1", "9" * 5_000):
            page = self.page(f"/findings?page={odd}")
            self.assertIn("1 to 1,000 of ", page, odd)
        third = self.page("/findings?page=3")
        self.assertEqual(
            self.routes(third), self.routes(self.page("/findings?page=99"))
        )
