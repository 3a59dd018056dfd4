"""The verdict: the words for each state of the exporter and the network."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.watch import FindingList
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import AccessToken, User
from api_exporter.ports import UpstreamError
from api_exporter.telemetry.freshness import Freshness
from api_exporter.web.status import verdict
from tests.web.watched import NOON

DAY = 86400.0
FRESH = Freshness(period=30, ended_at=NOON, last_success=NOON, records=214)


def failing(reason: str = "401: the NetBird API rejects the token") -> Freshness:
    return Freshness(
        period=30,
        ended_at=NOON,
        error=UpstreamError("auth", reason),
        failing_since=NOON - 300,
        last_success=NOON - 330,
        records=214,
    )


def access_token(name: str, *, days: float, used: float | None) -> AccessToken:
    """Return a token that expires after some days and was used some seconds ago."""
    return AccessToken(
        id=name,
        expiration_date=datetime.fromtimestamp(NOON + days * DAY, UTC),
        last_used=None if used is None else datetime.fromtimestamp(NOON - used, UTC),
    )


def known(*tokens: AccessToken) -> Inventory:
    return Inventory(peers=(), users=(), access_tokens=tokens)


class VerdictTests(SynchronousTestCase):
    def verdict(
        self,
        peers: Freshness,
        inventory: Inventory | None = None,
        now: float = NOON + 3,
        others: Mapping[str, Freshness] = MappingProxyType({}),
    ) -> verdict.Verdict:
        found = inventory if inventory is not None else Inventory(peers=())
        return verdict.reading_verdict({"peers": peers, **others}, found, now)

    def test_working(self) -> None:
        """With fresh peers the verdict is good."""
        found = self.verdict(FRESH)
        self.assertEqual("Reading NetBird: yes, 3 seconds ago", found.headline)
        self.assertEqual(("good", "", ()), (found.tone, found.why, found.notes))

    def test_starting(self) -> None:
        """Before the first refresh the verdict is neutral."""
        found = self.verdict(Freshness(period=30))
        self.assertEqual(
            ("none", "Reading NetBird: not yet, first refresh of the peers"),
            (found.tone, found.headline),
        )

    def test_late(self) -> None:
        """Overdue peers are a warning."""
        found = self.verdict(FRESH, now=NOON + 50)
        self.assertEqual(
            "Reading NetBird: late, last refresh of the peers 50 seconds ago",
            found.headline,
        )
        self.assertEqual("warn", found.tone)

    def test_failing(self) -> None:
        """A failure has its time, reason, advice and the state of the metrics."""
        found = self.verdict(failing())
        self.assertEqual("Reading NetBird: no, since 11:55 UTC", found.headline)
        self.assertEqual("401: the NetBird API rejects the token", found.why)
        advice, note = found.notes
        self.assertIn("Check the expiry", advice)
        self.assertIn("as they were at 11:54 UTC", note)

    def test_withdrawn(self) -> None:
        """A failure whose metrics have expired says so."""
        *_, note = self.verdict(failing(), Inventory()).notes
        self.assertIn("metrics of the peers have expired", note)

    def test_ended(self) -> None:
        """Expired peers are bad even without a failure."""
        found = self.verdict(
            Freshness(period=30, ended_at=NOON, last_success=NOON - 77, withdrawn=True),
            Inventory(),
        )
        self.assertEqual(("bad", "Not working"), (found.tone, found.short))
        self.assertIn("80 seconds ago", found.headline)
        self.assertIn("metrics of the peers have expired", found.notes[0])

    def test_never_read(self) -> None:
        """A failure without an earlier success says so."""
        never = Freshness(period=30, ended_at=NOON, error=failing().error)
        *_, note = self.verdict(never).notes
        self.assertEqual("No refresh of the peers has succeeded since the start.", note)

    def test_others(self) -> None:
        """Other failing resources are named, or counted if they are many."""
        found = self.verdict(FRESH, others={"groups": failing(), "routes": FRESH})
        self.assertEqual("warn", found.tone)
        self.assertEqual("Reading NetBird: in part, 3 seconds ago", found.headline)
        self.assertEqual(("Failing resources (reasons below): groups.",), found.notes)
        many = {f"r{n}": failing() for n in range(6)}
        self.assertEqual(
            ("6 other resources fail too.",), self.verdict(FRESH, others=many).notes
        )
        *_, note = self.verdict(failing(), others={"groups": failing()}).notes
        self.assertEqual("1 other resource fails too.", note)

    def test_network(self) -> None:
        """The verdict on the network has the number of findings and the worst tone."""
        for counts, tone, short, headline in (
            ({}, "none", "Unknown", "not known yet"),
            ({"critical": 0, "warning": 0}, "good", "Working", "no known problem"),
            (
                {"critical": 4, "warning": 2},
                "bad",
                "4 critical",
                "4 critical, 2 warnings",
            ),
            ({"critical": 0, "warning": 1}, "warn", "1 warning", "1 warning"),
            ({"critical": 0, "info": 3}, "good", "3 info", "3 info"),
        ):
            found = verdict.network_verdict(FindingList(counts=counts), FRESH)
            self.assertEqual((tone, short), (found.tone, found.short))
            self.assertEqual(f"The network: {headline}", found.headline)
        blind = verdict.network_verdict(FindingList(counts={"critical": 1}), failing())
        self.assertEqual("The network: unknown for now", blind.headline)

    def test_token_end(self) -> None:
        """The last used one of several tokens is the exporter's."""
        for tokens, days in (
            ((), None),
            ((access_token("a", days=5, used=None),), 5),
            (
                (
                    access_token("a", days=5, used=60),
                    access_token("b", days=6, used=1),
                    access_token("c", days=7, used=None),
                ),
                6,
            ),
            (
                (
                    access_token("a", days=5, used=None),
                    access_token("b", days=6, used=None),
                ),
                None,
            ),
        ):
            end = verdict.token_expiry(known(*tokens))
            self.assertEqual(days, None if end is None else (end - NOON) / DAY)

    def test_concerns(self) -> None:
        """Findings are not repeated in the verdict on reading NetBird."""
        token = access_token("a", days=1, used=1)
        concerned = Inventory(
            peers=(),
            groups=(),
            detail=frozenset({"gone"}),
            users=(User(id="me", is_current=True, role="user"),),
            access_tokens=(token,),
        )
        found = self.verdict(FRESH, concerned)
        self.assertEqual(("good", ()), (found.tone, found.notes))

    def test_token_ends(self) -> None:
        self.assertEqual(
            "expired 2 days ago", verdict.expiry_text(NOON - 2 * DAY, NOON)
        )

    def test_token(self) -> None:
        """The state of the token follows from the refreshes of the peers."""
        slow = UpstreamError("timeout", "no response within 30 s")
        denied = UpstreamError("forbidden", "403: permission denied")
        for standing, words in (
            (Freshness(period=30), "not known yet"),
            (FRESH, "accepted"),
            (failing(), "refused"),
            (Freshness(period=30, error=denied), "accepted, but may not read peers"),
            (
                Freshness(period=30, error=slow, last_success=NOON),
                "accepted at the last success",
            ),
            (Freshness(period=30, error=slow), "not known yet"),
        ):
            self.assertEqual(words, verdict.token_state(standing)[1])
