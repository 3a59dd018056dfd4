"""The pages of `/lookup`."""

import json
from typing import Any

from api_exporter.netbird.records import Peer
from api_exporter.ports import UpstreamError
from api_exporter.serving.site import BoundedSite
from api_exporter.web import lookup
from api_exporter.web.lookup import MAX_QUERIES
from tests.logbook import logbook
from tests.parts import DelayedCompute
from tests.web.connection import Connection
from tests.web.served import ServedTestCase
from tests.web.watched import Watched

PATHS = ("/lookup", "/lookup.json", "/lookup.csv")


class LookupTests(ServedTestCase):
    def setUp(self) -> None:
        self.watch(Watched(lookup=True))

    def watch(self, watched: Watched) -> None:
        self.watched = watched
        self.tree = watched.tree

    def refused(self, path: str, status: int) -> str:
        """Return the line of a refusal."""
        found, headers, body = self.request(path)
        self.assertEqual(status, found, body)
        self.assert_headers(headers, content_type="text/plain; charset=utf-8")
        [line] = body.decode().splitlines()
        return line

    def results(self, query: str) -> list[dict[str, Any]]:
        status, _, body = self.request(f"/lookup?{query}")
        self.assertEqual(200, status, body)
        results: list[dict[str, Any]] = json.loads(body)["results"]
        return results

    def peers(self) -> tuple[Peer, ...]:
        return self.watched.inventory.peers or ()

    def test_found(self) -> None:
        """Several addresses and names are looked up at once, in their order."""
        self.watched.start()
        first, second, *_ = self.peers()
        query = f"name={second.dns_label}&address={first.ip}&address=192.0.2.1"
        found = self.results(query)
        ids = {one["query"]: [p["peer_id"] for p in one["peers"]] for one in found}
        expected = {first.ip: [first.id], "192.0.2.1": []}
        expected[second.dns_label] = [second.id]
        self.assertEqual([*expected.items()], [*ids.items()])
        self.assertIn("All", found[0]["peers"][0]["groups"])
        for path in (f"/lookup?address={first.ip}", "/lookup.json", "/lookup.csv"):
            self.assert_page(path)

    def test_tables(self) -> None:
        """The tables have all peers, and a HEAD has their length."""
        self.watched.start()
        for path, media_type in (
            ("/lookup.json", "application/json"),
            ("/lookup.csv", "text/csv; charset=utf-8; header=present"),
        ):
            _, headers, body = self.request(path)
            self.assert_headers(headers, content_type=media_type)
            for peer in self.peers():
                self.assertEqual(1, body.decode().count(f'"{peer.id}"'))
            connection = Connection(BoundedSite(self.tree, self.watched.clock))
            connection.send(b"HEAD %b HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode())
            length = b"\r\nContent-Length: %d\r\n" % len(body)
            self.assertIn(length, connection.heard())

    def test_unknown(self) -> None:
        """An unknown address is 404 with a sentence."""
        self.watched.start()
        for query, name in (
            ("address=192.0.2.1", "'192.0.2.1'"),
            ("name=%C3%A9&name=b&address=::1", "'::1' or 2 others"),
            ("name=x%0Ay", r"'x\ny'"),
        ):
            line = self.refused(f"/lookup?{query}", 404)
            self.assertEqual(f"No peer has the address or name {name}.", line)

    def test_wrong(self) -> None:
        """A wrong or endless query is 400; a long value is not repeated."""
        self.watched.start()
        for query in (
            *("", "address=", "address=laptop", "address=100.64.0.0/10", "address=1"),
            *(
                "address=fd00:::1",
                f"address={'1' * 2_000}",
                "name=",
                f"name={'a' * 254}",
            ),
            *("adress=100.64.0.1", "account=acme&name=a"),
            "&".join(["name=a"] * (MAX_QUERIES + 1)),
        ):
            self.assertGreater(250, len(self.refused(f"/lookup?{query}", 400)), query)
        line = self.refused("/lookup.csv?name=a&address=100.64.0.1", 400)
        self.assertEqual("'address' is not allowed", line[:24])

    def test_not_known(self) -> None:
        """While the peers are unknown or have expired, each page is 503."""
        for path in PATHS:
            self.assertIn("next refresh has not", self.refused(path, 503))
        self.watched.start()
        self.watched.down = UpstreamError("auth", "401: no")
        self.watched.advance(1_000)
        for path in PATHS:
            self.assertIn("s ago; 401: no", self.refused(path, 503))

    def test_follows(self) -> None:
        """The table follows the publications, and no request computes it."""
        compute = DelayedCompute()
        self.watch(Watched(compute=compute, lookup=True))
        self.watched.start()
        self.assertIn("being made", self.refused("/lookup.csv", 503))
        while compute.waiting:
            compute.go()
        address = f"address={self.peers()[0].ip}"
        self.results(address)
        self.watched.bodies["api/peers"] = b'[{"id":"new","ip":"192.0.2.1"}]'
        self.watched.advance(35)
        self.results(address)
        while compute.waiting:
            compute.go()
        self.refused(f"/lookup?{address}", 404)
        self.results("address=192.0.2.1")
        self.watched.advance(65)
        self.assertEqual([], compute.waiting, "unchanged records make no new table")

    def test_defect(self) -> None:
        """After a defect the table is unknown, not old, and findings go on."""
        book = logbook(self)
        self.watched.start()
        self.watched.bodies["api/peers"] = b'[{"id":"new","ip":"192.0.2.1"}]'
        self.patch(lookup, "make_table", lambda _: 1 / 0)
        self.watched.advance(65)
        self.refused("/lookup.csv", 503)
        self.assertEqual(1, "\n".join(book.lines()).count("internal error"))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
