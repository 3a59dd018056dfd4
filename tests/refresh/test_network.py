"""A network: its body readers, and what follows a refresh."""

from prometheus_client import CollectorRegistry
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.finding import Snapshot
from api_exporter.attention.watch import AttentionState
from api_exporter.collectors.selection import selection
from api_exporter.netbird.resources import OFF
from api_exporter.ports import ResponseBody, UpstreamError
from api_exporter.refresh import network as network_
from api_exporter.refresh.budget import Budget
from api_exporter.refresh.network import AccountNetwork
from api_exporter.refresh.pipeline import AccountFeature, BodyReader
from api_exporter.refresh.quotas import Quota
from api_exporter.world import World
from tests.logbook import logbook

EVENTS = b'[{"id":"1"},{"id":"2"},{"no":"id"}]'


class NetworkTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.answers: dict[str, bytes | UpstreamError] = {"api/events/audit": EVENTS}

    async def fetch(self, path: str, _patience: float) -> ResponseBody:
        answer = self.answers.get(path, b"[]")
        if isinstance(answer, UpstreamError):
            raise answer
        return ResponseBody(answer)

    def network(
        self,
        *readers: BodyReader,
        collectors: tuple[str, ...],
        beside: tuple[str, ...] = ("events",),
    ) -> AccountNetwork:
        off = {"current_user": OFF}
        network = AccountNetwork(
            fetch=self.fetch,
            quota=Quota(Budget(), selection(collectors, off, beside=beside)),
            world=World(self.clock, self.clock.seconds, lambda: 0.5),
            registry=CollectorRegistry(),
            features=[AccountFeature(body_readers={"events": r}) for r in readers],
        )
        network.startService()
        self.addCleanup(network.stopService)
        self.turn()
        return network

    def turn(self, seconds: int = 0) -> None:
        for step in [1] * seconds + [0] * 100:
            self.clock.advance(step)

    def test_body_readers(self) -> None:
        """A reader gets all bodies of its resource, changed or not, and no others."""
        first: list[bytes] = []
        second: list[bytes] = []
        self.network(first.append, second.append, collectors=("peers",))
        self.turn(601)
        self.assertEqual([EVENTS, EVENTS], first)
        self.assertEqual(first, second)

    def test_unread(self) -> None:
        """Without a collector the records are counted, and not decoded."""
        network = self.network(collectors=("peers",))
        self.assertEqual((), network.inventory.events)
        self.assertEqual(3, network.telemetry.freshness["events"].records)
        network = self.network(collectors=("events",))
        self.assertEqual(2, len(network.inventory.events or ()))
        standing = network.telemetry.freshness["events"]
        self.assertEqual((2, 1), (standing.records, standing.rejected))

    def test_malformed(self) -> None:
        """A body that is no list is a failure, with any reader."""
        self.answers["api/events/audit"] = b"{}"
        error = self.network(collectors=("peers",)).telemetry.freshness["events"].error
        assert error is not None
        self.assertEqual("decode", error.reason)

    def test_needed_at_last(self) -> None:
        """A resource that was not needed, and fails once it is, is not up. If it is
        refused then, that is no failure, though it could be read long ago.
        """
        nothing, some = b"[]", b'[{"id":"s"}]'
        page: bytes | UpstreamError = b'{"data":[]}'
        unneeded = (nothing, page, (None, False))
        for answer, state in (
            (UpstreamError("http_5xx", "500: broken"), (False, None)),
            (UpstreamError("forbidden", "403: no"), (None, False)),
            (UpstreamError("not_found", "404", unsupported=True), (None, False)),
        ):
            fails = (some, answer, state)
            read = (some, page, (True, True))
            for steps in ([unneeded, fails], [read, unneeded, fails]):
                self.answers, book = {}, logbook(self)
                network = self.network(collectors=("peers",), beside=("access_log",))
                for services, log, expected in steps:
                    self.answers["api/reverse-proxies/services"] = services
                    self.answers["api/events/proxy"] = log
                    self.turn(660)
                    found = network.telemetry.freshness["access_log"]
                    self.assertEqual(expected, (found.up, found.supported))
                self.assertNotIn(
                    "metrics of access_log have expired", str(book.lines())
                )

    def test_defect(self) -> None:
        """A defect in the findings is logged when it begins, and ends no refresh."""
        is_broken = True

        def look(_: Snapshot, resource: str, last: AttentionState) -> AttentionState:
            if is_broken:
                raise ValueError(resource)
            return last

        self.patch(network_, "update_findings", look)
        network = self.network(collectors=("peers",))
        for broken, errors in ((True, 1), (True, 0), (False, 0), (True, 1)):
            is_broken = broken
            self.turn(30)
            self.assertEqual(errors, len(self.flushLoggedErrors(ValueError)))
        self.assertEqual(120, network.telemetry.freshness["peers"].last_success)
