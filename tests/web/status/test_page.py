"""The status page as HTML: what it tells, that it is safe, and that it asks nobody."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from xml.etree import ElementTree as ET

from api_exporter.collectors.metric_filter import MetricFilter
from api_exporter.ports import Attempt, UpstreamError
from api_exporter.settings import parsers
from api_exporter.upstream.advice import advice
from api_exporter.web.status import page
from tests.roles import permissions
from tests.web.served import ServedTestCase, header
from tests.web.watched import NOON, URL, VERSION, Watched

MARKUP = UpstreamError("http_5xx", "500: <script>alert('x')</script> & \"more\"")
ABSENT = UpstreamError("not_found", "404", unsupported=True)


class StatusTests(ServedTestCase):
    def setUp(self) -> None:
        self.watch(Watched().start())

    def watch(self, watched: Watched) -> None:
        self.watched = watched
        self.tree = watched.tree

    def page(self) -> str:
        status, headers, body = self.request("/")
        self.assertEqual(200, status)
        self.assertEqual("text/html; charset=utf-8", header(headers, "content-type"))
        return body.decode()

    def main(self) -> ET.Element:
        """What changes of the page; it is well-formed."""
        page = self.page()
        main = page[page.index("<main>") : page.index("</main>") + len("</main>")]
        return ET.fromstring(main)  # noqa: S314 - our own

    def text(self) -> str:
        return " ".join("".join(self.main().itertext()).split())

    def rows(self, heading: str) -> dict[str, list[str]]:
        """The cells of a table's rows by the first; rows of explanation left out."""
        [table] = [
            section
            for section in self.main().iter("section")
            if section.findtext("h2") == heading
        ]
        found: dict[str, list[str]] = {}
        for row in table.iter("tr"):
            cells = ["".join(cell.itertext()) for cell in row.findall("td")]
            if len(cells) > 1:
                found.setdefault(cells[0], cells[1:])
        return found

    def test_kept(self) -> None:
        """However many look at it, it is made once a second."""
        _, _, first = self.request("/")
        self.watched.clock.advance(0.9)
        self.assertEqual(first, self.request("/")[2])
        self.watched.clock.advance(0.1)
        self.assertNotEqual(first, self.request("/")[2])

    def test_facts(self) -> None:
        """Version, upstream, whether it is reachable, token and uptime are there."""
        text = self.text()
        for shown in (
            f"api-exporter {VERSION}",
            "Reading NetBird: yes, ",
            URL,
            "reachable",
            "accepted",
            "expires in 61 days",
            "20 seconds",
        ):
            self.assertIn(shown, text)

    def test_simulated(self) -> None:
        """A network that is none says so; its address is of no interest."""
        self.watch(Watched(simulated=True).start())
        self.assertIn("a simulated network", self.text())
        self.assertNotIn(URL, self.text())

    def test_before_the_start(self) -> None:
        """A page of nothing yet is a page too."""
        self.watch(Watched())
        text = self.text()
        for shown in (
            "Reading NetBird: not yet, first refresh of the peers",
            "no request yet",
            "not known yet",
            "No successful refresh",
            "None yet.",
        ):
            self.assertIn(shown, text)
        self.assertEqual("starting", self.rows("Resources")["peers"][0])

    def test_resources(self) -> None:
        """A row tells all there is to tell of a resource."""
        rows = self.rows("Resources")
        peers = self.watched.telemetry.freshness["peers"].records
        self.assertEqual(["fresh", "19 s ago", "30 s", str(peers)], rows["peers"][:4])
        self.assertRegex(rows["peers"][4], r"^\d+$")
        self.assertNotIn("events", rows)
        self.assertRegex(self.text(), r"off \(no enabled collector .*\): .*, events")

    def test_collectors(self) -> None:
        """A row tells how much of the metrics page is a collector's own."""
        rows = self.rows("Collectors")
        self.assertEqual(["peers", "groups", "users"], list(rows))
        self.assertEqual("peers, accounts", rows["peers"][0])
        text = self.request("/metrics?exclude[]=exporter")[2].decode()
        for column, whole in (
            (1, len(re.findall("^netbird", text, re.MULTILINE))),
            (2, len(text.encode())),
        ):
            told = [int(row[column].replace(",", "")) for row in rows.values()]
            self.assertEqual(whole, sum(told))

    def test_nothing_published(self) -> None:
        """Where nothing is wanted, peers are still watched, and the page says so."""
        self.watch(Watched(choice=MetricFilter(deny=("*",))).start())
        self.assertIn("CollectorsNo collector is enabled.", self.text())
        self.assertIn("Reading NetBird: yes, ", self.text())
        self.assertNotIn("users", self.rows("Resources"))
        self.assertEqual(200, self.request("/ready")[0])

    def test_missing_groups(self) -> None:
        """Groups that do not exist are named, as text."""
        choice = MetricFilter(detail=frozenset({"servers", "<b>gone</b>"}))
        self.watch(Watched(choice=choice).start())
        self.assertIn("Group <b>gone</b> does not exist, ", self.text())
        self.assertEqual(1, self.page().count("PEER_DETAIL"))
        self.assertNotIn("<b>gone", self.page())

    def test_stretched(self) -> None:
        """By how much a stated limit stretches the intervals stands below them."""
        words = "refresh intervals are lengthened to fit 120 requests a minute"
        self.assertNotIn("lengthened", self.page())
        self.watched.stretched = words
        self.watched.advance(2)
        self.assertIn(f"R{words[1:]}.", self.page())

    def test_states(self) -> None:
        """Each state has its word; what needs explaining is explained once."""
        watched = Watched(collectors=("peers", "groups", "users", "routes"))
        watched.bodies["api/users"] = b'[{"id":"somebody"}]'
        watched.faults |= {"api/groups": MARKUP, "api/routes": ABSENT}
        watched.faults["api/users/current"] = ABSENT
        watched.start()
        watched.silent.add("api/peers")
        self.watch(watched.advance(60))
        rows = self.rows("Resources")
        for name, state in (
            ("peers", "late"),
            ("accounts", "fresh"),
            ("groups", "failing"),
            ("routes", "unsupported"),
            ("access_tokens", "starting"),
        ):
            self.assertEqual(state, rows[name][0], name)
        text = self.text()
        for word in ("late", "unsupported", "starting"):
            self.assertIn(f"{word}: ", text)

    def test_restricted(self) -> None:
        """What the token's user may read only in part has a word of its own."""
        watched = Watched(collectors=("peers", "reverse_proxy"))
        watched.bodies["api/users/current"] = permissions("network_admin")
        self.watch(watched.start())
        rows = self.rows("Resources")
        self.assertEqual("restricted", rows["proxy_services"][0])
        self.assertEqual("fresh", rows["groups"][0])
        text = self.text()
        self.assertIn("restricted: the token's user may read only a part", text)
        self.assertIn("The exporter withholds proxy_services", text)

    def test_dormant(self) -> None:
        """What needs a provider of the Agent Network is not off but dormant."""
        self.watch(Watched(collectors=("peers", "agent_network")))
        self.watched.bodies["api/agent-network/providers"] = b"[]"
        self.watched.start(60)
        text = self.text()
        words = "dormant (NetBird lists no Agent Network provider): "
        [names] = re.findall(f"{re.escape(words)}([a-z_, ]+)\\.", text)
        self.assertIn("agent_policies", names.split(", "))
        [off] = re.findall(r"off \(.*?\): ([a-z_, ]+)\.", text)
        self.assertIn("events", off.split(", "))
        self.assertNotIn("agent_policies", off)

    def test_worst_first(self) -> None:
        """Of two facts the worse one stands first, and in the title; all is green only
        if both are.
        """
        self.watch(Watched(collectors=("peers", "groups", "routes")))
        self.watched.bodies["api/routes"] = (
            b'[{"id":"r","network_id":"x","network":"10.0.0.0/8","enabled":true,'
            b'"network_type":"IPv4","description":"","keep_route":false,'
            b'"masquerade":false,"metric":9,"groups":[]}]'
        )
        self.watched.start(20)
        heading = self.main().find("section/h1")
        assert heading is not None
        self.assertEqual(
            [("bad", "The network: 1 critical"), ("good", "Reading NetBird: yes")],
            [
                (span.get("class"), "".join(span.itertext()).split(",")[0])
                for span in heading
            ],
        )
        self.assertIn("<title>1 critical – api-exporter</title>", self.page())
        self.assertIn('class="verdict bad"', self.page())

    def test_failing(self) -> None:
        """A failure is told in plain words, with what to do about it, said once."""
        self.watched.down = UpstreamError(
            "auth", "401: the NetBird API rejects the token"
        )
        self.watched.advance(700)
        text = self.text()
        self.assertIn("Reading NetBird: no, since 12:00 UTC", text)
        self.assertIn("Since 12:10 UTC: 401: the NetBird API rejects the token", text)
        self.assertEqual(1, text.count("Check the expiry of"))
        self.assertIn("refused", text)

    def test_request_id(self) -> None:
        """What finds a refused request in the server's log is told with it."""
        self.watched.faults["api/groups"] = UpstreamError(
            "http_5xx", "500: broken", request_id="dc1djo5qmd2oq13d8pj0"
        )
        self.watched.advance(700)
        self.assertIn("500: broken (request id dc1djo5qmd2oq13d8pj0)", self.text())

    def test_failing_alike(self) -> None:
        """What to do about one reason is said once, however many fail for it."""
        fault = UpstreamError("http_5xx", "500: broken")
        self.watched.faults.update({"api/groups": fault, "api/users": fault})
        self.watched.advance(700)
        text = self.text()
        self.assertEqual(1, text.count(advice(fault)))

    def test_not_asked(self) -> None:
        """What nobody asks for while the peers fail is not late but waits for them."""
        self.watch(Watched(collectors=parsers.collectors("default")).start())
        self.watched.down = UpstreamError("http_5xx", "500: broken")
        self.watched.advance(440)
        rows = self.rows("Resources")
        self.assertEqual("failing", rows["peers"][0])
        self.assertIn("waiting", {row[0] for row in rows.values()})
        self.assertNotIn("late", {row[0] for row in rows.values()})
        self.assertIn("no refresh while the refresh of the peers fails", self.text())

    def test_refused_token(self) -> None:
        """What was told of a token before it was refused is told as old."""
        self.watched.down = UpstreamError(
            "auth", "401: the NetBird API rejects the token"
        )
        self.watched.advance(300)
        text = self.text()
        self.assertIn("refused", text)
        self.assertRegex(text, r"expires in 61 days\s*, as of 12:00 UTC")

    def test_all_say_the_same(self) -> None:
        """Page, probes, metrics and supervisor know of a failure in the same moment."""
        told: list[str] = []
        telemetry = self.watched.telemetry
        telemetry.changed = lambda: told.append(telemetry.summary(self.watched.now()))
        self.watched.silent.add("api/peers")
        self.watched.advance(40)
        self.assertEqual([], told)
        attempt = Attempt(
            path="api/peers",
            number=1,
            started=self.watched.now() - 30,
            status=None,
            received=0,
            seconds=30.0,
            error="no answer within 30 s",
            reason="timeout",
        )
        self.watched.refresh_log.attempted(attempt)
        self.assertEqual(["peers failing: no answer within 30 s"], told)
        self.assertIn("Reading NetBird: no, since", self.text())
        self.assertEqual(503, self.request("/ready")[0])
        health = json.loads(self.request("/health")[2])
        self.assertIs(False, health["resources"]["peers"]["up"])
        self.assertIn("netbird_api_up 0.0\n", self.request("/metrics")[2].decode())

    def test_left_out(self) -> None:
        """Records that could not be read are told beside those that could."""
        self.watched.bodies["api/peers"] = b'[{"id":"a"},{"id":7}]'
        self.watched.advance(30)
        self.assertEqual("1 left out, 1", self.rows("Resources")["peers"][3])

    def test_calls(self) -> None:
        """The newest twenty calls are there, the newest first, with all figures."""
        for number in range(30):
            self.watched.telemetry.attempted(
                Attempt(
                    path=f"api/x{number}",
                    number=3,
                    started=NOON + number,
                    status=200,
                    received=12345,
                    seconds=0.25,
                )
            )
        calls = self.rows("Newest requests to the NetBird API")
        self.assertEqual([f"/api/x{n}" for n in range(29, 9, -1)], list(calls))
        self.assertEqual(["200", "12:00:29", "12,345", "250", "3"], calls["/api/x29"])

    def test_no_answer(self) -> None:
        """A call without an answer says so; the connectivity test needs a good one."""
        for path, status, error in (
            ("api/health", 404, "404: the NetBird API does not have this path"),
            ("api/peers", None, "no connection"),
        ):
            self.watched.telemetry.attempted(
                Attempt(
                    path=path,
                    number=1,
                    started=NOON,
                    status=status,
                    received=0,
                    seconds=1,
                    error=error,
                )
            )
        text = self.text()
        self.assertIn("any response is good", text)
        self.assertNotIn("does not have this path", text)
        self.assertIn("does not answer", text)
        self.assertEqual(
            "no response",
            self.rows("Newest requests to the NetBird API")["/api/peers"][0],
        )

    def test_markup(self) -> None:
        """Markup in what the upstream says stays text, in all places."""
        self.watched.down = MARKUP
        self.watched.advance(700)
        self.assertEqual(1, self.page().count("<script>"))
        self.assertEqual([], list(self.main().iter("script")))
        self.assertIn(str(MARKUP), self.text())

    def test_partial(self) -> None:
        """A person's token that sees only their own peers is told of."""
        self.watched.bodies["api/users"] = (
            b'[{"id":"me","role":"user","is_current":true}]'
        )
        self.watched.advance(600)
        self.assertIn("The list of peers may be incomplete", self.text())

    def test_policy(self) -> None:
        """The browser runs and loads nothing but what stands in the page."""
        _, headers, body = self.request("/")
        policy = header(headers, "content-security-policy")
        self.assertTrue(policy.startswith("default-src 'none'; "))
        for name in ("style", "script"):
            [text] = re.findall(f"<{name}>(.*?)</{name}>", body.decode(), re.DOTALL)
            digest = b64encode(sha256(text.encode()).digest()).decode()
            self.assertIn(f"{name}-src 'sha256-{digest}'", policy)
        self.assertEqual("nosniff", header(headers, "x-content-type-options"))
        self.assertEqual("no-referrer", header(headers, "referrer-policy"))
        corp = header(headers, "cross-origin-resource-policy")
        self.assertEqual("same-origin", corp)
        self.assertEqual("no-store", header(headers, "cache-control"))
        self.assertNotRegex(body.decode(), r' (style|on\w+)="')
        self.assertNotRegex(body.decode(), r'src="|url\(')

    def test_links(self) -> None:
        """The footer leads to all pages, to profiles only where they are served."""
        for pprof in (False, True):
            self.watch(Watched(pprof=pprof))
            links = re.findall(r'<a href="([^"]+)"', self.page())
            self.assertEqual(["metrics", "health", "ready"], links[:3])
            self.assertEqual(pprof, "debug/pprof/" in links)
            self.assertEqual("runbooks", links[-1])

    def test_documentation(self) -> None:
        """It leads to the documentation where that is published, else into no void."""
        for forge, told in (("forge.x.example", False), ("git.example.org", True)):
            address = f"https://{forge}/api-exporter/tree/main/docs"
            self.patch(page, "DOCUMENTATION", address)
            self.watch(Watched())
            self.assertEqual(told, f'href="{address}"' in self.page())

    def test_asks_nobody(self) -> None:
        """Looking does not call the upstream, nor does it leave anything behind."""
        calls = list(self.watched.telemetry.recent)
        timers = len(self.watched.clock.getDelayedCalls())
        for _ in range(3):
            self.page()
        self.assertEqual(calls, list(self.watched.telemetry.recent))
        self.assertEqual(timers, len(self.watched.clock.getDelayedCalls()))
