"""The status page as HTML: its content, its safety, and no requests to NetBird."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from typing import Any
from xml.etree import ElementTree as ET

from msgspec.structs import replace

from api_exporter.collectors.collector import MetricFilter
from api_exporter.ports import Attempt, UpstreamError
from api_exporter.refresh.budget import Budget
from api_exporter.report.words import NO_PROBLEM
from api_exporter.subjects.watch import KeptFindings
from api_exporter.upstream.advice import advice
from api_exporter.web.status import pages
from tests.parts import attempt
from tests.web.served import ServedTestCase, header
from tests.web.watched import NOON, QUIET, URL, VERSION, Watched, lost_routes

HOST = URL.removeprefix("https://")

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
        """Return the variable part of the page, parsed as XML."""
        page = self.page()
        main = page[page.index("<main>") : page.index("</main>") + len("</main>")]
        return ET.fromstring(main)  # noqa: S314 - our own

    def attempt(self, path: str, **fields: Any) -> Attempt:
        """Record a request to the NetBird API, and return it."""
        made = attempt(path, **{"started": NOON, "seconds": 1.0, **fields})
        self.watched.telemetry.count_attempt(made)
        return made

    def text(self) -> str:
        return " ".join("".join(self.main().itertext()).split())

    def rows(self, heading: str) -> dict[str, list[str]]:
        """Return the cells of a table's rows by the first cell, without error rows.

        They have the words that a narrow screen shows instead of the table's head.
        """
        tables = self.main().iter("table")
        [table] = [one for one in tables if one.get("aria-label") == heading]
        found: dict[str, list[str]] = {}
        for row in table.iter("tr"):
            cells = []
            for cell in row.findall("td"):
                before, after = cell.get("data-before"), cell.get("data-after")
                words = before, "".join(cell.itertext()), after
                cells.append(" ".join(filter(None, words)))
            if len(cells) > 1:
                found.setdefault(cells[0], cells[1:])
        return found

    def test_facts(self) -> None:
        """The page shows its facts; a simulated network has no address."""
        text = self.text()
        for shown in (
            *(f"api-exporter {VERSION}", "Reading NetBird: yes", HOST, "is reachable"),
            *("read 20 s ago", "own token expires in 2 months", "for 20 seconds"),
        ):
            self.assertIn(shown, text)
        self.watch(Watched(simulated=True).start())
        self.assertIn("a simulated network", self.text())
        self.assertNotIn(HOST, self.page())

    def test_before_the_start(self) -> None:
        """Before the first refresh the page shows empty sections."""
        self.watch(Watched())
        text = self.text()
        for shown in (
            "Reading NetBird: not yet, first refresh of the peers",
            *("was not requested yet", "not known yet", "not read", "None yet."),
        ):
            self.assertIn(shown, text)
        self.assertEqual("starting", self.rows("Resources")["peers"][0])

    def test_resources(self) -> None:
        """A row shows all states of a resource, and records that are left out."""
        rows = self.rows("Resources")
        peers = self.watched.states["peers"].records
        shown = ["fresh", "20 s ago", "every 30 s", f"{peers} records"]
        self.assertEqual(shown, rows["peers"][:4])
        self.assertRegex(rows["peers"][4], r"^\d+ ms$")
        self.assertNotIn("events", rows)
        self.assertRegex(self.text(), r"off \(the settings .*\): .*, events")
        self.watched.bodies["api/peers"] = b'[{"id":"a"},{"id":7}]'
        self.watched.advance(30)
        self.assertEqual("1 left out, 1 record", self.rows("Resources")["peers"][3])

    def test_machines(self) -> None:
        """Offline machines are named with their time, the newest first, and counted."""
        peers = [
            {"id": "a", "name": "old", "last_seen": "2026-01-15T12:00:00Z"},
            {"id": "b", "name": "<b>new", "last_seen": "2027-01-15T11:00:00Z"},
            {"id": "c", "name": "laptop", "user_id": "u"},
            {"id": "d", "name": "pod", "ephemeral": True},
            {"id": "e", "name": "online", "connected": True},
            *({"id": f"x{n}", "name": f"never {n}"} for n in range(20)),
        ]
        self.watched.bodies["api/peers"] = json.dumps(peers).encode()
        self.watched.advance(30)
        text = self.text()
        self.assertIn("Machines offline22", text)
        self.assertRegex(text, "Machines offline <b>new 60 minutes old 12 months never")
        self.assertIn("and 12 more", text)
        for other in ("laptop", "pod", "online "):
            self.assertNotIn(f" {other} ", text)

    def test_numbers(self) -> None:
        """The numbers are links to what they count; unknown ones are not zero."""
        self.assertNotIn("Networks reachable", self.text())  # not requested
        self.watch(Watched(collectors=("peers", "networks", "routes")))
        self.assertIn("Peers connected–", self.text())
        self.watched.start()
        text, page = self.text(), self.page()
        for title, address, shown in (
            ("Peers connected", "#peers", "10 of 20"),
            ("Networks reachable", "findings?about=network", "4 of 5"),
            ("Routes reachable", "findings?about=route", "2 of 2"),
            ("Machines offline", "#machines", "3"),
            ("Expire soon", "findings?about=expiry", "0"),
        ):
            self.assertIn(f"{title}{shown}", text)
            self.assertIn(f'<a href="{address}">{shown}</a>', page)
        self.assertRegex(text, r"\d\.\d\d requests a minute, ")
        self.watch(Watched(budget=Budget((30, 5))))
        self.assertIn(" requests a minute (limit 30), ", self.text())

    def test_history(self) -> None:
        """The graph has six hours. The time before the start is unknown."""
        text = self.text()
        self.assertIn("10 connected10 offlinenot readstart of the exporter", text)
        self.watched.down = MARKUP
        self.watched.advance(300)
        self.assertNotIn("10 connected", self.text())
        self.assertIn("now not read", self.page())

    def test_start(self) -> None:
        """The start of the exporter stays where it was, also with another account."""
        self.watched.advance(3600)
        drawn = re.compile('<path class="start" d="(M[^"]+)"')
        before = drawn.findall(self.page())
        self.watched.findings = KeptFindings(started_at=self.watched.now())
        self.assertEqual(before, drawn.findall(self.page()))

    def test_unknown_findings(self) -> None:
        """Before the findings are known, no bar says that all is right."""
        self.watch(Watched())
        self.watched.silent.add("api/groups")
        self.watched.start(60)
        self.assertIn("not known yet", self.text())
        self.assertNotIn('<path class="ok"', self.page())

    def test_collectors(self) -> None:
        """A row shows a collector's part of the metrics page."""
        rows = self.rows("Collectors")
        self.assertEqual(["peers", "groups", "users"], list(rows))
        self.assertEqual("peers, accounts", rows["peers"][0])
        text = self.request("/metrics?exclude[]=exporter")[2].decode()
        series = len(re.findall("^[a-z]", text, re.MULTILINE))
        for column, whole in ((1, series), (2, len(text.encode()))):
            shown = [row[column].split()[0].replace(",", "") for row in rows.values()]
            self.assertEqual(whole, sum(map(int, shown)))

    def test_nothing_published(self) -> None:
        """Without metrics the peers are still refreshed, and the page says so."""
        self.watch(Watched(metric_filter=MetricFilter(deny=("*",))).start())
        self.assertIn("Collectors No collector is enabled.", self.text())
        self.assertIn("Reading NetBird: yes", self.text())
        self.assertNotIn("users", self.rows("Resources"))
        self.assertEqual(200, self.request("/ready")[0])

    def test_missing_groups(self) -> None:
        """Groups that do not exist are named, escaped."""
        choice = MetricFilter(detail=frozenset({"servers", "<b>gone</b>"}))
        self.watch(Watched(metric_filter=choice).start())
        self.assertIn("Group <b>gone</b> does not exist, ", self.text())
        self.assertEqual(2, self.page().count("PEER_DETAIL"))
        self.assertNotIn("<b>gone", self.page())

    def test_stretched(self) -> None:
        """A note below the table shows the lengthened intervals."""
        words = "refresh intervals are lengthened to fit 120 requests a minute"
        self.assertNotIn("lengthened", self.page())
        plan = self.watched.plan
        self.watched.plan = replace(plan, intervals_note=words)
        self.watched.advance(2)
        self.assertIn(f"R{words[1:]}.", self.page())

    def test_states(self) -> None:
        """Each state has its word; each word that needs it is explained once."""
        watched = Watched(collectors=("peers", "groups", "users", "routes"))
        watched.bodies["api/users"] = b'[{"id":"somebody"}]'
        watched.faults |= {"api/groups": MARKUP, "api/routes": ABSENT}
        watched.faults["api/users/current"] = ABSENT
        watched.start()
        watched.silent.add("api/peers")
        self.watch(watched.advance(60))
        rows, text = self.rows("Resources"), self.text()
        for name, state, is_explained in (
            ("peers", "late", True),
            ("accounts", "fresh", False),
            ("groups", "failing", False),
            ("routes", "unsupported", True),
            ("access_tokens", "starting", True),
        ):
            self.assertEqual(state, rows[name][0], name)
            self.assertTrue(not is_explained or f"{state}: " in text, name)
        self.assertEqual("unsupported", rows["current_user"][0])  # a service user
        for colour, state in (
            ("warning", "late"),
            ("ok", "fresh"),
            ("critical", "failing"),
            ("unknown", "starting"),
        ):
            self.assertIn(f'class="state {colour}">{state}<', self.page())

    def test_dormant(self) -> None:
        """Without a provider, resources of the Agent Network are dormant, not off."""
        self.watch(Watched(collectors=("peers", "agent_network")))
        self.watched.bodies["api/agent-network/providers"] = b"[]"
        self.watched.start(60)
        text = self.text()
        self.assertIn("dormant: no provider of the Agent Network is known.", text)
        self.assertEqual("dormant", self.rows("Resources")["agent_policies"][0])
        [off] = re.findall(r"off \(.*?\): ([a-z_, ]+)\.", text)
        self.assertIn("events", off.split(", "))
        self.assertNotIn("agent_policies", off)

    def test_worst_first(self) -> None:
        """The worse fact is first and in the title; green needs both facts."""
        self.watch(Watched(collectors=("peers", "groups", "routes")))
        self.watched.bodies["api/routes"] = lost_routes("x")
        self.watched.start(20)
        heading = self.main().find("section/h1")
        assert heading is not None
        self.assertEqual(
            [
                (
                    "critical",
                    "critical",
                    "Route x to 10.0.0.0/8 leads to no connected peer",
                )
            ],
            [
                (span.get("class"), badge.text, (badge.tail or "").strip())
                for span in heading
                for badge in span.iter("em")
            ],
        )
        self.assertIn("Reading NetBird: yes", self.text())
        self.assertIn("<title>1 critical – api-exporter</title>", self.page())
        self.assertIn('class="verdict critical"', self.page())

    def test_failed_attempt(self) -> None:
        """While a failed request for the peers is retried, no network is all right."""
        self.watch(Watched(peers=14))
        self.watched.bodies |= QUIET
        self.watched.start(60)
        self.assertIn(NO_PROBLEM, self.text())
        self.watched.states.record_attempt(attempt("api/peers", 500, error=MARKUP))
        text = self.text()
        self.assertIn("The network: unknown for now", text)
        self.assertNotIn(NO_PROBLEM, text)

    def test_failing(self) -> None:
        """A failure has the request id; advice for a reason is not repeated."""
        fault = UpstreamError("http_5xx", "500: broken", request_id="dc1djo5qmd2oq13d")
        self.watched.faults |= {"api/groups": fault, "api/users": fault}
        self.watched.advance(700)
        text = self.text()
        cause = "500: broken (request id dc1djo5qmd2oq13d)"
        self.assertEqual(1, text.count(cause))
        self.assertIn(f"groups, users: since 12:05 UTC: {cause}", text)
        self.assertEqual(1, text.count(advice(fault)))
        self.watch(Watched().start())
        words = "401: the NetBird API rejects the token"
        self.watched.down = UpstreamError("auth", words)
        self.watched.advance(700)
        text = self.text()
        self.assertIn("Reading NetBird: no, since 12:00 UTC", text)
        self.assertEqual(2, text.count(words))  # the headline, the newest requests
        self.assertRegex(text, r"\d other resources fail\.")
        self.assertEqual(1, text.count("Check the expiry of"))

    def test_calls(self) -> None:
        """The newest twenty requests are shown, the newest first, with all figures."""
        figures = {"number": 3, "status": 200, "received": 12345, "seconds": 0.25}
        for n in range(30):
            self.attempt(f"api/x{n}", started=NOON + n, **figures)
        calls = self.rows("Newest requests")
        self.assertEqual([f"/api/x{n}" for n in range(29, 9, -1)], list(calls))
        shown = ["200", "12:00:29", "12,345 bytes", "250 ms", "attempt 3"]
        self.assertEqual(shown, calls["/api/x29"])

    def test_no_answer(self) -> None:
        """A missing response is shown; for the connection test any response is good."""
        absent = UpstreamError(
            "not_found", "404: the NetBird API does not have this path"
        )
        self.attempt("api/health", status=404, error=absent)
        lost = UpstreamError("connect", "no connection")
        self.attempt("api/peers", status=None, error=lost)
        text = self.text()
        self.assertIn("any response is good", text)
        self.assertNotIn("does not have this path", text)
        self.assertIn("does not answer", text)
        self.assertEqual("no response", self.rows("Newest requests")["/api/peers"][0])
        self.assertIn('class="state critical">no response<', self.page())
        self.assertIn('class="state unknown">404<', self.page())

    def test_markup(self) -> None:
        """Markup in NetBird's errors is escaped everywhere."""
        self.watched.down = MARKUP
        self.watched.advance(700)
        self.assertEqual(1, self.page().count("<script>"))
        self.assertEqual([], list(self.main().iter("script")))
        self.assertIn(str(MARKUP), self.text())

    def test_policy(self) -> None:
        """The browser runs and loads only the page's own style and script."""
        _, headers, body = self.request("/")
        policy = header(headers, "content-security-policy")
        self.assertTrue(policy.startswith("default-src 'none'; "))
        for name in ("style", "script"):
            [text] = re.findall(f"<{name}>(.*?)</{name}>", body.decode(), re.DOTALL)
            digest = b64encode(sha256(text.encode()).digest()).decode()
            self.assertIn(f"{name}-src 'sha256-{digest}'", policy)
        self.assert_headers(
            headers,
            referrer_policy="no-referrer",
            cross_origin_resource_policy="same-origin",
        )
        self.assertNotRegex(body.decode(), r' (style|on\w+)="')
        self.assertNotRegex(body.decode(), r'src="|url\(')

    def test_links(self) -> None:
        """The footer has links to all pages that are enabled or published."""
        for pprof, forge in ((False, "forge.x.example"), (True, "git.example.org")):
            address = f"https://{forge}/api-exporter/tree/main/docs"
            self.patch(pages, "DOCUMENTATION", address)
            self.watch(Watched(pprof=pprof))
            links = re.findall(r'<a href="([^"]+)"', self.page())
            names = ["findings", "runbooks", "status.json", "metrics", "sd?port=9100"]
            self.assertEqual([*names, "health", "ready"], links[-7 - 2 * pprof :][:7])
            self.assertEqual(pprof, "debug/pprof/" in links)
            self.assertEqual(pprof, address in links)
