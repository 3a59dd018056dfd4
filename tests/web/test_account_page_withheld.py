"""The pages while the peers are withheld: the token's user may read only a part."""

import json
from typing import Any

from twisted.internet.defer import Deferred

from api_exporter.netbird.records import Peer
from api_exporter.netbird.resources import PEERS
from api_exporter.ports import ResponseBody, UpstreamError
from tests.logbook import logbook
from tests.parts import CURRENT_USER
from tests.web.served import ServedTestCase
from tests.web.watched import Watched


def user(*, may_read: bool) -> bytes:
    modules = {"peers": {"read": may_read}}
    found = {"id": "me", "role": "user", "permissions": {"modules": modules}}
    return json.dumps(found).encode()


class LateUser(Watched):
    """The answer about the token's user waits for the test."""

    def fetch(self, path: str, _patience: float = 0) -> Deferred[ResponseBody]:
        if path != CURRENT_USER:
            return super().fetch(path)
        self.user: Deferred[ResponseBody] = Deferred()
        return self.user


class WithheldTests(ServedTestCase):
    def setUp(self) -> None:
        self.watched = watched = Watched(collectors=("peers", "groups"), lookup=True)
        watched.bodies[CURRENT_USER] = user(may_read=False)
        self.tree = watched.tree
        watched.start(60)

    @property
    def peers(self) -> tuple[Peer, ...] | None:
        return self.watched.inventory.peers

    def json(self, path: str, status: int = 200) -> Any:
        found, _, body = self.request(path)
        self.assertEqual(status, found, path)
        return json.loads(body)

    def test_ready(self) -> None:
        """The exporter is not ready, and says why and what to do."""
        found = self.json("/ready", 503)
        [reason] = found["reasons"]
        self.assertEqual((False, "restricted"), (found["ready"], reason["reason"]))
        self.assertIn("service user", reason["advice"])
        self.watched.faults["api/peers"] = UpstreamError("http_5xx", "500: broken")
        self.watched.advance(60)
        words = [reason["reason"] for reason in self.json("/ready", 503)["reasons"]]
        self.assertEqual(["http_5xx", "restricted"], words)
        self.watched.faults.clear()
        self.watched.bodies[CURRENT_USER] = user(may_read=True)
        self.watched.advance(700)
        self.assertEqual([], self.json("/ready")["reasons"])

    def test_failure_first(self) -> None:
        """The end of a failure has its line also if the peers are not published yet."""
        book = logbook(self)
        self.watched = watched = Watched(collectors=("peers", "groups"))
        watched.faults["api/peers"] = UpstreamError("http_5xx", "500: broken")
        watched.silent.add(CURRENT_USER)
        watched.start(60)
        watched.faults.clear()
        watched.advance(120)
        self.assertIsNone(self.peers)
        self.assertIn("peers can be refreshed again after", "\n".join(book.lines()))

    def test_failure_last(self) -> None:
        """Peers that were read before a failure do not end it when released."""
        watched = LateUser(collectors=("peers", "groups"))
        watched.start(10)
        watched.faults["api/peers"] = UpstreamError("http_5xx", "500: broken")
        watched.advance(30)
        self.assertIs(False, watched.states[PEERS].up)
        watched.user.callback(ResponseBody(user(may_read=True)))
        watched.advance(0)
        self.assertIs(False, watched.states[PEERS].up)
        watched.faults.clear()
        watched.advance(30)
        self.assertIs(True, watched.states[PEERS].up)

    def test_reload(self) -> None:
        """After a reload peers do not wait for permissions that were read before."""
        before, self.watched = self.watched, Watched(peers=30)
        before.bodies.clear()
        before.advance(700)
        self.successResultOf(before.stopService())
        self.watched.clock.advance(before.clock.seconds())
        self.watched.silent.add(CURRENT_USER)
        self.successResultOf(Deferred.fromCoroutine(self.watched.begin_with(before)))
        self.watched.start(2)
        known = before.inventory.peers or ()
        self.assertLess(len(known), len(self.peers or ()))

    def test_refused(self) -> None:
        """Service discovery and look-up answer 503 with the reason."""
        for path in ("/sd?port=9100", "/lookup?name=a", "/lookup.json", "/lookup.csv"):
            status, _, body = self.request(path)
            line = b"the peers are unknown: they are withheld: the token's user may not"
            self.assertEqual((503, True), (status, line in body), body)

    def test_status_json(self) -> None:
        """Numbers of peers are null; the state of the peers is `restricted`."""
        document = self.json("/status.json")
        [account] = document["accounts"]
        for found in (document["peers"], account["peers"], account["groups"]):
            self.assertIsNone(found)
        [state] = [r["state"] for r in account["resources"] if r["resource"] == "peers"]
        self.assertEqual(("restricted", "warning"), (state, account["verdict"]))
        self.assertIn("in part, without the peers", account["text"])
        self.assertEqual(["peers"], account["unchecked"])

    def test_page(self) -> None:
        """The page has a headline and one finding, also while the API fails."""
        page = self.request("/")[2].decode()
        self.assertIn("Reading NetBird: in part, without the peers", page)
        attention = page.partition('<section class="attention">')[2]
        self.assertEqual(1, attention.count("The exporter withholds peers."))
        self.assertNotIn("offline</span>", page)
        self.watched.down = UpstreamError("http_5xx", "500: broken")
        self.watched.advance(60)
        page = self.request("/")[2].decode()
        self.assertIn("The metrics of the peers are withheld.", page)
        self.watched.advance(1_000)
        page = self.request("/")[2].decode()
        self.assertIn("Reading NetBird: no", page)
