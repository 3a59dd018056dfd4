"""`/findings`: all findings of an account, a thousand a page."""

import re

from tests.web.served import ServedTestCase, header
from tests.web.watched import Watched, lost_routes


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
        for odd in ("0", "-1", "x", "1e9", "%00", "&page=2", "%D9%A1"):
            page = self.page(f"/findings?page={odd}")
            self.assertIn("1 to 1,000 of ", page, odd)
        self.assertNotIn("Next", self.page("/findings?page=99"))

    def test_thousand(self) -> None:
        """A thousand findings are one page; one more needs a second page."""
        self.watch(999)
        more = 1_000 - self.page().count("<li>")
        for count, links in ((999 + more, 0), (999 + more + 1, 1)):
            self.watch(count)
            page = self.page()
            self.assertEqual(1_000, page.count("<li>"), count)
            self.assertEqual(links, page.count("Next"), count)
        self.assertEqual(1, self.page("/findings?page=2").count("<li>"))
