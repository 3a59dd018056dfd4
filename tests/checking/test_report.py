"""The output of `--check` and `--once`."""

import io
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred, fail
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.checking.report import (
    access_lines,
    print_check,
    print_metrics,
    try_reach,
)
from api_exporter.checking.survey import ResourceCheck
from api_exporter.exposition.pages import piece
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group, Route, SetupKey, User
from api_exporter.netbird.resources import RESOURCE_BY_NAME, RESOURCES
from api_exporter.ports import UpstreamError
from api_exporter.refresh.network import AccountNetwork, NetworkOptions
from api_exporter.settings.addresses import parse_addresses
from api_exporter.upstream.advice import advice
from api_exporter.web.status.findings import NO_PROBLEM
from api_exporter.world import World
from tests.parts import quota

PEERS, TOKENS = RESOURCE_BY_NAME["peers"], RESOURCE_BY_NAME["access_tokens"]
NOW = 1_800_000_000.0
RUNBOOKS = "/usr/share/runbooks.html"
EMPTY = Inventory(peers=(), groups=(Group(id="g", name="servers"),))
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


class CheckTests(SynchronousTestCase):
    def checked(
        self, *checks: ResourceCheck, unreachable: str = "", known: Inventory = EMPTY
    ) -> tuple[int, str]:
        """Return the status of `--strict`, and the output."""
        out = io.StringIO()
        self.patch(sys, "stdout", out)
        done = Deferred.fromCoroutine(
            print_check(
                unreachable, checks_of(*checks), network(known), lambda: NOW, RUNBOOKS
            )
        )
        return self.successResultOf(done), out.getvalue()

    def test_columns(self) -> None:
        """Path, outcome, records and milliseconds stand in columns of fixed width."""
        status, text = self.checked(
            ResourceCheck(resource=PEERS, seconds=0.0123, records=100_000),
            ResourceCheck(
                resource=RESOURCE_BY_NAME["proxy_tokens"], seconds=30.0, error=LIMITED
            ),
            ResourceCheck(resource=TOKENS),
        )
        self.assertEqual(1, status)
        reachable, head, *rows, failure, _, _ = text.splitlines()
        self.assertEqual("reachable: yes", reachable)
        self.assertEqual(
            [
                ["api/peers", "ok", "100000", "12"],
                ["api/reverse-proxies/proxy-tokens", "rate_limited", "30000"],
                [TOKENS.path, "skipped", "0"],
            ],
            [row.split() for row in rows],
        )
        for row in rows:
            self.assertEqual(len(head), len(row))
        self.assertEqual(f"proxy_tokens: 429. {advice(LIMITED)}", failure)

    def test_left_out(self) -> None:
        """Invalid records are listed, up to a limit."""
        _, text = self.checked(
            ResourceCheck(
                resource=PEERS,
                records=1,
                rejected=30,
                record_errors=("[1]: bad", "[2]: worse"),
            )
        )
        self.assertEqual(
            [
                "left out: peers[1]: bad",
                "left out: peers[2]: worse",
                "left out: 28 more of peers",
            ],
            text.splitlines()[3:6],
        )

    def test_request_id(self) -> None:
        """A failed request is reported with its request id."""
        error = UpstreamError("http_5xx", "500", request_id="dc1djo5qmd2oq13d8pj0")
        _, text = self.checked(
            ResourceCheck(resource=PEERS, records=0),
            ResourceCheck(resource=RESOURCE_BY_NAME["groups"], error=error),
            ResourceCheck(resource=RESOURCE_BY_NAME["routes"], error=LIMITED),
        )
        self.assertRegex(text, r"groups: 500\. .*Request id: dc1djo5qmd2oq13d8pj0\.\n")
        self.assertEqual(1, text.count("Request id"))

    def test_many(self) -> None:
        """Many resources with the same failure are counted, before the advice."""
        error = UpstreamError("auth", "401")
        checks = [ResourceCheck(resource=one, error=error) for one in RESOURCES[:5]]
        _, text = self.checked(*checks)
        self.assertIn("\n5 resources: 401. The token is wrong", text)
        _, text = self.checked(*checks[:2])
        self.assertIn("\npeers, accounts: 401. The token is wrong", text)

    def test_unreachable(self) -> None:
        """If the NetBird API is unreachable, one request is enough."""
        refused = UpstreamError("connect", "no connection")
        failed = ResourceCheck(resource=PEERS, error=refused)
        status, text = self.checked(failed, failed, unreachable="no connection")
        self.assertEqual(3, status)
        self.assertEqual(1, text.count("api/peers"))
        self.assertIn("reachable: no connection\n", text)

    def test_partial(self) -> None:
        """A list that may lack peers is reported."""
        inventory = Inventory(users=(User(id="me", role="user", is_current=True),))
        finding = ResourceCheck(resource=PEERS, records=1)
        status, text = self.checked(finding, known=inventory)
        self.assertEqual(1, status)
        self.assertIn("\nneeds attention:\nwarning: The token's user has", text)
        self.assertIn("The list of peers may be incomplete.", text)

    def test_attention(self) -> None:
        """Findings come last, with time and runbook; a line names unread resources."""
        quiet = Inventory(peers=(), groups=(Group(id="g", name="servers"),))
        peers = ResourceCheck(resource=PEERS, records=0)
        _, text = self.checked(peers, known=quiet)
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
            peers,
            ResourceCheck(resource=TOKENS, error=UpstreamError("forbidden", "403")),
            ResourceCheck(resource=RESOURCE_BY_NAME["routes"], error=LIMITED),
            known=(replace(quiet, setup_keys=(key,))),
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
        inventory = Inventory(
            peers=(), groups=(Group(id="g", name="servers"),), routes=routes
        )
        peers = ResourceCheck(resource=PEERS, records=0)
        status, text = self.checked(peers, known=inventory)
        self.assertEqual(2, status)
        lines = text.splitlines()
        self.assertEqual(51, sum(line.startswith("critical: ") for line in lines))
        self.assertNotIn("\x1b", text)

    def test_missing_groups(self) -> None:
        """Missing groups that PEER_DETAIL names are reported."""
        inventory = Inventory(groups=(), detail=frozenset({"servers"}))
        finding = ResourceCheck(resource=PEERS, records=1)
        self.assertIn(
            "warning: Group servers does not exist, but PEER_DETAIL names it.\n",
            self.checked(finding, known=inventory)[1],
        )

    def test_strict(self) -> None:
        """An unread resource counts as a warning: its findings are unknown."""
        routes = ResourceCheck(resource=RESOURCE_BY_NAME["routes"], error=LIMITED)
        peers = ResourceCheck(resource=PEERS, records=0)
        self.assertEqual(1, self.checked(peers, routes, known=EMPTY)[0])
        self.assertEqual(0, self.checked(peers, known=EMPTY)[0])
        unread = ResourceCheck(resource=PEERS, error=LIMITED)
        self.assertEqual(3, self.checked(unread, known=EMPTY)[0])


class AccessLinesTests(SynchronousTestCase):
    def test_risk(self) -> None:
        """Without authentication a line warns, unless only this machine can connect."""
        for text, risky in (
            (":8080", True),
            ("192.0.2.1:8080", True),
            ("127.0.0.1:8080,192.0.2.1:8080", True),
            ("exporter.example:8080", True),
            ("systemd:domain=INET:index=0", True),
            ("127.0.0.1:8080", False),
            ("[::1]:8080,localhost:8080", False),
            ("unix:/run/api-exporter.sock", False),
        ):
            self.assertEqual(
                risky, bool(access_lines(None, parse_addresses(text))), text
            )


class ReachedTests(SynchronousTestCase):
    def test_defect(self) -> None:
        """An internal error ends the connection test, not the check."""

        async def reachability_problem() -> str:
            raise ZeroDivisionError

        done = Deferred.fromCoroutine(try_reach(reachability_problem))
        self.assertEqual(
            "internal error: ZeroDivisionError", self.successResultOf(done)
        )
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))


class OnceTests(SynchronousTestCase):
    def test_page(self) -> None:
        """Metrics go to standard output, failures to standard error."""
        out, err = io.StringIO(), io.StringIO()
        self.patch(sys, "stdout", out)
        self.patch(sys, "stderr", err)
        known = network(Inventory())
        known.pages.publish("peers", (piece(PAGE),))
        checks = checks_of(
            ResourceCheck(resource=PEERS, records=1),
            ResourceCheck(resource=RESOURCE_BY_NAME["groups"], error=LIMITED),
            ResourceCheck(resource=TOKENS, error=LIMITED),
        )
        done = Deferred.fromCoroutine(print_metrics(known, checks))
        self.assertTrue(self.successResultOf(done))
        self.assertEqual(PAGE.decode(), out.getvalue())
        self.assertEqual("groups: 429\n", err.getvalue())
