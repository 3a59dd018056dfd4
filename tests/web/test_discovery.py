"""`/sd` over HTTP, with an exporter of the simulated network."""

import json

from twisted.web.http_headers import Headers

from api_exporter.ports import UpstreamError
from api_exporter.web import discovery, peer_table
from tests.parts import DelayedCompute
from tests.web.served import Asked, ServedTestCase, header
from tests.web.watched import Watched

BROKEN = UpstreamError("http_5xx", "500: broken")
TOO_LONG = (
    "the response has more than 256 MB or 300,000 targets: request groups, or fewer"
    " ports"
)
ABSENT = UpstreamError("not_found", "404: page not found", unsupported=True)


class DiscoveryTestCase(ServedTestCase):
    def setUp(self) -> None:
        self.compute = DelayedCompute()
        self.watch(Watched(compute=self.compute))

    def watch(self, watched: Watched) -> None:
        self.watched = watched
        self.tree = watched.tree

    def answer(self, asked: Asked) -> tuple[int, Headers, bytes]:
        self.compute.go()
        return super().answer(asked)

    def listed(self, query: str = "?port=9100") -> list[str]:
        """Return the targets of a 200 response."""
        status, headers, body = self.request(f"/sd{query}")
        self.assertEqual(200, status, body)
        self.assertEqual("application/json", header(headers, "content-type"))
        return [target for entry in json.loads(body) for target in entry["targets"]]

    def refused(self, query: str = "?port=9100") -> tuple[int, str]:
        """Return the status and the line of an error response."""
        status, headers, body = self.request(f"/sd{query}")
        self.assertEqual("text/plain; charset=utf-8", header(headers, "content-type"))
        self.assertEqual("no-store", header(headers, "cache-control"))
        self.assertEqual((1, b"\n"), (len(body.splitlines()), body[-1:]))
        return status, body.decode().strip()


class AnswerTests(DiscoveryTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.watched.start()

    def test_list(self) -> None:
        """All peers are listed as JSON, which clients must not cache or sniff."""
        _, headers, body = self.request("/sd?port=9100")
        peers = self.watched.inventory.peers or ()
        self.assertEqual([f"{p.ip}:9100" for p in peers], self.listed())
        self.assert_headers(
            headers,
            content_length=str(len(body)),
            content_encoding="",
            cache_control="no-store",
            x_content_type_options="nosniff",
        )

    def test_query(self) -> None:
        """Groups, ports and addresses select the targets."""
        groups = {g.name: g for g in self.watched.inventory.groups or ()}
        routers = groups["routers"]
        members = len(routers.peers or ())
        for query, expected in (
            ("?port=1&port=2&group=routers", 2 * members),
            (f"?port=1&group={routers.id}&group=nobody", members),
            ("?port=1&group=nobody", 0),
        ):
            self.assertEqual(expected, len(self.listed(query)), query)
        for target in self.listed("?port=1&address=ipv6"):
            self.assertRegex(target, r"^\[fd00:[0-9a-f:]+\]:1$")

    def test_wrong(self) -> None:
        """An invalid query is 400, with the allowed parameters."""
        line = "'gruop' is not allowed: the parameters are port, group, address"
        self.assertEqual((400, line), self.refused("?port=1&gruop=a"))
        self.assertEqual([], self.compute.waiting)

    def test_changed_meanwhile(self) -> None:
        """A response shows one instant, even if peers are withdrawn meanwhile."""
        asked = self.ask("/sd?port=9100")
        pipeline = self.watched.pipeline
        pipeline.inventory = pipeline.inventory.replacing("groups", None)
        status, _, body = self.answer(asked)
        self.assertEqual((200, 20), (status, len(json.loads(body))))
        self.assertEqual(503, self.refused()[0])

    def test_too_long(self) -> None:
        """A response above the limit of bytes is 400, with advice."""
        length = len(self.request("/sd?port=9100")[2])
        self.patch(peer_table, "MAX_RESPONSE_BYTES", length)
        self.assertEqual(20, len(self.listed()))
        self.patch(peer_table, "MAX_RESPONSE_BYTES", length - 1)
        self.assertEqual((400, TOO_LONG), self.refused())

    def test_too_many(self) -> None:
        """A response with too many targets is refused before it is computed."""
        peers = len(self.watched.inventory.peers or ())
        ports = "&".join(f"port={port}" for port in range(1, 17))
        self.patch(peer_table, "MAX_TARGETS", 16 * peers - 1)
        self.assertEqual((400, TOO_LONG), self.refused(f"?{ports}"))
        self.assertEqual([], self.compute.waiting)
        self.patch(peer_table, "MAX_TARGETS", 16 * peers)
        for query in (f"?{ports}", f"?group=servers&{ports}"):
            self.assertEqual(200, self.request(f"/sd{query}")[0])

    def test_defect(self) -> None:
        """A bug is logged and is 500; the next request succeeds."""
        self.patch(discovery, "target_list", lambda *_: 1 / 0)
        self.assertEqual((500, "the exporter has a bug: see its log"), self.refused())
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.patch(discovery, "target_list", peer_table.target_list)
        self.assertEqual(20, len(self.listed()))


class UnknownTests(DiscoveryTestCase):
    def test_no_list(self) -> None:
        """Without the peers or the groups the status is 503."""
        not_yet = "the peers are unknown: the next refresh has not finished"
        self.assertEqual((503, not_yet), self.refused())
        for fault, words in (
            (BROKEN, "500: broken"),
            (ABSENT, "the NetBird API does not offer them to this token"),
        ):
            self.watch(Watched(compute=self.compute))
            self.watched.faults["api/groups"] = fault
            self.watched.start()
            self.assertEqual((503, f"the groups are unknown: {words}"), self.refused())
        self.watched.faults.clear()
        self.watched.advance(3700)
        self.assertEqual(19, len(self.listed()))

    def test_withdrawn(self) -> None:
        """Expired lists are not listed, even if only one of two has expired."""
        for name, age in (("peers", 300), ("groups", 900)):
            watched = Watched(compute=self.compute).start()
            self.watch(watched)
            self.assertEqual(20, len(self.listed()))
            watched.faults[f"api/{name}"] = BROKEN
            watched.advance(age - 60)
            self.assertGreater(len(self.listed()), 10)
            watched.advance(100)
            status, line = self.refused()
            self.assertEqual(503, status)
            words = rf"the {name} are unknown: last refresh \d+ s ago; 500: broken"
            self.assertRegex(line, f"^{words}$")
            watched.faults.clear()
            watched.advance(900)
            self.assertGreater(len(self.listed()), 10)

    def test_no_accounts(self) -> None:
        """The account id is a label once it is known, but it is not required."""
        self.watched.faults["api/accounts"] = BROKEN
        self.watched.start()
        for known in (False, True):
            _, _, body = self.request("/sd?port=1")
            self.assertEqual(known, b"__meta_netbird_account_id" in body)
            self.watched.faults.clear()
            self.watched.advance(60)
        self.watched.bodies["api/peers"] = b"[]"
        self.watched.advance(60)
        self.assertEqual([], self.listed())
