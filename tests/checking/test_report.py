"""What `--check` and `--once` print of what was found."""

import io
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import UTC, datetime

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.exporter import PARTIAL
from api_exporter.attention.watch import Attention
from api_exporter.checking.attending import lines
from api_exporter.checking.report import check, once, reached
from api_exporter.checking.survey import Finding
from api_exporter.collectors.selection import selection
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import Group, Peer, Route, SetupKey, User
from api_exporter.netbird.resources import BY_NAME
from api_exporter.ports import UpstreamError
from api_exporter.upstream.advice import advice
from api_exporter.web.status.findings import QUIET

PEERS, TOKENS = BY_NAME["peers"], BY_NAME["access_tokens"]
NOW = 1_800_000_000.0
RUNBOOKS = "/usr/share/runbooks.html"
LIMITED = UpstreamError("rate_limited", "429")


async def round_of(*findings: Finding) -> AsyncIterator[Finding]:
    for finding in findings:
        yield finding


def attending(found: list[Finding]) -> Iterator[str]:
    attention = Attention(
        Inventory,
        standings={},
        now=lambda: NOW,
        chosen=("servers",),
    )
    return lines(found, attention, NOW, RUNBOOKS)


class CheckTests(SynchronousTestCase):
    def checked(
        self,
        *findings: Finding,
        unreachable: str = "",
        attending: Callable[[list[Finding]], Iterable[str]] = lambda _: (),
    ) -> tuple[bool, str]:
        """Whether it is well, and what was printed."""
        out = io.StringIO()
        self.patch(sys, "stdout", out)
        done = Deferred.fromCoroutine(
            check(unreachable, round_of(*findings), attending)
        )
        return self.successResultOf(done), out.getvalue()

    def test_columns(self) -> None:
        """Path, outcome, records and milliseconds stand in columns of fixed width."""
        good, text = self.checked(
            Finding(
                resource=PEERS, inventory=Inventory(), seconds=0.0123, records=100_000
            ),
            Finding(
                resource=BY_NAME["proxy_tokens"],
                inventory=Inventory(),
                seconds=30.0,
                error=LIMITED,
            ),
            Finding(resource=TOKENS, inventory=Inventory()),
        )
        self.assertTrue(good)
        reachable, head, *rows, failure = text.splitlines()
        self.assertEqual("reachable: yes", reachable)
        self.assertEqual(
            [
                ["api/peers", "ok", "100000", "12"],
                ["api/reverse-proxies/proxy-tokens", "rate_limited", "30000"],
                [TOKENS.path, "not", "asked", "0"],
            ],
            [row.split() for row in rows],
        )
        for row in rows:
            self.assertEqual(len(head), len(row))
        self.assertEqual(f"proxy_tokens: 429. {advice(LIMITED)}", failure)

    def test_left_out(self) -> None:
        """Records that could not be read are named, up to a number."""
        _, text = self.checked(
            Finding(
                resource=PEERS,
                inventory=Inventory(),
                records=1,
                rejected=30,
                complaints=("[1]: bad", "[2]: worse"),
            )
        )
        self.assertEqual(
            [
                "left out: peers[1]: bad",
                "left out: peers[2]: worse",
                "left out: 28 more of peers",
            ],
            text.splitlines()[3:],
        )

    def test_unreachable(self) -> None:
        """Where nothing answers one try is enough."""
        refused = UpstreamError("connect", "no connection")
        failed = Finding(resource=PEERS, inventory=Inventory(), error=refused)
        good, text = self.checked(failed, failed, unreachable="no connection")
        self.assertFalse(good)
        self.assertEqual(1, text.count("api/peers"))
        self.assertIn("reachable: no connection\n", text)

    def test_partial(self) -> None:
        """A list that may lack peers is told as such."""
        inventory = Inventory(users=(User(id="me", role="user", is_current=True),))
        finding = Finding(resource=PEERS, inventory=inventory, records=1)
        _, text = self.checked(finding, attending=attending)
        self.assertIn(
            f"\nneeds attention:\nwarning: The list of peers {PARTIAL}\n", text
        )

    def test_attention(self) -> None:
        """What needs attention comes last, with when and where to read on; where
        nothing does, or something is not known, it says so.
        """
        quiet = Inventory(peers=(), groups=(Group(id="g", name="servers"),))
        peers = Finding(resource=PEERS, inventory=quiet, records=0)
        _, text = self.checked(peers, attending=attending)
        self.assertEqual(f"needs attention: {QUIET}", text.splitlines()[-1])
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
            Finding(
                resource=TOKENS,
                inventory=quiet,
                error=UpstreamError("forbidden", "403"),
            ),
            Finding(
                resource=BY_NAME["routes"],
                inventory=replace(quiet, setup_keys=(key,)),
                error=LIMITED,
            ),
            attending=attending,
        )
        self.assertEqual(
            [
                "needs attention:",
                "warning: Setup key fleet expires in less than 1 day, and machines"
                " still enrol with it. (until 09:00 UTC)"
                f" {RUNBOOKS}#netbirdsetupkeyexpiressoon",
                "info: The exporter's token has an unknown expiry date: no alert warns"
                f" before the token expires. {RUNBOOKS}#apiexportertokennotwatched",
                "Unknown and not checked: routes.",
            ],
            text.splitlines()[-4:],
        )

    def test_much_attention(self) -> None:
        """As on the status page, no more than twenty are named; names break no line."""
        routes = tuple(
            Route(id=f"{n}", network_id=f"{n}\n\x1b[2J", network="::/0", enabled=True)
            for n in range(51)
        )
        inventory = Inventory(
            peers=(), groups=(Group(id="g", name="servers"),), routes=routes
        )
        peers = Finding(resource=PEERS, inventory=inventory, records=0)
        _, text = self.checked(peers, attending=attending)
        lines = text.splitlines()
        self.assertEqual("31 more findings are not listed.", lines[-1])
        self.assertEqual(20, sum(line.startswith("critical: ") for line in lines))
        self.assertNotIn("\x1b", text)

    def test_missing_groups(self) -> None:
        """Groups that PEER_DETAIL names and that do not exist are told."""
        inventory = Inventory(groups=(), detail=frozenset({"servers"}))
        finding = Finding(resource=PEERS, inventory=inventory, records=1)
        self.assertIn(
            "warning: Group servers does not exist, but PEER_DETAIL names it.\n",
            self.checked(finding, attending=attending)[1],
        )


class ReachedTests(SynchronousTestCase):
    def test_defect(self) -> None:
        """A defect of ours ends the trial of the connection, not the check."""

        async def reach() -> str:
            raise ZeroDivisionError

        done = Deferred.fromCoroutine(reached(reach))
        self.assertEqual("a defect: ZeroDivisionError", self.successResultOf(done))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))


class OnceTests(SynchronousTestCase):
    def test_page(self) -> None:
        """What was found is a page; what failed is told beside it."""
        out, err = io.StringIO(), io.StringIO()
        self.patch(sys, "stdout", out)
        self.patch(sys, "stderr", err)
        known = Inventory(peers=(Peer(id="p", connected=True),))
        findings = round_of(
            Finding(resource=PEERS, inventory=known, records=1),
            Finding(resource=BY_NAME["groups"], inventory=known, error=LIMITED),
            Finding(resource=TOKENS, inventory=known, error=LIMITED),
        )
        collectors = selection({"peers"}, {}).collectors
        done = Deferred.fromCoroutine(once(collectors, findings))
        self.assertTrue(self.successResultOf(done))
        self.assertIn('netbird_api_peers{connected="true"} 1\n', out.getvalue())
        self.assertEqual("groups: 429\n", err.getvalue())
