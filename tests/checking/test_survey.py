"""One read of each resource, with a scripted NetBird API."""

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.checking.survey import ResourceCheck, read_resources
from api_exporter.ports import Reason, ResponseBody, UpstreamError
from api_exporter.refresh.network import AccountNetwork
from api_exporter.world import World
from tests.parts import CURRENT_USER, SERVICE_USER, quota
from tests.roles import permissions

ME = b'[{"id":"other","role":"user"},{"id":"me","is_current":true}]'


class SurveyTests(SynchronousTestCase):
    """The survey of the collectors of peers, routes and users."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.asked: list[str] = []
        self.answers: dict[str, bytes | Exception] = {}
        self.seconds = 0.0
        self.network = AccountNetwork(
            fetch=self.fetch,
            quota=quota(("peers", "routes", "users")),
            world=World(self.clock, self.clock.seconds, lambda: 0.5),
            registry=CollectorRegistry(),
        )

    async def fetch(self, path: str, _patience: float) -> ResponseBody:
        self.asked.append(path)
        self.clock.advance(self.seconds)
        default = SERVICE_USER if path == CURRENT_USER else b"[]"
        answer = self.answers.get(path.removeprefix("api/"), default)
        if isinstance(answer, Exception):
            raise answer
        return ResponseBody(answer)

    def test_restricted(self) -> None:
        """A resource that the token's user may read only in part is not requested."""
        found = self.surveyed(**{"users/current": permissions("user")})
        outcomes = {check.resource.name: check.outcome for check in found}
        self.assertEqual("ok", outcomes["current_user"])
        self.assertEqual("restricted", outcomes["routes"])
        self.assertNotIn("api/routes", self.asked)
        [routes] = [check for check in found if check.resource.name == "routes"]
        self.assertEqual("restricted", routes.freshness(0.0).state(0.0))

    def surveyed(self, **answers: bytes | Exception) -> list[ResourceCheck]:
        """Return the result of each resource."""

        async def all_of_them() -> list[ResourceCheck]:
            return [check async for check in read_resources(self.network, self.clock)]

        self.answers |= answers
        done = Deferred.fromCoroutine(all_of_them())
        self.clock.pump([0] * 200)
        found = self.successResultOf(done)
        self.assertEqual([], self.clock.getDelayedCalls())
        return found

    def peers(self, answer: bytes | Exception) -> ResourceCheck:
        """Return the result of the peers."""
        return self.surveyed(peers=answer)[0]

    def test_good(self) -> None:
        """Records are counted, timed and published."""
        self.seconds = 0.25
        found = self.peers(b'[{"id":"a"},{"id":"b"}]')
        self.assertEqual("api/peers", self.asked[0])
        self.assertEqual(("ok", 2, 0.25), (found.outcome, found.records, found.seconds))
        self.assertIsNone(found.error)
        self.assertEqual(["a", "b"], [p.id for p in self.network.inventory.peers or ()])

    def test_empty(self) -> None:
        """An empty list is a success."""
        found = self.peers(b"[]")
        self.assertEqual(("ok", 0, 0), (found.outcome, found.records, found.rejected))
        self.assertEqual((), self.network.inventory.peers)

    def test_joined(self) -> None:
        """A list that names a missing id is read again."""
        route = b'[{"id":"r","enabled":true,"peer_groups":["gone"]}]'
        self.surveyed(peers=b"[]", groups=b"[]", routes=route)
        self.assertEqual(2, self.asked.count("api/routes"))
        self.assertLessEqual(self.asked.count("api/groups"), 2)
        self.assertIn("netbird_api_route_routing_peers{", self.network.text().decode())

    def test_failed(self) -> None:
        """A failure is reported by its reason, and no records are known."""
        reasons: tuple[Reason, ...] = ("auth", "timeout", "rate_limited", "http_5xx")
        self.seconds = 1.5
        for reason in reasons:
            error = UpstreamError(reason, "why")
            found = self.peers(error)
            self.assertIs(error, found.error)
            self.assertEqual(
                (reason, None, 1.5), (found.outcome, found.records, found.seconds)
            )
            self.assertIsNone(self.network.inventory.peers)

    def test_undecodable(self) -> None:
        """An undecodable body is a failure with its own reason."""
        for body in (b"<html>", b'{"a":1}', b"[1]", b""):
            found = self.peers(body)
            assert found.error is not None
            self.assertEqual(("decode", "decode"), (found.outcome, found.error.reason))

    def test_defect(self) -> None:
        """An internal error is an outcome, too, and its traceback is in the log."""
        found = self.peers(ZeroDivisionError("oops"))
        self.assertEqual("internal", found.outcome)
        self.assertEqual("internal error: ZeroDivisionError", str(found.error))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_null(self) -> None:
        """`null` is no list of peers or groups; elsewhere it is an empty one."""
        found = self.surveyed(peers=b"null", groups=b"null", routes=b"null")
        outcomes = {one.resource.name: (one.outcome, one.records) for one in found}
        self.assertEqual(("decode", None), outcomes["peers"])
        self.assertEqual(("decode", None), outcomes["groups"])
        self.assertEqual(("ok", 0), outcomes["routes"])

    def test_rejected(self) -> None:
        """Invalid records are reported with their places."""
        found = self.peers(b'[{"id":"a"},{"id":1},{"id":"c"}]')
        self.assertEqual(("ok", 2, 1), (found.outcome, found.records, found.rejected))
        [complaint] = found.record_errors
        self.assertTrue(complaint.startswith("[1]: "), complaint)

    def own_tokens(self, found: list[ResourceCheck]) -> ResourceCheck:
        [tokens] = [one for one in found if one.resource.name == "access_tokens"]
        return tokens

    def test_not_asked(self) -> None:
        """A resource whose path depends on unknown records is not requested."""
        found = self.own_tokens(self.surveyed())
        self.assertEqual(
            ("skipped", None, None), (found.outcome, found.records, found.error)
        )
        found = self.own_tokens(self.surveyed(users=ME))
        self.assertIn("api/users/me/tokens", self.asked)
        self.assertEqual(("ok", 0), (found.outcome, found.records))

    def test_in_turn(self) -> None:
        """A failure ends nothing; later paths use earlier records."""
        found = self.surveyed(groups=UpstreamError("auth", "401"), users=ME)
        outcomes = {one.resource.name: one.outcome for one in found}
        self.assertEqual(
            ("ok", "auth", "ok", "ok"),
            tuple(outcomes[n] for n in ("peers", "groups", "users", "access_tokens")),
        )

    def test_rate_limited(self) -> None:
        """A rate limit of the NetBird API ends the survey."""
        found = self.surveyed(groups=UpstreamError("rate_limited", "429"))
        self.assertEqual("rate_limited", found[-1].outcome)
        self.assertEqual("api/groups", self.asked[-1])
