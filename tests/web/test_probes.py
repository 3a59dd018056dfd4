"""`/health`, and `/ready`: 200 while the peers are fresh, else 503 with the reasons."""

import json
from typing import Any

from api_exporter.ports import UpstreamError
from api_exporter.refresh.transitions import Failed
from api_exporter.upstream.advice import advice
from tests.parts import CURRENT_USER
from tests.web.served import ServedTestCase
from tests.web.watched import URL, VERSION, Watched

UNKNOWN = {
    "up": None,
    "supported": None,
    "last_success_timestamp_seconds": None,
    "records": None,
    "last_error_reason": None,
}
"""A resource before its first refresh."""

BROKEN = UpstreamError("http_5xx", "500: broken")


class ReadyTests(ServedTestCase):
    def setUp(self) -> None:
        self.watched = Watched()
        self.tree = self.watched.tree

    def ready(self) -> tuple[int, list[str]]:
        """Return the status and one word for each reason."""
        status, _, body = self.request("/ready")
        answer = json.loads(body)
        self.assertEqual(status == 200, answer["ready"])
        return status, [reason["reason"] for reason in answer["reasons"]]

    def test_fresh(self) -> None:
        """With fresh peers the exporter is ready, even if other resources fail."""
        self.assertEqual((503, ["never_read"]), self.ready())
        self.watched.faults["api/groups"] = BROKEN
        self.watched.start()
        self.assertEqual((200, []), self.ready())

    def test_failing(self) -> None:
        """The last refresh of the peers decides; a failure has error and advice."""
        self.watched.start()
        self.watched.faults["api/peers"] = BROKEN
        self.watched.advance(30)
        self.assertEqual((503, ["http_5xx"]), self.ready())
        [reason] = json.loads(self.request("/ready")[2])["reasons"]
        words = reason["message"], reason["advice"]
        self.assertEqual(("500: broken", advice(BROKEN)), words)
        self.watched.advance(60)
        self.assertEqual((503, ["http_5xx", "too_old"]), self.ready())
        self.watched.faults.clear()
        self.watched.advance(30)
        self.assertEqual((200, []), self.ready())

    def test_late(self) -> None:
        """The exporter stays ready while a refresh is at most one interval late."""
        self.watched.start()
        self.watched.silent.add("api/peers")
        self.watched.advance(40)
        self.assertEqual((200, []), self.ready())
        self.watched.advance(20)
        self.assertEqual((503, ["too_old"]), self.ready())

    def test_held(self) -> None:
        """Peers that wait for the token's user are not read yet, on all pages."""
        self.watched.silent.add(CURRENT_USER)
        self.watched.start(3)
        self.assertEqual((503, ["never_read"]), self.ready())
        resources = json.loads(self.request("/health")[2])["resources"]
        self.assertEqual(UNKNOWN, resources["peers"])
        self.assertNotIn(b"netbird_api_up ", self.request("/metrics")[2])

    def test_withdrawn(self) -> None:
        """Peers whose metrics have expired are not reliable, however recent."""
        self.watched.start()
        self.watched.states.change("peers", withdrawn=True)
        self.assertEqual((503, ["too_old"]), self.ready())


class GroupTests(ServedTestCase):
    def ready(self, query: str) -> tuple[int, Any]:
        status, _, body = self.request(f"/ready?{query}")
        return status, json.loads(body)

    def setUp(self) -> None:
        self.watched = Watched(important_groups=("servers", "gone"))
        self.tree = self.watched.tree

    def test_group(self) -> None:
        """A group is ready while all its peers are connected; the counts are there."""
        self.assertEqual(503, self.ready("group=servers")[0])
        members = [{"id": "p1"}, {"id": "p2"}]
        group = [{"id": "g", "name": "servers", "peers": members}]
        self.watched.bodies["api/groups"] = json.dumps(group).encode()
        for connected, expected in ((True, 200), (False, 503)):
            peers = [
                {"id": "p1", "connected": True},
                {"id": "p2", "connected": connected},
            ]
            self.watched.bodies["api/peers"] = json.dumps(peers).encode()
            if connected:
                self.watched.start()
            else:
                self.watched.advance(30)
            for name in ("servers", "g"):
                status, found = self.ready(f"group={name}")
                self.assertEqual((expected, connected), (status, found["ready"]))
                [numbers] = found["groups"]
                counts = [numbers[key] for key in ("total", "connected", "offline")]
                self.assertEqual([2, 1 + connected, 1 - connected], counts)
        [reason] = self.ready("group=g")[1]["reasons"]
        self.assertEqual("'g': 1 of 2 peers offline", reason["message"])
        self.assertEqual(200, self.request("/ready")[0])

    def test_once(self) -> None:
        """A group that the settings name twice, by name and by id, is there once."""
        self.watched = Watched(important_groups=("servers", "g"))
        self.tree = self.watched.tree
        group = [{"id": "g", "name": "servers", "peers": [{"id": "p"}]}]
        self.watched.bodies["api/groups"] = json.dumps(group).encode()
        self.watched.bodies["api/peers"] = b'[{"id":"p"}]'
        self.watched.start()
        _, found = self.ready("group=g")
        self.assertEqual((1, 1), (len(found["groups"]), len(found["reasons"])))
        [account] = json.loads(self.request("/status.json")[2])["accounts"]
        self.assertEqual(["servers"], [group["name"] for group in account["groups"]])

    def test_unknown(self) -> None:
        """An unknown group is 503, and named without characters of a terminal."""
        self.watched.start()
        for name in ("gone", "other", "%1b[31m"):
            status, found = self.ready(f"group={name}")
            self.assertEqual((503, []), (status, found["groups"]))
            self.assertEqual("group_unknown", found["reasons"][0]["reason"])
            self.assertNotIn("\x1b", found["reasons"][0]["message"])


class HealthTests(ServedTestCase):
    def setUp(self) -> None:
        self.watched = Watched(collectors=["peers", "groups"])
        self.tree = self.watched.tree

    def test_health_at_the_start(self) -> None:
        """The process is healthy before the first refresh."""
        self.watched.clock.advance(12.3456)
        status, headers, body = self.request("/health")
        self.assertEqual(200, status)
        self.assert_headers(headers, content_type="application/json")
        names = ("peers", "current_user", "accounts", "groups")
        found = {
            "status": "ok",
            "version": VERSION,
            "uptime_seconds": 12.346,
            "upstream": {"url": URL, "reachable": None},
            "resources": dict.fromkeys(names, UNKNOWN),
        }
        self.assertEqual(json.dumps(found, indent=2) + "\n", body.decode())

    def test_health(self) -> None:
        """Every resource shows the result of its last refresh."""
        states = self.watched.states
        states.change("peers", ended_at=1000.5, last_success=1000.5)
        error = UpstreamError("forbidden", "403: permission denied")
        states.record("groups", Failed(error, 1, 1001))
        error = UpstreamError("forbidden", "403", request_id="dc1djo5qmd2oq13d8pj0")
        states.record("accounts", Failed(error, 1, 1001))
        resources = json.loads(self.request("/health")[2])["resources"]
        success: dict[str, object] = {"up": True, "supported": True, "records": 0}
        success["last_success_timestamp_seconds"] = 1000.5
        failure: dict[str, object] = {"up": False, "last_error_reason": "forbidden"}
        self.assertEqual(UNKNOWN | success, resources["peers"])
        self.assertEqual(UNKNOWN | failure, resources["groups"])
        failure["last_error_request_id"] = "dc1djo5qmd2oq13d8pj0"
        self.assertEqual(UNKNOWN | failure, resources["accounts"])
