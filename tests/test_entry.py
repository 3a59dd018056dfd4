"""The entry point: commands without Twisted, and missing standard streams."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from twisted.trial.unittest import SynchronousTestCase

from api_exporter import cli, entry
from api_exporter.checking.health import HEALTH_USAGE
from api_exporter.version import this_build


@contextmanager
def descriptors_restored() -> Iterator[None]:
    """Restore the descriptors of the standard streams afterwards."""
    copies = [os.dup(number) for number in range(3)]
    try:
        yield
    finally:
        for number, copy in enumerate(copies):
            os.dup2(copy, number)
            os.close(copy)


class EntryTests(SynchronousTestCase):
    def printed(self, *arguments: str) -> tuple[object, str]:
        """Return the exit status, and the output."""
        printed = io.StringIO()
        self.patch(sys, "stdout", printed)
        self.patch(sys, "argv", ["api-exporter", *arguments])
        try:
            entry.main()
        except SystemExit as exit_:
            return exit_.code, printed.getvalue()
        return None, printed.getvalue()

    def test_commands(self) -> None:
        """Health and version need no command line of Twisted; the rest does."""
        self.patch(cli, "main", lambda: sys.stdout.write("daemon"))
        for arguments, expected in (
            (["--version"], (None, f"{this_build()}\n")),
            (["--demo", "--version"], (None, f"{this_build()}\n")),
            (["--health", "--nonsense"], (2, f"CRITICAL: {HEALTH_USAGE}\n")),
            (["-c", "x", "--health", "--nonsense"], (2, f"CRITICAL: {HEALTH_USAGE}\n")),
            (["--demo"], (None, "daemon")),
        ):
            self.assertEqual(expected, self.printed(*arguments), arguments)

    def test_broken_pipe(self) -> None:
        """The status does not depend on a reader of the line."""
        for command, status, is_buffered in (
            *(("--version", None, True), ("--version", None, False)),
            *(("--health", 2, True), ("--health", 2, False)),
        ):
            self.patch(sys, "argv", ["api-exporter", command, "--nonsense"])
            reader, writer = os.pipe()
            os.close(reader)
            with (  # without a buffer as with PYTHONUNBUFFERED
                open(writer, "wb", -1 if is_buffered else 0) as pipe,
                io.TextIOWrapper(pipe, write_through=not is_buffered) as closed,
            ):
                self.patch(sys, "stdout", closed)
                ended: object = None
                try:
                    entry.main()
                except SystemExit as exit_:
                    ended = exit_.code
            self.assertEqual(status, ended, command)

    def test_encoding(self) -> None:
        """A letter that the terminal lacks is escaped, and the status stays."""
        written = io.BytesIO()
        self.patch(sys, "stdout", io.TextIOWrapper(written, "ascii"))
        self.patch(sys, "argv", ["api-exporter", "--health", "--config", "/\u00e4"])
        self.assertEqual(2, self.assertRaises(SystemExit, entry.main).code)
        self.assertIn(b"CRITICAL: /\\xe4: No such file", written.getvalue())

    def test_missing_streams(self) -> None:
        """Missing standard streams are opened as /dev/null; others stay."""
        for name in ("stdin", "stdout", "stderr", "__stdin__", "__stdout__"):
            self.patch(sys, name, getattr(sys, name))
        self.patch(sys, "__stderr__", sys.__stderr__)
        self.patch(sys, "argv", ["api-exporter", "--version"])
        with descriptors_restored():
            os.close(0)
            os.close(1)
            for name in ("stdin", "stdout"):
                setattr(sys, name, None)
            others = sys.stderr, os.fstat(2)
            entry.main()
            empty = os.stat(os.devnull)
            for number in (0, 1):
                self.assertTrue(os.path.samestat(empty, os.fstat(number)), number)
            self.assertEqual(others, (sys.stderr, os.fstat(2)))
            self.assertEqual("", sys.stdin.read())
            self.assertIs(sys.stdin, sys.__stdin__)
            self.assertIs(sys.stdout, sys.__stdout__)
            self.assertEqual((0, 1), (sys.stdin.fileno(), sys.stdout.fileno()))
            sys.stdin.close()
            sys.stdout.close()
