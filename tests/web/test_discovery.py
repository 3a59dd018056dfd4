"""`/sd` over HTTP, with an exporter of the simulated network."""

import json

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http import parse_qs
from twisted.web.http_headers import Headers

from api_exporter.ports import UpstreamError
from api_exporter.web import discovery, peer_table
from api_exporter.web.discovery import parse_query
from api_exporter.web.peer_table import Query
from tests.parts import DelayedCompute
from tests.web.served import Asked, ServedTestCase, header
from tests.web.watched import Watched

BROKEN = UpstreamError("http_5xx", "500: broken")
TOO_LONG = (
    "the response has more than 256 MiB or 300,000 targets: request groups, or fewer"
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


def asked(text: str, others: tuple[str, ...] = ()) -> Query:
    """Return the arguments as Twisted parses them."""
    return parse_query(parse_qs(text.encode(), keep_blank_values=True), others)


class QueryTests(SynchronousTestCase):
    def refusal(self, text: str, others: tuple[str, ...] = ()) -> str:
        return str(self.assertRaises(ValueError, asked, text, others))

    def test_all(self) -> None:
        """A port alone means all peers by IPv4; ports and groups may repeat."""
        self.assertEqual(Query((9100,), frozenset(), "ip"), asked("port=9100"))
        self.assertEqual(
            Query((1, 9100, 65535), frozenset({"R&D <core>", "東京", "a,b"}), "dns"),
            asked(
                "port=65535&group=R%26D+%3Ccore%3E&port=1&address=dns&port=9100"
                "&group=%E6%9D%B1%E4%BA%AC&group=a,b"
            ),
        )

    def test_ports(self) -> None:
        """Up to sixteen ports are allowed; a repeated one counts once."""
        ports = [f"port={n}" for n in range(1, 17)]
        self.assertEqual(16, len(asked("&".join(ports * 2)).ports))
        self.assertEqual(
            "17 ports are not allowed: request at most 16 at once",
            self.refusal("&".join([*ports, "port=17"])),
        )

    def test_missing_port(self) -> None:
        """Without a port the error has the line to type, with the given arguments."""
        for text, line in (
            ("", "/sd?port=9100"),
            ("group=a%26b&address=dns", "/sd?group=a%26b&address=dns&port=9100"),
        ):
            words = f"port is missing: request {line} or another port of the targets"
            self.assertEqual(words, self.refusal(text))
            asked(line.partition("?")[2])

    def test_port(self) -> None:
        """A port is a whole number from 1 to 65535 in plain digits."""
        words = "is not allowed: it must be a whole number from 1 to 65535"
        for text in ("0", "65536", "-1", "+1", "80.0", "http", "", "0x50", "²", "080"):
            for many in (f"port={text}", f"port=1&port={text}"):
                found = self.refusal(many.replace("+", "%2B"))
                self.assertEqual(f"port: {text!r} {words}", found)

    def test_unknown_parameter(self) -> None:
        """A parameter that is neither known nor in `others` is refused."""
        others = ("account",)
        for text, allowed, name in (
            *(("port=1&gruop=a", (), "gruop"), ("port=1&Group=a", (), "Group")),
            *(
                ("port=1&module=icmp", (), "module"),
                ("port=1&account=a", (), "account"),
            ),
            *(("port=1&=a", (), ""), ("port=1&a%0Ab=a", (), "a\nb")),
            ("port=1&%ff=a", (), "\N{REPLACEMENT CHARACTER}"),
            ("port=1&x=a&account=a", others, "x"),
        ):
            names = ", ".join((*allowed, "port", "group", "address"))
            line = f"{name!r} is not allowed: the parameters are {names}"
            self.assertEqual(line, self.refusal(text, allowed))
        self.assertEqual(asked("port=1"), asked("port=1&account=a", others))

    def test_address(self) -> None:
        """There is one kind of address, out of three."""
        for kind in ("ip", "ipv6", "dns"):
            self.assertEqual(kind, asked(f"port=1&address={kind}").address_kind)
        for kind in ("", "IP", "ipv4"):
            self.assertEqual(
                f"address: {kind!r} is not allowed: it must be ip, ipv6, dns",
                self.refusal(f"port=1&address={kind}"),
            )
        self.assertIn("more than one", self.refusal("port=1&address=ip&address=ip"))

    def test_empty_group(self) -> None:
        """An empty group, as an unset template leaves it, does not mean all."""
        for text in ("port=1&group=", "port=1&group=a&group="):
            self.assertIn("it must be the id or name", self.refusal(text))
