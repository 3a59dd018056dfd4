"""The profiles' pages over HTTP in memory, with a test clock."""

import sys
import threading
import tracemalloc
from collections.abc import Callable

from twisted.internet.defer import Deferred, execute, succeed
from twisted.internet.task import Clock

from api_exporter.profiling.recorders import Encode
from api_exporter.web.pprof import Profiles
from api_exporter.web.tree import Tree
from tests.profiling import reader
from tests.web.served import Asked, ServedTestCase, header

NOW = 1_800_000_000


def at_once(encode: Encode, started: float) -> Deferred[bytes]:
    """Make a profile at once, without a thread."""
    return execute(encode, started)


class PprofTestCase(ServedTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.mount(at_once)

    def mount(self, in_thread: Callable[[Encode, float], Deferred[bytes]]) -> None:
        self.profiles = Profiles(self.clock, lambda: NOW, in_thread)
        self.tree = Tree(self.profiles.pages, "/metrics")

    def ask(self, path: str, method: str = "GET", **headers: str) -> Asked:
        return super().ask(f"/debug/pprof{path}", method, **headers)

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
        for name in (b"profile", b"heap"):
            self.assertIn(b'<a href="%s">' % name, body)

    def test_slash(self) -> None:
        """Without its slash the index redirects, so that its links work."""
        status, headers, _ = self.request("")
        self.assertEqual((302, "pprof/"), (status, header(headers, "location")))
        for path in ("/allocs", "/goroutine", "/block", "/profile/", "/heap/x"):
            status, _, body = self.request(path)
            self.assertEqual(404, status, path)
            self.assertIn(b"There is no page", body)


class ProfileTests(PprofTestCase):
    def test_kinds(self) -> None:
        """Every path responds after its duration, with its own types of samples."""
        for path, seconds, kind in (
            ("/profile", 30, "cpu"),
            ("/profile?seconds=1", 1, "cpu"),
            ("/profile?seconds=99", 99, "cpu"),
            ("/profile?seconds=300&debug=0", 300, "cpu"),
            ("/heap", 5, "inuse_space"),
            ("/heap?seconds=2", 2, "inuse_space"),
        ):
            asked = self.ask(path)
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
            ("/heap", "GET"),
            *((path, "HEAD") for path in ("/profile", "/heap")),
        ):
            asked = self.ask(path, method)
            if method == "GET":
                self.clock.advance(5)
            status, headers, body = self.answer(asked)
            self.assertEqual((200, method == "HEAD"), (status, not body))
            self.assert_headers(
                headers,
                content_type="application/octet-stream",
                content_disposition=f"attachment; filename={path[1:]}.pb.gz",
                cross_origin_resource_policy="same-origin",
            )
            self.assertNothingRuns()


class RefusalTests(PprofTestCase):
    def test_seconds(self) -> None:
        """Seconds are a whole number from 1 to 300."""
        for path in ("/profile", "/heap"):
            for seconds in (
                *("0", "00", "05", "301", "399", "-1", "1.5", "1e2", "1_0", "", "ten"),
                *("%2B5", "%205", "5&seconds=6", "%D9%A3", "5%0A", "9" * 5000),
            ):
                status, headers, body = self.request(f"{path}?seconds={seconds}")
                line = b"seconds must be a whole number from 1 to 300\n"
                self.assertEqual((400, line), (status, body), seconds)
                self.assert_headers(
                    headers,
                    content_type="text/plain; charset=utf-8",
                    cache_control="no-store",
                    x_go_pprof="1",
                    content_disposition="",
                )
        self.assertNothingRuns()

    def test_second(self) -> None:
        """A second profile of any kind gets 409; the first continues."""
        first = self.ask("/profile?seconds=20")
        self.clock.advance(5.5)
        for path in ("/profile", "/heap"):
            status, _, body = self.request(path)
            line = b"another profile runs; retry later\n"
            self.assertEqual((409, line), (status, body))
        self.clock.advance(15)
        self.assertEqual(200, self.answer(first)[0])
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

        def in_thread(_encode: Encode, _started: float) -> Deferred[bytes]:
            encoding.append(Deferred())
            return encoding[-1]

        self.mount(in_thread)
        first = self.ask("/heap?seconds=1")
        self.clock.advance(1)
        self.leave(first)
        # The thread cannot be stopped; its result is ignored.
        encoding[0].callback(b"late")
        second = self.ask("/heap?seconds=1")
        self.clock.advance(1)
        encoding[1].callback(b"in time")
        self.assertEqual(b"in time", self.answer(second)[2])

    def test_stop(self) -> None:
        """Shutdown ends a profile, with a response for its client."""
        self.profiles.cancel()
        for path in ("/profile", "/heap"):
            asked = self.ask(path)
            self.profiles.cancel()
            self.assertNothingRuns()
            status, _, body = self.answer(asked)
            self.assertEqual((503, b"the exporter is stopping\n"), (status, body))

    def test_failure(self) -> None:
        """A profile that fails is logged, and the client gets a line."""

        def in_thread(_encode: Encode, _started: float) -> Deferred[bytes]:
            return succeed(b"").addCallback(lambda _: 1 // 0).addCallback(bytes)

        self.mount(in_thread)
        line = b"the exporter cannot make the profile; see the log\n"
        for _ in range(2):
            asked = self.ask("/heap?seconds=1")
            self.clock.advance(1)
            status, headers, body = self.answer(asked)
            self.assertEqual((500, line), (status, body))
            self.assertEqual("", header(headers, "content-disposition"))
            self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
