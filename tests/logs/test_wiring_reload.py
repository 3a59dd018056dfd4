"""Logs on a disk that hangs while reloads replace their accounts."""

import errno
import json
import os
from collections.abc import Callable
from random import Random
from typing import Any

from api_exporter.logs.listing import NANOSECONDS_PER_SECOND
from simulation.disk import Disk, Killed
from simulation.link import Response, complete
from tests.logs import body
from tests.logs.paging import Table
from tests.test_live import NOW, Api, LiveTestCase

ROWS = 26


class LogApi(Api):
    """A NetBird API with rows in both logs.

    Attributes:
        last: the number of the newest row.
        table: the access log, if it has other times.
    """

    last = 0

    def __init__(self, *tokens: str) -> None:
        super().__init__(*tokens)
        self.table: Table | None = None

    def respond(self, path: str, token: str) -> Response:
        name, _, query = path.partition("?")
        if name == "api/events/audit":
            found = body(range(1, self.last + 1))
        elif name == "api/events/proxy":
            table = self.table or Table(range(1, self.last + 1))
            found = table.answer(query)
        else:
            return super().respond(path, token)
        return complete(200, found)


class HangingDisk(Disk):
    """A disk whose next calls hang.

    Attributes:
        seconds: the time that each call hangs.
        errors: for each of the next calls an error number, or 0 for a late success.
    """

    seconds = 9.0
    errors: tuple[int, ...] = ()

    def call(self, do: Callable[[], Any], cut: Callable[[], object]) -> Any:
        if self.working is None or not self.errors:
            return do()
        error, *rest = self.errors
        self.errors = tuple(rest)
        try:
            self.working.pause(self.seconds)
        except Killed:
            cut()
            raise
        if error:
            cut()
            raise OSError(error, os.strerror(error))
        return do()


class ReportedTests(LiveTestCase):
    """A reload keeps what logs have found."""

    def setUp(self) -> None:
        super().setUp()
        self.api: LogApi = LogApi("one", "two", "three")

    def sample(self, name: str) -> list[str]:
        page = self.get("/metrics?account=one")
        return [x.rpartition(" ")[2] for x in page.splitlines() if x.startswith(name)]

    def test_not_written(self) -> None:
        """A log that cannot be written says so until it is written."""
        folder = self.folder.with_name("logs")
        settings = {f"{x}_FILE": f"{folder}/{x}" for x in ("EVENTS", "ACCESS_LOG")}
        names = (
            "api_exporter_audit_events_writable ",
            "api_exporter_access_log_lag_seconds ",
        )
        self.api.last = ROWS
        self.account("one", **settings)
        self.start(seconds=300)
        before = [self.sample(name) for name in names]
        self.assertTrue(before[0] == ["0.0"] and float(before[1][0]) > 200, before)
        self.api.silent = True
        self.account("one", HTTP_TIMEOUT="20s", **settings)
        self.reload(5)
        self.assertEqual(before, [self.sample(name) for name in names])
        self.api.silent = False
        self.advance(100)
        self.assertGreater(float(self.sample(names[1])[0]), 300)
        folder.mkdir()
        self.advance(100)
        self.assertEqual([["1.0"], ["0.0"]], [self.sample(name) for name in names])
        logged = "".join(self.book.lines())
        counts = [logged.count(x) for x in ("warning cannot write", "are written to")]
        self.assertEqual([2, 2], counts)

    def test_unreadable(self) -> None:
        """An unreadable row is counted once."""
        self.api.table = Table()
        self.api.table.rows.append((0, 0, "{}"))
        self.account("one", ACCESS_LOG_FILE=f"{self.folder}-log")
        self.start()
        self.account("one", ACCESS_LOG_FILE=f"{self.folder}-log", HTTP_TIMEOUT="20s")
        self.reload(100)
        name = "api_exporter_access_log_lines_missed_total "
        self.assertEqual(["0.0"], self.sample(name))

    def test_counted(self) -> None:
        """Without a file, rows between two requests are counted, too."""
        self.api.table = Table()
        self.account("one", ACCESS_LOG_METRICS="true")
        self.start(seconds=100)
        at = int(NOW + self.machine.seconds())
        self.api.table.add(1, at * NANOSECONDS_PER_SECOND)
        self.advance(1)
        self.account("one", ACCESS_LOG_METRICS="true", HTTP_TIMEOUT="20s")
        self.reload(60)
        self.assertEqual(["1.0"], self.sample("api_exporter_access_log_requests_total"))


class HungDiskTests(LiveTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.api: LogApi = LogApi("one", "two", "three")
        logs = self.folder.with_name("logs")
        logs.mkdir()
        self.path = logs / "log.jsonl"
        self.disk = HangingDisk(logs, Random(1))
        self.disk.hang_share = 1.0
        self.work = self.disk.run  # type: ignore[method-assign]
        watched = self.disk.watched()
        watched.__enter__()
        self.addCleanup(watched.__exit__, None, None, None)

    def log_to(self, setting: str, account: str = "one", **settings: str) -> None:
        self.account(account, **{setting: str(self.path), **settings})

    def await_hang(self) -> None:
        """Advance the time until a call hangs."""
        for _ in range(1000):
            if self.disk.hanging:
                return
            self.advance(0.1)
        raise AssertionError("no call hangs")

    def numbers(self) -> list[int]:
        """Return the numbers of all lines."""
        found = [json.loads(line)["id"] for line in self.path.read_bytes().splitlines()]
        return sorted(int(id_.rpartition("x")[2]) for id_ in found)

    def writable(self) -> list[str]:
        page = self.get("/metrics?account=one")
        return [x[-3:] for x in page.splitlines() if "s_writable " in x and x[0] != "#"]

    def check_replaced(self, setting: str, error: int) -> None:
        self.api.last = 5
        self.log_to(setting)
        self.start()
        self.assertEqual([1, 2, 3, 4, 5], self.numbers())
        for number in range(3):
            self.api.last += 7
            self.disk.errors = (error,)
            self.await_hang()
            self.log_to(setting, HTTP_TIMEOUT=f"{20 + number}s")
            self.reload(200)
        self.assertEqual([*range(1, ROWS + 1)], self.numbers())

    def test_succeeds(self) -> None:
        """Rows are written once if a write hangs over a reload."""
        self.check_replaced("EVENTS_FILE", 0)

    def test_access_log_fails(self) -> None:
        self.disk.seconds = 60.0
        self.check_replaced("ACCESS_LOG_FILE", errno.EIO)

    def test_waiting(self) -> None:
        """While a replaced account's write hangs, the new account says so."""
        self.api.last = 5
        self.log_to("EVENTS_FILE")
        self.start()
        self.api.last = ROWS
        self.disk.errors = (0,)
        self.disk.seconds = 900.0
        self.await_hang()
        self.log_to("EVENTS_FILE", HTTP_TIMEOUT="20s")
        self.reload(20)
        self.advance(600)  # the events keep their due time
        self.assertEqual(["0.0"], self.writable())
        line = (
            f"warning cannot write audit events to {self.path}: an earlier write has"
            " not ended; NetBird keeps them, and the exporter retries account=one"
        )
        self.assertEqual(1, self.book.lines().count(line))
        self.advance(1000)
        self.assertEqual(["1.0"], self.writable())
        self.assertEqual([*range(1, ROWS + 1)], self.numbers())

    def move(self, setting: str, error: int) -> list[int]:
        """Move the path to another account while a write hangs. Return all numbers."""
        self.api.last = 5
        self.log_to("EVENTS_FILE")
        self.start()
        self.api.last = ROWS
        self.disk.errors = (error,)
        self.await_hang()
        self.account("one")
        cursor = f"{setting.removesuffix('_FILE')}_CURSOR_FILE"
        self.log_to(setting, "two", **{cursor: f"{self.path}.{setting}"})
        self.reload(200)
        return self.numbers()

    def test_another_account(self) -> None:
        """Another account waits for a path, too: nothing is cut or mixed."""
        self.assertEqual([*range(1, ROWS + 1)], self.move("EVENTS_FILE", 0))

    def test_another_log(self) -> None:
        """So does another log, whose rows follow."""
        rows = [*range(1, ROWS + 1)]
        found = self.move("ACCESS_LOG_FILE", errno.EIO)
        self.assertEqual(sorted([1, 2, 3, 4, 5, *rows]), found)

    def test_end(self) -> None:
        """The end of the process does not wait for the write of a replaced account."""
        self.log_to("EVENTS_FILE")
        self.start()
        self.api.last = ROWS
        self.disk.errors = (0,)
        self.disk.seconds = 900.0
        self.await_hang()
        self.log_to("EVENTS_FILE", HTTP_TIMEOUT="20s")
        self.reload()
