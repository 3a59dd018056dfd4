"""The output of `--check` and `--once`."""

import io
import json
import os
import sys

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.checking.first_refreshes import (
    MAX_SECONDS,
    first_refreshes,
    strict_status,
)
from api_exporter.checking.report import access_lines, choose, report_lines
from api_exporter.ports import UpstreamError
from api_exporter.refresh.budget import Budget
from api_exporter.settings.addresses import parse_addresses
from api_exporter.settings.environment import read_settings
from api_exporter.subjects.watch import FindingList, KeptFindings
from api_exporter.upstream.advice import advice
from tests.bodies import body
from tests.parts import attempt
from tests.web.watched import QUIET, Watched, lost_routes

RUNBOOKS = "/usr/share/runbooks.html"
BROKEN = UpstreamError("http_5xx", "500", request_id="dc1djo5q")
REFUSED = UpstreamError("auth", "401")


class CheckTests(SynchronousTestCase):
    def checked(self, watched: Watched) -> tuple[int, str]:
        """Do the first refreshes; return the status of `--strict`, and the report."""
        watched.startService()
        done = Deferred.fromCoroutine(first_refreshes(watched, watched.clock))
        lines: list[str] = []

        def stop(_: None) -> None:
            lines.extend(report_lines(watched, watched.now(), RUNBOOKS))
            watched.stopService()

        done.addCallback(stop)
        watched.advance(MAX_SECONDS + 1)
        return strict_status(watched), "".join(f"{line}\n" for line in lines)

    def quiet(self) -> Watched:
        """Return a network without findings."""
        watched = Watched(peers=14)
        watched.bodies = {**QUIET}
        return watched

    def test_columns(self) -> None:
        """Path, outcome, records and milliseconds stand in columns of fixed width."""
        _, text = self.checked(Watched())
        reachable, head, *lines = text.splitlines()
        self.assertEqual("reachable: yes", reachable)
        self.assertRegex(lines[0], r"^api/peers +fresh +20 +[2-9]\d$")
        rows = [line for line in lines if line.startswith("api/")]
        self.assertEqual({len(head)}, {len(row) for row in rows if "fresh" in row})
        self.assertRegex(text, r"\ncost: \d\.\d\d requests a minute")

    def test_good(self) -> None:
        """Findings come last; without any the report says so, and the status is 0."""
        status, text = self.checked(self.quiet())
        self.assertEqual(0, status, text)
        self.assertTrue(
            text.endswith("needs attention: No known problem in the network.\n")
        )

    def test_warning(self) -> None:
        """A warning is status 1, and information is none."""
        watched = self.quiet()
        self.checked(watched)
        for severity, status in (("critical", 2), ("warning", 1), ("info", 0)):
            found = FindingList(counts={severity: 1})
            watched.findings = KeptFindings(found=found)
            self.assertEqual(status, strict_status(watched))
        watched.states.change("groups", error=BROKEN)
        self.assertEqual(1, strict_status(watched))

    def test_refused(self) -> None:
        """A refused token is sent a few times at most; what waits is named once."""
        watched = Watched()
        watched.down = REFUSED
        status, text = self.checked(watched)
        self.assertEqual(3, status)
        self.assertRegex(text, r"\napi/peers +auth ")
        self.assertIn(
            "\nwaiting: no refresh while the refresh of the peers fails.\n", text
        )
        self.assertIn(f"401. {advice(REFUSED)}\n", text)
        self.assertLessEqual(len(watched.telemetry.recent), 3)
        self.assertIn("Unknown and not checked: peers, ", text)

    def test_withheld(self) -> None:
        """Peers of which the token's user sees a part are withheld: a warning."""
        watched = self.quiet()
        me = {"id": "me", "role": "user", "permissions": {"is_restricted": True}}
        watched.bodies["api/users/current"] = json.dumps(me).encode()
        status, text = self.checked(watched)
        self.assertEqual(1, status)
        self.assertRegex(text, r"\napi/peers +restricted +\d+\n")
        self.assertIn("may not read everything. The exporter withholds peers.", text)
        self.assertIn("\nUnknown and not checked: peers", text)

    def test_fails_at_the_end(self) -> None:
        """The findings are those after the last reading: failing peers are one."""
        watched = self.quiet()
        watched.down = BROKEN
        status, text = self.checked(watched)
        self.assertEqual(3, status)
        self.assertIn("[ApiExporterUpstreamFailing]", text)
        self.assertNotIn("No known problem", text)

    def test_held_back(self) -> None:
        """Paths that are not requested have one line, which says why."""
        watched = self.quiet()
        for number in range(20):
            watched.count_attempt(attempt(f"api/{number}", 403))
        _, text = self.checked(watched)
        self.assertIn("\nheld_back: not requested: NetBird refused other paths", text)

    def test_parts(self) -> None:
        """Today's usage is read after that of earlier days, even if it waits."""
        collectors = ("peers", "groups", "users", "agent_network")
        watched = Watched(collectors=collectors, budget=Budget((60, 24)))
        watched.bodies["api/agent-network/providers"] = body("agent_providers")
        self.checked(watched)
        usage = 'netbird_api_agent_usage_tokens{period="day",kind="input"}'
        self.assertTrue(usage in watched.text().decode())

    def test_failures(self) -> None:
        """A failure counts as a warning, with its request and advice once."""
        watched = self.quiet()
        watched.faults = {
            "api/groups": BROKEN,
            "api/users": UpstreamError("http_5xx", "503"),
        }
        status, text = self.checked(watched)
        self.assertEqual(1, status)
        self.assertIn("groups: 500 (request id dc1djo5q). ", text)
        self.assertEqual(1, text.count(advice(BROKEN)))
        self.assertRegex(text, r"\nUnknown and not checked: .*groups")

    def test_records(self) -> None:
        """Invalid records and unknown fields are listed, up to a limit."""
        watched = self.quiet()
        peers: list[dict[str, object]] = [{"id": n} for n in range(30)]
        watched.bodies["api/peers"] = json.dumps([{"id": "a"}, *peers]).encode()
        _, text = self.checked(watched)
        self.assertIn("\nleft out: peers[1]: ", text)
        self.assertRegex(text, r"\nleft out: \d+ more of peers\n")

    def test_silent(self) -> None:
        """A check ends after a minute; what is not read by then is named."""
        watched = self.quiet()
        watched.silent.add("api/groups")
        status, text = self.checked(watched)
        self.assertEqual(1, status)
        self.assertIn("\nnot read within 60 seconds: groups", text)
        self.assertLess(watched.clock.seconds(), 2 * MAX_SECONDS)

    def test_unknown_user(self) -> None:
        """The tokens of an unknown user are not waited for: they cannot be read."""
        watched = Watched(collectors=("peers", "groups", "users", "networks"))
        refused = UpstreamError("forbidden", "403")
        watched.faults = {"api/users": refused, "api/users/current": refused}
        status, text = self.checked(watched)
        self.assertEqual(2, status)
        self.assertIn("\ncritical: Network ", text)
        self.assertIn("\nUnknown and not checked: access_tokens.", text)
        self.assertNotIn("not read within", text)

    def test_attention(self) -> None:
        """Findings have time and runbook, and names cannot begin a line."""
        watched = Watched(collectors=("peers", "groups", "routes"))
        names = (f"{number}\n\x1b[2J" for number in range(51))
        watched.bodies["api/routes"] = lost_routes(*names)
        status, text = self.checked(watched)
        self.assertEqual(2, status)
        lines = text.splitlines()
        self.assertLessEqual(51, sum(line.startswith("critical: ") for line in lines))
        self.assertNotIn("\x1b", text)
        words = f"\nwhat to do: see the section of the name in brackets in {RUNBOOKS}\n"
        self.assertIn(words, text)


class ChosenTests(SynchronousTestCase):
    def test_chosen(self) -> None:
        """The result is all accounts, the named one, or the only one."""
        environ = {"UPSTREAM_API_URL": "http://api.example", "UPSTREAM_API_TOKEN": "x"}
        [account] = read_settings(environ).accounts.values()
        both = dict.fromkeys(("acme", "beta"), account)
        for accounts, wanted, single, expected in (
            (both, None, False, ["acme", "beta"]),
            (both, "acme", True, ["acme"]),
            ({"": account}, None, True, [""]),
            ({}, None, False, []),
            (both, "x", True, "'x' is not allowed: it must be one of acme, beta"),
            (both, "", True, "'' is not allowed: it must be one of acme, beta"),
            ({"": account}, "x", True, "'x' is not allowed: no account has a name"),
            (both, None, True, "--account, which must be one of acme, beta"),
            ({}, None, True, "this shard has no accounts"),
            ({}, "acme", True, "this shard has no accounts"),
        ):
            err = io.StringIO()
            self.patch(sys, "stderr", err)
            try:
                found = [*choose(accounts, wanted, single=single)]
            except SystemExit as exit_:
                self.assertEqual(os.EX_CONFIG, exit_.code)
                self.assertTrue(err.getvalue().endswith(f"{expected}\n"), expected)
            else:
                self.assertEqual(expected, found)


class AccessLinesTests(SynchronousTestCase):
    def test_risk(self) -> None:
        """Without authentication a line warns, unless only this machine can connect."""
        for risky, texts in (
            (True, (":8080", "192.0.2.1:8080", "127.0.0.1:8080,192.0.2.1:8080")),
            (True, ("exporter.example:8080", "systemd:domain=INET:index=0")),
            (False, ("127.0.0.1:8080", "[::1]:8080,localhost:8080", "unix:/run/a.so")),
        ):
            for text in texts:
                lines = access_lines(None, parse_addresses(text))
                self.assertEqual(risky, bool(lines), text)
