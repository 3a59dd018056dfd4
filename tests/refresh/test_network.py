"""A network: its logs, and what follows a refresh."""

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.finding import Snapshot
from api_exporter.netbird.records import Group
from api_exporter.ports import UpstreamError
from api_exporter.refresh.network import UnknownGroups
from api_exporter.subjects import watch
from api_exporter.subjects.watch import KeptFindings
from tests.inventories import inventory_of
from tests.logbook import logbook
from tests.parts import DelayedCompute, attempt
from tests.refresh.recorded_log import RecordedLog
from tests.refresh.test_refresher import Bench

EVENTS = b'[{"id":"1"},{"id":"2"},{"no":"id"}]'


class NetworkTests(SynchronousTestCase):
    def test_log(self) -> None:
        """A log gets all bodies of its resource, changed or not, and no others."""
        logs = {"events": RecordedLog()}
        bench = Bench("peers", beside=("events",), logs=logs, events=EVENTS).start()
        bench.advance(601)
        self.assertEqual([EVENTS, EVENTS], logs["events"].bodies)

    def test_unread(self) -> None:
        """Without a collector the records are counted, and not decoded."""
        network = Bench("peers", beside=("events",), events=EVENTS).start()
        self.assertEqual((), network.inventory.records["events"])
        self.assertEqual(3, network.states["events"].records)
        network = Bench("events", events=EVENTS).start()
        self.assertEqual(2, len(network.inventory.records["events"]))
        standing = network.states["events"]
        self.assertEqual((2, 1), (standing.records, standing.rejected))

    def test_read_after_a_reload(self) -> None:
        """Records that were only counted are requested when a collector reads them."""
        before = Bench("peers", beside=("events",), events=EVENTS).start()
        after = before.reloaded("peers", "events")
        self.assertEqual(1, len(after.inventory.peers or ()))
        self.assertIsNone(after.inventory.records.get("events"))

    def test_failing_over_a_reload(self) -> None:
        """A failure is logged once, even if a reload adds the resource's collector."""
        book, down = logbook(self), UpstreamError("http_5xx", "500: down")
        before = Bench("peers", beside=("events",), events=down).start()
        before.advance(700)
        after = before.reloaded("peers", "events", events=down)
        after.start().advance(700)
        after.replies["events"] = EVENTS
        after.advance(700)
        lines = [x for x in book.lines() if "refresh" in x and "events" in x]
        self.assertEqual(2, len(lines), lines)

    def test_settings_after_a_reload(self) -> None:
        """After a reload the new settings count, not those of before."""
        before, own = Bench("peers").start(), Bench("peers").inventory
        former = {"personal": frozenset({"email"}), "intervals": {}}
        before.pipeline.inventory = replace(
            before.inventory, detail=frozenset({"servers"}), **former
        )
        after = before.reloaded("peers")
        for name in ("detail", "personal", "intervals"):
            self.assertEqual(getattr(own, name), getattr(after.inventory, name), name)
            self.assertNotEqual(getattr(before.inventory, name), getattr(own, name))
        self.assertEqual(before.inventory.peers, after.inventory.peers)

    def test_requests_before_a_reload(self) -> None:
        """The newest requests are those of before a reload, until there are others."""
        before = Bench("peers").start()
        before.count_attempt(attempt("api/peers"))
        after = before.reloaded("peers")
        self.assertIs(True, after.telemetry.reachable)
        self.assertEqual([*before.telemetry.recent], [*after.telemetry.recent])

    def test_found_before_a_reload(self) -> None:
        """A reload does not change when a finding was first found."""
        before = Bench("peers", "users", users=b"[]").start()
        before.replies["users"] = b'[{"id":"u","pending_approval":true}]'
        before.advance(660)
        found_at = before.findings.found.series
        self.assertGreater(max(found_at.values()), before.findings.started_at)
        after = before.reloaded("peers", "users")
        self.assertEqual(found_at, after.findings.found.series)

    def test_found_for_another_account(self) -> None:
        """Findings that were computed for a former account are not kept."""
        compute = DelayedCompute()
        bench = Bench(compute=compute).start()
        updating = Deferred.fromCoroutine(bench.update_findings("peers"))
        bench._on_other_account()
        begun = bench.findings
        compute.go()
        self.successResultOf(updating)
        self.assertTrue(bench.findings is begun)

    def test_needed_at_last(self) -> None:
        """A resource that fails once it is needed is not up, unless refused."""
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
                book = logbook(self)
                bench = Bench("peers", beside=("access_log",)).start()
                for services, log, expected in steps:
                    bench.replies["proxy_services"] = services
                    bench.replies["api/events/proxy"] = log
                    bench.advance(660)
                    found = bench.states["access_log"]
                    self.assertEqual(expected, (found.up, found.supported))
                self.assertNotIn(
                    "metrics of access_log have expired", str(book.lines())
                )

    def test_followers(self) -> None:
        """The followers of a refresh end before those of the next one begin."""
        bench, waiting, begun = Bench("peers", "groups"), Deferred[None](), list[str]()

        async def follow(resource: str) -> None:
            begun.append(resource)
            await waiting

        bench.followers.append(follow)
        bench.start().advance(10)
        self.assertEqual(["peers"], begun)
        waiting.callback(None)
        self.assertIn("groups", begun)

    def test_stopped_follower(self) -> None:
        """A stop ends a follower, and the next one does not begin."""
        bench, begun = Bench("peers"), list[str]()

        async def wait(_: str) -> None:
            await Deferred[None]()

        async def follow(resource: str) -> None:
            begun.append(resource)

        bench.followers += wait, follow
        bench.start().advance(10)
        self.successResultOf(bench.stopService())
        self.assertEqual([], begun)

    def test_token_changed(self) -> None:
        """Peers of a new token wait for the accounts that are requested with it."""
        bench = Bench("peers", "account", accounts=b'[{"id":"a"}]').start()
        bench.replies["accounts"] = former = Deferred[bytes]()
        bench.advance(310)
        bench.refresher.on_token_changed()
        bench.replies["peers"] = b'[{"id":"p2"}]'
        bench.advance(40)
        bench.replies["accounts"] = newest = Deferred[bytes]()
        former.callback(b'[{"id":"a"}]')
        bench.advance(60)
        self.assertEqual(["p1"], [peer.id for peer in bench.inventory.peers or ()])
        newest.callback(b'[{"id":"b"}]')
        bench.replies["accounts"] = b'[{"id":"b"}]'
        bench.advance(1)
        self.assertEqual(["p2"], [peer.id for peer in bench.inventory.peers or ()])
        self.assertEqual(1, bench.inventory.former_accounts)

    def test_other_account(self) -> None:
        """Between two accounts the peers are unknown, also late ones."""
        bench = Bench("peers", "account", accounts=b'[{"id":"a"}]').start()
        bench.replies["peers"] = late = Deferred[bytes]()
        bench.advance(40)
        bench.replies["accounts"] = b'[{"id":"b"}]'
        bench.replies["peers"] = Deferred[bytes]()
        bench.refresher.on_token_changed()
        for answer in (lambda: None, lambda: late.callback(b'[{"id":"p1"}]')):
            answer()
            bench.advance(1)
            self.assertEqual(1, bench.inventory.former_accounts)
            self.assertIsNone(bench.inventory.peers)
            self.assertIsNone(bench.states["peers"].up)

    def test_failed_attempt(self) -> None:
        """A failed attempt for the peers is a failure before the refresh ends."""
        bench = Bench("peers").start()
        lost = UpstreamError("connect", "lost")
        bench.count_attempt(attempt("api/peers", None, started=bench.now(), error=lost))
        peers = bench.states["peers"]
        self.assertIs(False, peers.up)
        assert peers.error is not None
        self.assertEqual(("connect", "lost"), (peers.error.reason, str(peers.error)))

    def test_defect(self) -> None:
        """A defect in the findings is logged when it begins, and ends no refresh."""
        is_broken = True

        def look(_: Snapshot, resource: str, last: KeptFindings) -> KeptFindings:
            if is_broken:
                raise ValueError(resource)
            return last

        self.patch(watch, "update_findings", look)
        bench = Bench("peers").start()
        for broken, errors in ((True, 1), (True, 0), (False, 0), (True, 1)):
            is_broken = broken
            bench.advance(30)
            self.assertEqual(errors, len(self.flushLoggedErrors(ValueError)))
        self.assertEqual(1_800_000_120, bench.states["peers"].last_success)


class UnknownGroupsTests(SynchronousTestCase):
    def test_once(self) -> None:
        """A missing group is logged once, and again if it goes missing later."""
        book = logbook(self)
        unknown = UnknownGroups(Logger("api_exporter"))
        known = inventory_of(detail=frozenset({"servers", "g2", "x\ny"}))
        servers, other = Group(id="g1", name="servers"), Group(id="g2", name="other")

        def told(*groups: Group) -> list[str]:
            before = len(book.lines())
            for _ in range(3):
                unknown.warn(known.replacing("groups", groups))
            return book.lines()[before:]

        def line(name: str) -> str:
            words = "which is neither name nor id of a group"
            return f"warning PEER_DETAIL names {name!r}, {words}"

        unknown.warn(known)
        self.assertEqual([], book.lines())
        self.assertEqual([line("g2"), line("x\ny")], told(servers))
        self.assertEqual([], told(servers, other))
        unknown.warn(known)
        self.assertEqual([line("servers")], told(other))
        self.assertEqual([line("g2")], told(servers))
