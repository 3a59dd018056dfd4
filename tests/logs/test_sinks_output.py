"""Standard output with a slow reader, or without one."""

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.logs.sinks import Output
from tests.logs import limited

LINE = b"x" * 999 + b"\n"


class OutputTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.reader, self.writer = os.pipe()
        self.addCleanup(os.close, self.writer)
        self.output = Output(self.writer)

    def read(self, size: int = 1 << 20) -> bytes:
        os.set_blocking(self.reader, False)
        try:
            return os.read(self.reader, size)
        except BlockingIOError:
            return b""

    def test_number(self) -> None:
        """The default descriptor is standard output."""
        self.addCleanup(os.close, self.reader)
        before = os.dup(1)
        self.addCleanup(os.close, before)
        os.dup2(self.writer, 1)
        try:
            Output().write(LINE)
        finally:
            os.dup2(before, 1)
        self.assertEqual(LINE, self.read())

    def test_slow(self) -> None:
        """A write to a full pipe does not block, and no line is repeated."""
        self.addCleanup(os.close, self.reader)
        rest, got = LINE * 500, b""
        while rest:
            taken = self.output.write(rest)
            self.assertEqual(0, taken % 1000)
            rest = rest[taken:]
            got += self.read(50_000)
        while more := self.read():
            got += more
        self.assertEqual(LINE * 500, got)

    def test_long_lines(self) -> None:
        """A line that was written in part is completed before the next line."""
        self.addCleanup(os.close, self.reader)
        long = b"y" * 99_999 + b"\n"
        self.assertEqual(100_000, self.output.write(long + LINE))
        self.assertFalse(self.output.is_flushed)
        self.assertEqual(0, self.output.write(LINE))
        got = self.read()
        self.assertEqual(1000, self.output.write(LINE))
        self.assertTrue(self.output.is_flushed)
        self.assertEqual(long + LINE, got + self.read())

    def test_gone(self) -> None:
        os.close(self.reader)
        self.assertRaises(BrokenPipeError, self.output.write, LINE)

    def test_full(self) -> None:
        """A write to a file on a full disk fails once no bytes are accepted."""
        os.close(self.reader)
        path = Path(self.mktemp())
        with path.open("wb") as file, limited(4500):
            output = Output(file.fileno())
            self.assertEqual(5000, output.write(LINE * 10))
            self.assertFalse(output.is_flushed)
            self.assertRaises(OSError, output.write, LINE)
        self.assertEqual(LINE * 4 + LINE[:500], path.read_bytes())

    def test_nonblocking(self) -> None:
        """A descriptor in nonblocking mode is accepted."""
        self.addCleanup(os.close, self.reader)
        os.set_blocking(self.writer, False)
        self.assertLess(self.output.write(LINE * 500), 500_000)
