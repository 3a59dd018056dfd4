"""One round in front of somebody, against a scripted upstream."""

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.checking.survey import Finding, survey, visit
from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import User
from api_exporter.netbird.resources import BY_NAME
from api_exporter.ports import Reason, UpstreamError

PEERS = BY_NAME["peers"]
TOKENS = BY_NAME["access_tokens"]


def users(**fields: object) -> Inventory:
    """An inventory in which the token belongs to a user."""
    other = User(id="other", role="user")
    ours = User(id="ours", is_current=True, **fields)  # type: ignore[arg-type]
    return Inventory(users=(other, ours))


class VisitTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.asked: list[str] = []
        self.answer: bytes | Exception = b"[]"
        self.seconds = 0.0

    async def fetch(self, path: str, _patience: float) -> bytes:
        self.asked.append(path)
        self.clock.advance(self.seconds)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def visit(self, name: str = "peers", inventory: Inventory | None = None) -> Finding:
        visited = Deferred.fromCoroutine(
            visit(
                BY_NAME[name],
                inventory or Inventory(),
                fetch=self.fetch,
                clock=self.clock,
            )
        )
        self.clock.pump([0] * 10)
        found = self.successResultOf(visited)
        self.assertEqual([], self.clock.getDelayedCalls())
        assert isinstance(found, Finding)
        return found

    def test_good(self) -> None:
        """Records are counted, timed and kept for those that come after."""
        self.answer, self.seconds = b'[{"id":"a"},{"id":"b"}]', 0.25
        found = self.visit()
        self.assertEqual(["api/peers"], self.asked)
        self.assertEqual(("ok", 2, 0.25), (found.outcome, found.records, found.seconds))
        self.assertIsNone(found.error)
        self.assertEqual(["a", "b"], [peer.id for peer in found.inventory.peers or ()])

    def test_empty(self) -> None:
        """No records at all are an outcome as good as any."""
        found = self.visit()
        self.assertEqual(("ok", 0, 0), (found.outcome, found.records, found.rejected))
        self.assertEqual((), found.inventory.peers)

    def test_failed(self) -> None:
        """A failure is named by its reason, and nothing is known afterwards."""
        reasons: tuple[Reason, ...] = ("auth", "timeout", "rate_limited", "http_5xx")
        for reason in reasons:
            self.answer, self.seconds = UpstreamError(reason, "why"), 1.5
            found = self.visit()
            self.assertIs(self.answer, found.error)
            self.assertEqual(
                (reason, None, 1.5), (found.outcome, found.records, found.seconds)
            )
            self.assertIsNone(found.inventory.peers)

    def test_undecodable(self) -> None:
        """A body that cannot be read is a failure with its own reason."""
        for body in (b"<html>", b'{"a":1}', b"[1]", b""):
            self.answer = body
            found = self.visit()
            assert found.error is not None
            self.assertEqual(("decode", "decode"), (found.outcome, found.error.reason))

    def test_defect(self) -> None:
        """A defect of ours is an outcome, too, and its traceback is in the log."""
        self.answer = ZeroDivisionError("oops")
        found = self.visit()
        self.assertEqual("internal", found.outcome)
        self.assertEqual("a defect: ZeroDivisionError", str(found.error))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_null(self) -> None:
        """`null` is no list of peers or groups; elsewhere it is an empty one."""
        self.answer = b"null"
        for name in ("peers", "groups"):
            self.assertEqual("decode", self.visit(name).outcome)
        found = self.visit("routes")
        self.assertEqual(("ok", 0), (found.outcome, found.records))

    def test_rejected(self) -> None:
        """Records that are left out are told with their places."""
        self.answer = b'[{"id":"a"},{"id":1},{"id":"c"}]'
        found = self.visit()
        self.assertEqual(("ok", 2, 1), (found.outcome, found.records, found.rejected))
        [complaint] = found.complaints
        self.assertTrue(complaint.startswith("[1]: "), complaint)

    def test_not_asked(self) -> None:
        """Where the path is made of what is unknown, nothing is asked."""
        found = self.visit("access_tokens")
        self.assertEqual([], self.asked)
        self.assertEqual(
            ("not asked", None, None), (found.outcome, found.records, found.error)
        )
        found = self.visit("access_tokens", users(is_service_user=True))
        self.assertEqual(["api/users/ours/tokens"], self.asked)
        self.assertEqual(("ok", 0), (found.outcome, found.records))


class SurveyTests(SynchronousTestCase):
    def surveyed(self, **answers: bytes | UpstreamError) -> list[tuple[str, str]]:
        """Paths and outcomes of a round; what has no answer is an empty list."""

        async def fetch(path: str, _patience: float) -> bytes:
            answer = answers.get(path.removeprefix("api/"), b"[]")
            if isinstance(answer, UpstreamError):
                raise answer
            return answer

        async def all_of_them() -> list[tuple[str, str]]:
            round_ = survey(
                [PEERS, BY_NAME["groups"], BY_NAME["users"], TOKENS],
                Inventory(),
                fetch=fetch,
                clock=clock,
            )
            return [(f.resource.name, f.outcome) async for f in round_]

        clock = Clock()
        done = Deferred.fromCoroutine(all_of_them())
        clock.pump([0] * 100)
        return self.successResultOf(done)

    def test_in_turn(self) -> None:
        """A failure ends nothing; what one answer tells is known to the next."""
        self.assertEqual(
            [
                ("peers", "ok"),
                ("groups", "auth"),
                ("users", "ok"),
                ("access_tokens", "ok"),
            ],
            self.surveyed(
                groups=UpstreamError("auth", "401"),
                users=b'[{"id":"me","is_current":true}]',
            ),
        )

    def test_rate_limited(self) -> None:
        """An upstream that asks for a pause gets it."""
        limited = UpstreamError("rate_limited", "429")
        self.assertEqual(
            [("peers", "ok"), ("groups", "rate_limited")],
            self.surveyed(groups=limited),
        )
