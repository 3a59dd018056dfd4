"""The output of `--check` and `--once`."""

import io
import os
import re
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred, fail
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.checking.report import (
    access_lines,
    choose,
    only_first,
    print_check,
    print_metrics,
    try_reach,
)
from api_exporter.checking.survey import ResourceCheck
from api_exporter.exposition.pages import piece
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group, User
from api_exporter.netbird.unknown import Unknown
from api_exporter.ports import UpstreamError
from api_exporter.refresh.network import AccountNetwork, NetworkOptions
from api_exporter.settings.addresses import parse_addresses
from api_exporter.settings.environment import read_settings
from api_exporter.subjects.routes import Route
from api_exporter.subjects.setup_keys import SetupKey
from api_exporter.subjects.table import RESOURCE_BY_NAME, RESOURCES
from api_exporter.upstream.advice import advice
from api_exporter.web.status.findings import NO_PROBLEM
from api_exporter.world import World
from tests.inventories import changed, inventory_of
from tests.parts import quota

NOW = 1_800_000_000.0
RUNBOOKS = "/usr/share/runbooks.html"
EMPTY = inventory_of(peers=(), accounts=(), groups=(Group(id="g", name="servers"),))
PAGE = b'netbird_api_peers{connected="true"} 1\n'
LIMITED = UpstreamError("rate_limited", "429")


async def checks_of(*checks: ResourceCheck) -> AsyncIterator[ResourceCheck]:
    for one in checks:
        yield one


def network(inventory: Inventory) -> AccountNetwork:
    """Return a network with these records."""
    made = AccountNetwork(
        fetch=lambda *_: fail(NotImplementedError()),
        quota=quota(("peers",)),
        world=World(Clock(), lambda: NOW, lambda: 0.5),
        registry=CollectorRegistry(),
        options=NetworkOptions(important_groups=("servers",)),
    )
    made.pipeline.inventory = inventory
    return made


def check(name: str, error: UpstreamError | None = None, **facts: Any) -> ResourceCheck:
    return ResourceCheck(resource=RESOURCE_BY_NAME[name], error=error, **facts)


READ = check("peers", records=0)


class CheckTests(SynchronousTestCase):
    def checked(
        self, *checks: ResourceCheck, unreachable: str = "", known: Inventory = EMPTY
    ) -> tuple[int, str]:
        """Return the status of `--strict`, and the output."""
        out = io.StringIO()
        self.patch(sys, "stdout", out)
        reads, net = checks_of(*checks), network(known)
        check = print_check(unreachable, reads, net, lambda: NOW, RUNBOOKS)
        done = Deferred.fromCoroutine(check)
        return self.successResultOf(done), out.getvalue()

    def test_columns(self) -> None:
        """Path, outcome, records and milliseconds stand in columns of fixed width."""
        _, text = self.checked(
            check("peers", seconds=0.0123, records=100_000),
            check("proxy_tokens", LIMITED, seconds=30.0),
            check("access_tokens"),
        )
        reachable, head, *rows, cost, failure, _, _ = text.splitlines()
        self.assertEqual("reachable: yes", reachable)
        self.assertEqual(
            [
                ["api/peers", "ok", "100000", "12"],
                ["api/reverse-proxies/proxy-tokens", "rate_limited", "30000"],
                ["api/users/{current_user}/tokens", "skipped", "0"],
            ],
            [row.split() for row in rows],
        )
        self.assertEqual({len(head)}, set(map(len, rows)))
        self.assertEqual(f"proxy_tokens: 429. {advice(LIMITED)}", failure)
        self.assertIn("cost: 2.50 requests a minute, of which access log 0.00", cost)

    def test_held_back(self) -> None:
        """Paths that were not requested have one line, which says why."""
        refused = check("peers", UpstreamError("auth", "401"))
        others = [check(name, held_back=True) for name in ("groups", "routes")]
        status, text = self.checked(refused, *others)
        self.assertEqual(3, status)
        self.assertEqual(2, len(re.findall("^api/.*held_back", text, re.MULTILINE)))
        self.assertIn("\nheld_back: no other path was requested, because", text)
        status, text = self.checked(READ, *others)
        self.assertEqual(0, status)
        self.assertIn("\nheld_back: not requested. 9 other paths were refused", text)

    def test_failures(self) -> None:
        """Invalid records are listed up to a limit; failures have names and advice."""
        known = UpstreamError("http_5xx", "500", request_id="dc1djo5q")
        unauthorized = UpstreamError("auth", "401")
        new = Unknown(frozenset({"kind"}), frozenset({("type", "x")}))
        odd = check("peers", records=1, unknown=new)
        many = [ResourceCheck(resource=r, error=unauthorized) for r in RESOURCES[:5]]
        bad = check("peers", records=1, rejected=30, record_errors=("[1]: bad",))
        for checks, words in (
            ([bad], "\nleft out: peers[1]: bad\nleft out: 29 more of peers\n"),
            ([READ, check("groups", known)], " Request id: dc1djo5q.\n"),
            ([odd], "version: peers: kind, type=x\n"),
            (many, "\n5 resources: 401. The token is wrong"),
            (many[:2], "\npeers, accounts: 401. The token is wrong"),
        ):
            _, text = self.checked(*checks)
            self.assertIn(words, text)
            self.assertEqual("id: " in words, "Request id" in text)

    def test_once(self) -> None:
        """Advice is not repeated; a token that reads the peers is not called wrong."""
        other = UpstreamError("http_5xx", "503")
        _, text = self.checked(
            READ,
            check("groups", UpstreamError("http_5xx", "500")),
            check("routes", other),
            check("users", UpstreamError("auth", "401: rejected")),
        )
        self.assertEqual(1, text.count(advice(other)))
        self.assertIn("\nroutes: 503.\n", text)
        self.assertNotIn("token is wrong", text)
        self.assertIn("\nusers: 401: rejected. NetBird accepts the token", text)

    def test_strict(self) -> None:
        """An unread resource counts as a warning; unread peers end the check."""
        for checks, status in (
            ([READ, check("routes", LIMITED)], 1),
            ([READ, check("dns_zones", LIMITED)], 1),
            ([READ, check("agent_policies")], 0),  # there is no provider
            ([READ], 0),
            ([check("peers", LIMITED)], 3),
        ):
            self.assertEqual(status, self.checked(*checks)[0])
        failed = check("peers", UpstreamError("connect", "no connection"))
        _, text = self.checked(failed, failed, unreachable="no connection")
        self.assertEqual(1, text.count("api/peers"))
        self.assertIn("reachable: no\n", text)
        self.assertEqual(1, text.count("no connection"))
        _, text = self.checked(READ, unreachable="no connection")
        self.assertIn("\nnot reachable at first: no connection\n", text)

    def test_out_of_reach(self) -> None:
        """Without a response the first request ends in time, and is the only one."""
        clock, read = Clock(), list[ResourceCheck]()

        async def hanging() -> AsyncIterator[ResourceCheck]:
            await Deferred[None]()
            yield ResourceCheck(resource=RESOURCES[0])

        async def collect() -> None:
            async for check in only_first(hanging(), network(EMPTY), clock):
                read.append(check)

        done = Deferred.fromCoroutine(collect())
        clock.advance(10)
        self.successResultOf(done)
        [check] = read
        self.assertEqual(("peers", "timeout"), (check.resource.name, check.outcome))

    def test_lists(self) -> None:
        """Findings may be about incomplete lists and missing groups of settings."""
        me = User(id="me", role="user", is_current=True)
        missing = inventory_of(groups=(), detail=frozenset({"servers"}))
        line = "warning: Group servers does not exist, but PEER_DETAIL names it.\n"
        for known, words in (
            (inventory_of(users=(me,)), "The list of peers may be incomplete."),
            (missing, line),
        ):
            status, text = self.checked(READ, known=known)
            self.assertEqual(1, status)
            self.assertIn("\nneeds attention:\nwarning: ", text)
            self.assertIn(words, text)

    def test_attention(self) -> None:
        """Findings come last, with time and runbook; a line names unread resources."""
        _, text = self.checked(READ)
        self.assertEqual(f"needs attention: {NO_PROBLEM}", text.splitlines()[-1])
        key = SetupKey(
            id="k",
            name="fleet",
            type="reusable",
            state="valid",
            expires=datetime.fromtimestamp(NOW + 3600, UTC),
            last_used=datetime.fromtimestamp(NOW, UTC),
        )
        _, text = self.checked(
            READ,
            check("access_tokens", UpstreamError("forbidden", "403")),
            check("routes", LIMITED),
            known=(changed(EMPTY, setup_keys=(key,))),
        )
        self.assertEqual(
            [
                "needs attention:",
                "warning: Setup key fleet expires soon: machines used this key"
                " recently. (until 09:00 UTC)"
                " [NetBirdSetupKeyExpiresSoon]",
                "info: The exporter's token has an unknown expiry date: no alert warns"
                " before the token expires. [ApiExporterTokenNotWatched]",
                f"what to do: see the section of the name in brackets in {RUNBOOKS}",
                "Unknown and not checked: routes.",
            ],
            text.splitlines()[-5:],
        )

    def test_much_attention(self) -> None:
        """All findings are listed, and names cannot begin a line."""
        routes = tuple(
            Route(id=f"{n}", network_id=f"{n}\n\x1b[2J", network="::/0", enabled=True)
            for n in range(51)
        )
        status, text = self.checked(READ, known=changed(EMPTY, routes=routes))
        self.assertEqual(2, status)
        lines = text.splitlines()
        self.assertEqual(51, sum(line.startswith("critical: ") for line in lines))
        self.assertNotIn("\x1b", text)


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


class ReachedTests(SynchronousTestCase):
    def test_defect(self) -> None:
        """An internal error ends the connection test, not the check."""

        async def reachability_problem() -> str:
            raise ZeroDivisionError

        done = Deferred.fromCoroutine(try_reach(reachability_problem))
        problem = "internal error, see the log"
        self.assertEqual(problem, self.successResultOf(done))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))


class OnceTests(SynchronousTestCase):
    def printed(self, *checks: ResourceCheck) -> tuple[bool, str, str]:
        """Return whether the peers were read, the output, and the errors."""
        out, err = io.StringIO(), io.StringIO()
        self.patch(sys, "stdout", out)
        self.patch(sys, "stderr", err)
        known = network(inventory_of())
        known.pages.publish("peers", (piece(PAGE),))
        done = Deferred.fromCoroutine(print_metrics(known, checks_of(*checks)))
        return self.successResultOf(done), out.getvalue(), err.getvalue()

    def test_page(self) -> None:
        """Metrics go to standard output, failures to standard error."""
        limited = [check(n, LIMITED) for n in ("groups", "access_tokens", "routes")]
        found = self.printed(READ, *limited)
        self.assertEqual((True, PAGE.decode(), "groups: 429\nroutes: 429\n"), found)
        failed = check("peers", UpstreamError("connect", "no connection"))
        found = self.printed(failed, failed)
        self.assertEqual((False, PAGE.decode(), "peers: no connection\n"), found)
