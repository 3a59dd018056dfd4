"""One read of each resource, with a scripted NetBird API."""

from prometheus_client import CollectorRegistry
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.checking.survey import ResourceCheck, evaluate, read_resources
from api_exporter.ports import ResponseBody, UpstreamError
from api_exporter.refresh.network import AccountNetwork
from api_exporter.refresh.refused_paths import MAX_REFUSED
from api_exporter.world import World
from tests.parts import CURRENT_USER, SERVICE_USER, quota, refusal
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

    async def fetch(self, path: str, patience: float) -> ResponseBody:
        self.assertEqual(60.0, patience)
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

    def test_outcomes(self) -> None:
        """Records are counted, timed and published; a failure has its reason."""
        self.seconds = 0.25
        for answer, expected, published in (
            (b'[{"id":"a"},{"id":"b"}]', ("ok", 2, 0), 2),
            (b"[]", ("ok", 0, 0), 0),
            (b'[{"id":"a"},{"id":1},{"id":"c"}]', ("ok", 2, 1), 2),
            *((body, ("decode", None, 0), None) for body in (b"<html>", b"[1]", b"")),
            (UpstreamError("auth", "why"), ("auth", None, 0), None),
            (UpstreamError("http_5xx", "why"), ("http_5xx", None, 0), None),
        ):
            self.setUp()
            self.seconds = 0.25
            found, *_ = self.surveyed(peers=answer)
            self.assertEqual("api/peers", self.asked[0])
            facts = found.outcome, found.records, found.rejected
            self.assertEqual((expected, 0.25), (facts, found.seconds), answer)
            self.assertEqual(expected[0] == "ok", found.error is None)
            peers = self.network.inventory.peers
            self.assertEqual(published, None if peers is None else len(peers), answer)
            places = [error.partition(": ")[0] for error in found.record_errors]
            self.assertEqual(["[1]"] * found.rejected, places)

    def test_joined(self) -> None:
        """A list that names a missing id is read again."""
        route = b'[{"id":"r","enabled":true,"peer_groups":["gone"]}]'
        self.surveyed(peers=b"[]", groups=b"[]", routes=route)
        self.assertEqual(2, self.asked.count("api/routes"))
        self.assertLessEqual(self.asked.count("api/groups"), 2)
        self.assertIn("netbird_api_route_routing_peers{", self.network.text().decode())

    def test_defect(self) -> None:
        """An internal error is an outcome, too, and its traceback is in the log."""
        found, *_ = self.surveyed(peers=ZeroDivisionError("oops"))
        self.assertEqual("internal", found.outcome)
        self.assertEqual("internal error, see the log", str(found.error))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_in_turn(self) -> None:
        """A failure ends nothing; later paths use earlier records. A resource whose
        path depends on unknown records is not requested. A rate limit ends the survey.
        """
        found = self.surveyed(groups=UpstreamError("auth", "401"), users=ME)
        outcomes = {one.resource.name: one.outcome for one in found}
        self.assertIn("api/users/me/tokens", self.asked)
        names = ("peers", "groups", "users", "access_tokens")
        self.assertEqual(["ok", "auth", "ok", "ok"], [outcomes[name] for name in names])
        self.setUp()
        [found_] = [x for x in self.surveyed() if x.resource.name == "access_tokens"]
        facts = found_.outcome, found_.records, found_.error
        self.assertEqual(("skipped", None, None), facts)
        self.setUp()
        found = self.surveyed(groups=UpstreamError("rate_limited", "429"))
        self.assertEqual("rate_limited", found[-1].outcome)
        self.assertEqual("api/groups", self.asked[-1])
        unchecked = evaluate(self.network, found, 0.0).unknown
        self.assertLessEqual({"groups", "routes", "users"}, {*unchecked})

    def test_refused_token(self) -> None:
        """A refused token is sent for the peers alone; the rest is no failure."""
        peers, *others = self.surveyed(peers=UpstreamError("auth", "401"))
        self.assertEqual(["api/peers"], self.asked)
        self.assertTrue(peers.has_failed)
        self.assertEqual({"held_back"}, {one.outcome for one in others})
        self.assertFalse(any(one.has_failed for one in others))
        unchecked = evaluate(self.network, [peers, *others], 0.0).unknown
        self.assertLessEqual({"peers", "groups", "routes", "users"}, {*unchecked})

    def test_many_refused(self) -> None:
        """A path is held back if nine others were refused, and is no failure."""
        for number in range(MAX_REFUSED):
            self.network.count_attempt(refusal(f"api/{number}"))
        found = self.surveyed()
        self.assertEqual([], self.asked)
        self.assertEqual({"held_back"}, {one.outcome for one in found})
        unchecked = evaluate(self.network, found, 0.0).unknown
        self.assertLessEqual({"peers", "groups", "routes", "users"}, {*unchecked})
        self.setUp()
        for number in range(MAX_REFUSED - 1):
            self.network.count_attempt(refusal(f"api/{number}"))
        self.assertNotIn("held_back", {one.outcome for one in self.surveyed()})
