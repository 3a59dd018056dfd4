"""`/sd` over HTTP, with an exporter of the simulated network."""

import json

from treq import content
from treq.testing import RequestTraversalAgent
from twisted.internet.defer import Deferred
from twisted.web.client import ResponseNeverReceived
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse

from api_exporter.exposition.pages import Payload
from api_exporter.ports import UpstreamError
from api_exporter.serving.site import BoundedSite
from api_exporter.web import context
from api_exporter.web.discovery import page, targets
from tests.parts import DelayedCompute
from tests.web.connection import Connection
from tests.web.served import ServedTestCase, header
from tests.web.watched import Watched

FULL = "too many responses are pending: retry later"
BROKEN = UpstreamError("http_5xx", "500: broken")
TOO_LONG = (
    "the response has more than 256 MB or 300,000 targets: request groups, or fewer"
    " ports"
)
ABSENT = UpstreamError("not_found", "404: page not found", unsupported=True)


class PendingRequest:
    """A request whose response may come later."""

    def __init__(self, watched: Watched, path: str, method: str = "GET") -> None:
        self._watched = watched
        self._agent = RequestTraversalAgent(watched.tree)
        url = f"http://exporter.example{path}".encode()
        self.response: Deferred[IResponse] = self._agent.request(method.encode(), url)
        self._agent.flush()

    def flush(self, times: int = 1) -> None:
        for _ in range(times):
            self._watched.clock.advance(0)
            self._agent.flush()

    def cancel(self) -> None:
        self.response.cancel()
        self._agent.flush()


class DiscoveryTestCase(ServedTestCase):
    def setUp(self) -> None:
        self.compute = DelayedCompute()
        self.watched = Watched(compute=self.compute)
        self.tree = self.watched.tree

    def finished(self, request: PendingRequest) -> tuple[int, Headers, bytes]:
        self.compute.go()
        request.flush()
        response = self.successResultOf(request.response)
        body = content(response)
        request.flush()
        headers = response.headers.copy()
        if isinstance(response.length, int):
            headers.setRawHeaders("content-length", [str(response.length)])
        return response.code, headers, self.successResultOf(body)

    def ask(self, query: str, method: str = "GET") -> tuple[int, Headers, bytes]:
        return self.finished(PendingRequest(self.watched, f"/sd{query}", method))

    def listed(self, query: str = "?port=9100") -> list[str]:
        """Return the targets of a 200 response."""
        status, headers, body = self.ask(query)
        self.assertEqual(200, status, body)
        self.assertEqual("application/json", header(headers, "content-type"))
        return [target for entry in json.loads(body) for target in entry["targets"]]

    def refused(self, query: str = "?port=9100") -> tuple[int, str]:
        """Return the status and the line of an error response."""
        status, headers, body = self.ask(query)
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
        _, headers, body = self.ask("?port=9100")
        peers = self.watched.inventory.peers or ()
        self.assertEqual([f"{p.ip}:9100" for p in peers], self.listed())
        self.assertEqual(str(len(body)), header(headers, "content-length"))
        self.assertEqual("no-store", header(headers, "cache-control"))
        self.assertEqual("nosniff", header(headers, "x-content-type-options"))
        self.assertEqual("", header(headers, "content-encoding"))

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
        """An invalid query is 400, with a valid example or the allowed parameters."""
        for query, line in (
            (
                "",
                "port is missing: request /sd?port=9100 or another port of the targets",
            ),
            (
                "?port=1&account=a",
                "'account' is not allowed: the parameters are port, group, address",
            ),
        ):
            self.assertEqual((400, line), self.refused(query))
        self.assertEqual([], self.compute.waiting)

    def test_head(self) -> None:
        """HEAD is GET without the body, for all responses."""
        for query, status in (("?port=9100", 200), ("?port=9100", 200), ("", 400)):
            expected = self.ask(query)[1]
            answered, headers, nothing = self.ask(query, "HEAD")
            self.assertEqual((status, b""), (answered, nothing))
            for name in ("content-type", "cache-control"):
                self.assertEqual(header(expected, name), header(headers, name), name)

    def test_first_head(self) -> None:
        """HEAD has the length of the response."""
        connection = Connection(BoundedSite(self.tree, self.watched.clock))
        connection.send(b"HEAD /sd?port=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(b"", connection.heard())
        self.compute.go()
        head, _, nothing = connection.heard().partition(b"\r\n\r\n")
        _, _, body = self.ask("?port=1")
        self.assertIn(b"\r\nContent-Length: %d\r\n" % len(body), head + b"\r\n")
        self.assertEqual(b"", nothing)

    def test_other_methods(self) -> None:
        """Methods other than GET and HEAD are refused."""
        for method in ("POST", "PUT", "DELETE"):
            self.assertEqual(405, self.request("/sd?port=1", method)[0])

    def test_below(self) -> None:
        for path in ("/sd/", "/sd/x"):
            self.assertEqual(404, self.request(path)[0])

    def test_disconnected(self) -> None:
        """A client that disconnects during the computation leaves nothing behind."""
        for _ in range(2 * context.MAX_PENDING):
            request = PendingRequest(self.watched, "/sd?port=9100")
            request.cancel()
            self.failureResultOf(request.response, ResponseNeverReceived)
        self.compute.go()
        self.assertEqual(20, len(self.listed()))

    def test_many(self) -> None:
        """Above the limit of waiting responses the status is 503."""
        waiting = [
            PendingRequest(self.watched, "/sd?port=9100")
            for _ in range(context.MAX_PENDING)
        ]
        self.assertEqual((503, FULL), self.refused())
        for request in waiting:
            self.assertEqual(200, self.finished(request)[0])
        self.assertEqual(20, len(self.listed()))

    def test_changed_meanwhile(self) -> None:
        """A response shows one instant, even if peers are withdrawn meanwhile."""
        request = PendingRequest(self.watched, "/sd?port=9100")
        pipeline = self.watched.pipeline
        pipeline.inventory = pipeline.inventory.with_("groups", None)
        status, _, body = self.finished(request)
        self.assertEqual((200, 20), (status, len(json.loads(body))))
        self.assertEqual(503, self.refused()[0])

    def test_too_long(self) -> None:
        """A response above the limit of bytes is 400, with advice."""
        self.patch(targets, "MAX_RESPONSE_BYTES", 10)
        self.assertEqual((400, TOO_LONG), self.refused())

    def test_too_many(self) -> None:
        """A response with too many targets is refused before it is computed."""
        peers = len(self.watched.inventory.peers or ())
        ports = "&".join(f"port={port}" for port in range(1, 17))
        self.patch(targets, "MAX_TARGETS", 16 * peers - 1)
        self.assertEqual((400, TOO_LONG), self.refused(f"?{ports}"))
        self.assertEqual([], self.compute.waiting)
        for query in ("?port=1", f"?group=servers&{ports}"):
            self.assertEqual(200, self.ask(query)[0])

    def test_defect(self) -> None:
        """A bug is logged and is 500; the next request succeeds."""

        def broken(*_: object) -> Payload:
            raise ZeroDivisionError

        self.patch(page, "target_list", broken)
        self.assertEqual((500, "the exporter has a bug: see its log"), self.refused())
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.patch(page, "target_list", targets.target_list)
        self.assertEqual(20, len(self.listed()))


class UnknownTests(DiscoveryTestCase):
    def test_start(self) -> None:
        """Before the first refresh the status is 503."""
        self.assertEqual(
            (503, "the peers are unknown: the next refresh has not finished"),
            self.refused(),
        )
        self.assertEqual((503, b""), self.ask("?port=1", "HEAD")[::2])

    def test_no_groups(self) -> None:
        """Without groups the peers are not listed."""
        self.watched.faults["api/groups"] = BROKEN
        self.watched.start()
        self.assertEqual((503, "the groups are unknown: 500: broken"), self.refused())
        self.watched.faults.clear()
        self.watched.advance(60)
        self.assertEqual(20, len(self.listed()))

    def test_not_supported(self) -> None:
        """Without support for groups the status is 503."""
        self.watched.faults["api/groups"] = ABSENT
        self.watched.start()
        self.assertEqual(
            (
                503,
                "the groups are unknown: the NetBird API does not offer them to this"
                " token",
            ),
            self.refused(),
        )

    def test_withdrawn(self) -> None:
        """Expired lists are not listed, even if only one of two has expired."""
        for name, age in (("peers", 300), ("groups", 900)):
            watched = self.watched = Watched(compute=self.compute)
            watched.start()
            self.assertEqual(20, len(self.listed()))
            watched.faults[f"api/{name}"] = BROKEN
            watched.advance(age - 60)
            self.assertGreater(len(self.listed()), 10)
            watched.advance(100)
            status, line = self.refused()
            self.assertEqual(503, status)
            self.assertRegex(
                line, rf"^the {name} are unknown: last refresh \d+ s ago; 500: broken$"
            )
            watched.faults.clear()
            watched.advance(900)
            self.assertGreater(len(self.listed()), 10)

    def test_no_collectors(self) -> None:
        """Peers and groups are listed with any collectors."""
        for collectors in (["users"], ["peers"], []):
            watched = Watched(collectors=collectors, compute=self.compute)
            self.watched = watched
            watched.start()
            self.assertEqual(20, len(self.listed()), collectors)

    def test_no_accounts(self) -> None:
        """The account id is a label once it is known, but it is not required."""
        self.watched.faults["api/accounts"] = BROKEN
        self.watched.start()
        for known in (False, True):
            _, _, body = self.ask("?port=1")
            self.assertEqual(known, b"__meta_netbird_account_id" in body)
            self.watched.faults.clear()
            self.watched.advance(60)

    def test_no_peers(self) -> None:
        """A network without peers is an empty list."""
        self.watched.bodies["api/peers"] = b"[]"
        self.watched.start()
        self.assertEqual([], self.listed())
