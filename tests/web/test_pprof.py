"""The profiles' pages over HTTP in memory, with a test clock."""

import sys
import threading
import tracemalloc
from collections.abc import Callable

from twisted.internet.defer import Deferred, execute, succeed
from twisted.internet.task import Clock
from twisted.web.resource import Resource

from api_exporter.web.pprof import Pprof
from tests.profiling import reader
from tests.web.served import Asked, ServedTestCase, header

NOW = 1_800_000_000


def at_once(work: Callable[[], bytes]) -> Deferred[bytes]:
    """Run work at once, without a thread."""
    return execute(work)


class PprofTestCase(ServedTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.mount(at_once)

    def mount(
        self, in_thread: Callable[[Callable[[], bytes]], Deferred[bytes]]
    ) -> None:
        self.pprof = Pprof(self.clock, lambda: NOW, in_thread)
        self.tree = Resource()
        self.tree.putChild(b"pprof", self.pprof)

    def ask(self, path: str, method: str = "GET", **headers: str) -> Asked:
        return super().ask(f"/pprof{path}", method, **headers)

    def assertNothingRuns(self) -> None:  # noqa: N802 - named like unittest's methods
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertFalse(tracemalloc.is_tracing())
        self.assertNotIn("cpu-profiler", [t.name for t in threading.enumerate()])


class IndexTests(PprofTestCase):
    def test_links(self) -> None:
        """The index has a link to every profile."""
        status, headers, body = self.request("/")
        self.assertEqual(200, status)
        self.assertEqual("text/html; charset=utf-8", header(headers, "content-type"))
        self.assertEqual("same-origin", header(headers, "cross-origin-resource-policy"))
        for name in (b"profile", b"heap", b"goroutine"):
            self.assertIn(b'<a href="%s">' % name, body)

    def test_slash(self) -> None:
        """Without its slash the index redirects, so that its links work."""
        status, headers, _ = self.request("")
        self.assertEqual((302, "pprof/"), (status, header(headers, "location")))
        for path in ("/allocs", "/block", "/mutex", "/profile/", "/heap/x"):
            self.assertEqual(404, self.request(path)[0], path)


class ProfileTests(PprofTestCase):
    def test_kinds(self) -> None:
        """Every path responds after its duration, with its own types of samples."""
        for path, seconds, kind in (
            ("/profile", 30, "cpu"),
            ("/profile?seconds=1", 1, "cpu"),
            ("/profile?seconds=300&debug=0", 300, "cpu"),
            ("/heap", 5, "inuse_space"),
            ("/heap?seconds=2", 2, "inuse_space"),
            ("/goroutine", 0, "goroutine"),
        ):
            asked = self.ask(path)
            if seconds:
                self.clock.advance(seconds - 0.1)
                asked.agent.flush()
                self.assertNoResult(asked.response)
                self.clock.advance(0.2)
            status, _, body = self.answer(asked)
            read = reader.read(body)
            self.assertEqual((200, kind), (status, read.types[-1][0]), path)
            self.assertEqual(NOW * 10**9, read.started, path)
            self.assertNothingRuns()

    def test_head(self) -> None:
        """HEAD has the headers of a file download, without making a profile."""
        for path, method in (
            ("/goroutine", "GET"),
            *((path, "HEAD") for path in ("/profile", "/heap", "/goroutine")),
        ):
            status, headers, body = self.request(path, method)
            self.assertEqual((200, method == "HEAD"), (status, not body))
            self.assert_headers(
                headers,
                content_type="application/octet-stream",
                content_disposition=f"attachment; filename={path[1:]}.pb.gz",
                cross_origin_resource_policy="same-origin",
            )
            self.assertNothingRuns()


class BadQueryTests(PprofTestCase):
    def assertRefused(self, query: str, line: str) -> None:  # noqa: N802 - likewise
        for path in ("/profile", "/heap", "/goroutine"):
            status, headers, body = self.request(f"{path}?{query}")
            self.assertEqual((400, f"{line}\n"), (status, body.decode()))
            self.assert_headers(
                headers,
                content_type="text/plain; charset=utf-8",
                cache_control="no-store",
                x_go_pprof="1",
                content_disposition="",
            )
        self.assertNothingRuns()

    def test_seconds(self) -> None:
        """Seconds are a whole number from 1 to 300, and debug is 0."""
        for query, quoted in (
            *(
                (x, f"'{x}'")
                for x in ("0", "301", "-1", "1.5", "1e2", "1_0", "", "ten")
            ),
            ("%2B5", "'+5'"),
            ("%205", "' 5'"),
            ("5&seconds=6", "'5,6'"),
            ("%D9%A3", r"'\xd9\xa3'"),
            ("%0A%3Cb%3E", r"'\n<b>'"),
            ("9" * 5000, f"'{'9' * 30}'"),
        ):
            line = f"seconds must be a whole number from 1 to 300, not {quoted}"
            self.assertRefused(f"seconds={query}", line)
        self.assertRefused("debug=2", "debug must be 0, not '2'")


class OneAtATimeTests(PprofTestCase):
    def test_second(self) -> None:
        """A second profile of a kind gets 409 and Retry-After; the first continues."""
        first = self.ask("/profile?seconds=20")
        self.clock.advance(5.5)
        status, headers, body = self.request("/profile")
        self.assertEqual((409, "15"), (status, header(headers, "retry-after")))
        self.assertEqual(b"the CPU sampler is in use; retry later\n", body)
        self.clock.advance(15)
        self.assertEqual(200, self.answer(first)[0])
        self.assertEqual(200, self.request("/goroutine")[0])
        self.assertNothingRuns()

    def test_kinds_run_together(self) -> None:
        """Profiles of memory exclude each other, but not the CPU profile."""
        heap = self.ask("/heap")
        self.assertEqual(409, self.request("/heap")[0])
        cpu = self.ask("/profile?seconds=5")
        self.assertNoResult(cpu.response)
        self.clock.advance(5)
        self.assertEqual([200, 200], [self.answer(a)[0] for a in (heap, cpu)])
        self.assertNothingRuns()


class EndTests(PprofTestCase):
    def test_client_gone(self) -> None:
        """A client that disconnects ends its profile at once."""
        switch_interval = sys.getswitchinterval()
        for path in ("/profile", "/heap"):
            asked = self.ask(path)
            self.assertEqual(1, len(self.clock.getDelayedCalls()))
            self.leave(asked)
            self.assertNothingRuns()
        self.assertEqual(switch_interval, sys.getswitchinterval())

    def test_client_gone_while_encoding(self) -> None:
        """A client that disconnects during encoding leaves nothing behind."""
        encoding: list[Deferred[bytes]] = []

        def in_thread(_work: Callable[[], bytes]) -> Deferred[bytes]:
            encoding.append(Deferred())
            return encoding[-1]

        self.mount(in_thread)
        self.leave(self.ask("/goroutine"))
        # The thread cannot be stopped; its result is ignored.
        encoding[0].callback(b"late")
        second = self.ask("/goroutine")
        encoding[1].callback(b"in time")
        self.assertEqual(b"in time", self.answer(second)[2])

    def test_stop(self) -> None:
        """Shutdown ends all profiles, with a response for each client, if any."""
        self.pprof.stop()
        asked = [self.ask(path) for path in ("/profile", "/heap")]
        self.pprof.stop()
        self.assertNothingRuns()
        for one in asked:
            status, _, body = self.answer(one)
            self.assertEqual((503, b"the exporter is stopping\n"), (status, body))

    def test_failure(self) -> None:
        """A profile that fails is logged, and the client gets a line."""

        def in_thread(_work: Callable[[], bytes]) -> Deferred[bytes]:
            return succeed(b"").addCallback(lambda _: 1 // 0).addCallback(bytes)

        self.mount(in_thread)
        line = b"the exporter cannot make the profile; see the log\n"
        for _ in range(2):
            status, _, body = self.request("/goroutine")
            self.assertEqual((500, line), (status, body))
            self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
