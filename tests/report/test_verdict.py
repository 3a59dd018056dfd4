"""The verdict: the words for each state of the exporter and the network."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import User
from api_exporter.netbird.resource_state import NotRead, ResourceState
from api_exporter.ports import UpstreamError
from api_exporter.refresh.transitions import Unread
from api_exporter.report import verdict
from api_exporter.subjects.users import AccessToken
from api_exporter.subjects.watch import FindingList
from tests.inventories import inventory_of
from tests.web.watched import NOON, Watched

DAY = 86400.0
PEERS = "refresh of the peers"
NONE = {"critical": 0, "warning": 0, "info": 0}
BROKEN = UpstreamError("http_5xx", "500: broken")
FRESH = ResourceState(interval=30, ended_at=NOON, last_success=NOON, records=214)


def failing(reason: str = "401: the NetBird API rejects the token") -> ResourceState:
    return ResourceState(
        interval=30,
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
    return inventory_of(peers=(), users=(), access_tokens=tokens)


class VerdictTests(SynchronousTestCase):
    def verdict(
        self,
        peers: ResourceState,
        inventory: Inventory | None = None,
        now: float = NOON + 3,
        others: Mapping[str, ResourceState] = MappingProxyType({}),
    ) -> verdict.Verdict:
        found = inventory if inventory is not None else inventory_of(peers=())
        return verdict.api_verdict({"peers": peers, **others}, found, now)

    def test_states(self) -> None:
        """Fresh peers are good, overdue ones a warning, and none so far neutral."""
        for peers, now, tone, headline in (
            (FRESH, NOON + 3, "ok", "yes"),
            (ResourceState(interval=30), NOON, "unknown", f"not yet, first {PEERS}"),
            (FRESH, NOON + 50, "warning", f"late, last {PEERS} 50 seconds ago"),
        ):
            found = self.verdict(peers, now=now)
            expected = tone, f"Reading NetBird: {headline}"
            self.assertEqual(expected, (found.verdict, found.headline))
            self.assertEqual(tone == "warning", bool(found.notes))

    def test_failing(self) -> None:
        """A failure has time, reason, advice and the state of the metrics."""
        found = self.verdict(failing())
        self.assertEqual("Reading NetBird: no, since 11:55 UTC", found.headline)
        self.assertIn("Check the expiry", found.notes[0])
        never = ResourceState(interval=30, ended_at=NOON, error=failing().error)
        succeeded = "No refresh of the peers has succeeded since the start."
        for peers, inventory, words in (
            (failing(), None, "as they were at 11:54 UTC"),
            (failing(), inventory_of(), "metrics of the peers have expired"),
            (never, None, succeeded),
        ):
            _advice, note = self.verdict(peers, inventory).notes
            self.assertIn(words, note)

    def test_ended(self) -> None:
        """Expired peers are bad even without a failure."""
        old = ResourceState(interval=30, ended_at=NOON, last_success=NOON - 77)
        found = self.verdict(replace(old, withdrawn=True), inventory_of())
        self.assertEqual(("critical", "Not working"), (found.verdict, found.short))
        self.assertIn("80 seconds ago", found.headline)
        self.assertIn("metrics of the peers have expired", found.notes[0])

    def test_restricted(self) -> None:
        """Withheld peers are a warning: all else is read."""
        found = self.verdict(replace(FRESH, not_read=NotRead.RESTRICTED))
        self.assertEqual(("warning", "In part"), (found.verdict, found.short))

    def test_others(self) -> None:
        """Other failing resources are counted."""
        found = self.verdict(FRESH, others={"groups": failing(), "routes": FRESH})
        self.assertEqual("warning", found.verdict)
        self.assertEqual("Reading NetBird: in part", found.headline)
        self.assertEqual("In part", found.short)
        self.assertEqual(("1 other resource fails.",), found.notes)
        many = {f"r{n}": failing() for n in range(6)}
        *_, note = self.verdict(failing(), others=many).notes
        self.assertEqual("6 other resources fail.", note)

    def test_network(self) -> None:
        """The verdict on the network has the number of findings and the worst tone."""
        both = "4 critical, 2 warnings"
        for counts, tone, short, headline in (
            ({}, "unknown", "Unknown", "not known yet"),
            ({"critical": 0, "warning": 0}, "ok", "Working", "no known problem"),
            ({"critical": 4, "warning": 2}, "critical", "4 critical", both),
            ({"critical": 0, "warning": 1}, "warning", "1 warning", "1 warning"),
            ({"critical": 0, "info": 3}, "ok", "3 info", "3 info"),
        ):
            found = verdict.network_verdict(
                FindingList(counts={**NONE, **counts} if counts else {}), FRESH
            )
            self.assertEqual((tone, short), (found.verdict, found.short))
            self.assertEqual(f"The network: {headline}", found.headline)
        blind = verdict.network_verdict(FindingList(counts={"critical": 1}), failing())
        self.assertEqual("The network: unknown for now", blind.headline)

    def test_token_end(self) -> None:
        """The last used one of several tokens is the exporter's."""
        for tokens, days in (
            ((), None),
            (((5, None),), 5),
            (((5, 60), (6, 1), (7, None)), 6),
            (((5, None), (6, None)), None),
        ):
            made = (access_token(f"{end}", days=end, used=used) for end, used in tokens)
            expiry = verdict.token_expiry(known(*made))
            self.assertEqual(days, None if expiry is None else (expiry - NOON) / DAY)
        for seconds, words in (
            (-2 * DAY, "expired 2 days ago"),
            (0, "expired 0 seconds ago"),
            (2 * DAY, "expires in 2 days"),
        ):
            self.assertEqual(words, verdict.expiry_text(seconds))

    def test_concerns(self) -> None:
        """Findings are not repeated in the verdict on reading NetBird."""
        me = User(id="me", is_current=True, role="user")
        concerned = inventory_of(
            peers=(),
            groups=(),
            detail=frozenset({"gone"}),
            users=(me,),
            access_tokens=(access_token("a", days=1, used=1),),
        )
        found = self.verdict(FRESH, concerned)
        self.assertEqual(("ok", ()), (found.verdict, found.notes))


class WokenTests(SynchronousTestCase):
    def test_woken(self) -> None:
        """A resource that has just woken, before its first refresh, is starting."""
        watched = Watched().start()
        watched.states.record("groups", Unread(NotRead.DORMANT))
        words = verdict.state_words(watched, watched.now())
        self.assertEqual("starting", words["groups"])

    def test_waiting(self) -> None:
        """While the peers fail, lists wait; not if one was read since then."""
        watched = Watched(collectors=("peers", "groups", "routes")).start()
        now = watched.now()
        for name in (*watched.states,):
            watched.states.change(name, ended_at=NOON, last_success=now - 9_000)
        watched.states.change("peers", error=BROKEN, failing_since=now - 5_000)
        words = verdict.state_words(watched, now)
        self.assertEqual("waiting", words["groups"])
        watched.states.change("routes", last_success=now - 4_000)
        words = verdict.state_words(watched, now)
        self.assertEqual("late", words["groups"])
