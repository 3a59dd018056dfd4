"""The metrics page over HTTP: formats, compression, methods, disconnects."""

import gzip
import zlib

from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from twisted.internet.defer import fail
from twisted.internet.task import Clock
from twisted.web.resource import Resource

from api_exporter.exposition.pages import piece
from api_exporter.refresh.network import AccountNetwork
from api_exporter.web.context import TTL
from api_exporter.web.metrics import Metrics
from tests.exposition.test_negotiation import PROMETHEUS_3, answer
from tests.parts import account_settings, clocks_of, request_plan, site_context
from tests.web.served import ServedTestCase, header

FAMILY = (
    "# HELP netbird_api_peers Number of peers.\n"
    "# TYPE netbird_api_peers gauge\n"
    'netbird_api_peers{connected="true"} 3\n'
)


def unread(clock: Clock, *collectors: str) -> AccountNetwork:
    """Return a network that is never refreshed."""
    return AccountNetwork(
        settings=account_settings(),
        fetch=lambda *_: fail(NotImplementedError()),
        plan=request_plan(collectors),
        clocks=clocks_of(clock),
        registry=CollectorRegistry(),
    )


class MetricsTestCase(ServedTestCase):
    collectors: tuple[str, ...] = ("peers",)

    def setUp(self) -> None:
        self.clock = Clock()
        network = unread(self.clock, *self.collectors)
        self.pages = network.pages
        context = site_context(self.clock)
        self.process = context.process
        self.tree = Resource()
        self.tree.putChild(b"metrics", Metrics({"": network}, context))


class MetricsTests(MetricsTestCase):
    def test_formats(self) -> None:
        """Each client gets its preferred format, before the first refresh too."""
        for accept in ("text/plain", PROMETHEUS_3):
            _, headers, body = self.request("/metrics", accept=accept)
            self.assertEqual(answer(accept), header(headers, "content-type"))
            self.assertNotIn("netbird", body.decode())
            self.assertIn("api_exporter_build_info", body.decode())
            self.assertEqual(accept == PROMETHEUS_3, body.endswith(b"# EOF\n"))

    def test_gzip(self) -> None:
        """The compressed page equals the plain one, in one gzip member."""
        self.pages.publish("peers", (piece(FAMILY.encode()),))
        _, plain_headers, plain = self.request("/metrics")
        _, headers, body = self.request("/metrics", accept_encoding="gzip")
        self.assertEqual(plain, gzip.decompress(body))
        for sent, encoding in ((plain_headers, ""), (headers, "gzip")):
            vary = "Accept, Accept-Encoding"
            self.assert_headers(sent, content_encoding=encoding, vary=vary)
        self.assertEqual(str(len(body)), header(headers, "content-length"))

    def test_tail_is_kept(self) -> None:
        """The exporter's own metrics are rendered once a second at most."""
        _, _, first = self.request("/metrics")
        self.process.reactor_lag.observe(1)
        self.assertEqual(first, self.request("/metrics")[2])
        self.clock.advance(TTL)
        self.assertNotEqual(first, self.request("/metrics")[2])

    def test_in_flight(self) -> None:
        self.request("/metrics")
        self.clock.advance(TTL)
        _, _, body = self.request("/metrics")
        self.assertIn("api_exporter_scrapes_in_flight 1.0\n", body.decode() + "\n")
        self.clock.advance(TTL)
        gauge = self.process.scrapes_in_flight
        [sample] = [s for family in gauge.collect() for s in family.samples]
        self.assertEqual(0, sample.value)


GROUPS = "# HELP netbird_api_groups Number.\n# TYPE netbird_api_groups gauge\n"
GROUPS += 'netbird_api_groups{issued="api"} 2\n'


class ChosenTests(MetricsTestCase):
    """`collect[]` and `exclude[]`, as Prometheus sends the `params` of a job."""

    collectors = ("peers", "groups")

    def setUp(self) -> None:
        super().setUp()
        self.pages.publish("peers", (piece(FAMILY.encode()),))
        self.pages.publish("groups", (piece(GROUPS.encode()),))

    def families(self, query: str, accept: str = PROMETHEUS_3) -> set[str]:
        """Return the names on a page, after a comparison with its gzip form."""
        path = f"/metrics?{query}"
        _, _, plain = self.request(path, accept=accept)
        wanted = {"accept": accept, "accept_encoding": "gzip"}
        status, headers, packed = self.request(path, **wanted)
        self.assertEqual(200, status)
        self.assertEqual(str(len(packed)), header(headers, "content-length"))
        member = zlib.decompressobj(31)
        self.assertEqual(plain, member.decompress(packed))
        self.assertEqual((True, b""), (member.eof, member.unused_data))
        parse = text_string_to_metric_families
        if accept == PROMETHEUS_3:
            parse = openmetrics.text_string_to_metric_families
        names = [family.name for family in parse(plain.decode())]
        self.assertEqual(len(names), len(set(names)))
        return set(names)

    def test_without_our_own(self) -> None:
        """The exporter's own metrics can be excluded, in both formats."""
        for accept in ("text/plain", PROMETHEUS_3):
            for query, expected in {
                "exclude[]=exporter": {"netbird_api_peers", "netbird_api_groups"},
                "collect[]=peers&exclude[]=exporter": {"netbird_api_peers"},
                "exclude[]=exporter&exclude[]=peers&exclude[]=groups": set(),
            }.items():
                self.assertEqual(expected, self.families(query, accept))

    def test_refused(self) -> None:
        """An invalid filter is 400 with a line of plain text."""
        line = b"collect[]: 'users' is not one of peers, groups\n"
        for method, expected in (("GET", line), ("HEAD", b"")):
            status, headers, body = self.request("/metrics?collect[]=users", method)
            self.assertEqual((400, expected), (status, body))
            self.assert_headers(headers, content_type="text/plain; charset=utf-8")

    def test_size(self) -> None:
        """The page has the series and bytes of each collector, and all cut labels."""
        _, _, body = self.request("/metrics?exclude[]=peers")
        lines = body.decode().splitlines()
        for line in (
            'api_exporter_series{collector="peers"} 1.0',
            'api_exporter_series{collector="groups"} 1.0',
            f"api_exporter_page_bytes {float(len(FAMILY + GROUPS))}",
            "api_exporter_cut_labels 0.0",
        ):
            self.assertIn(line, lines)
