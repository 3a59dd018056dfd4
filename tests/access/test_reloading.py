"""Files that are checked: valid changes are used, invalid ones are not."""

import os
from pathlib import Path

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.access.reloading import CHECK_INTERVAL, ReadFile, Reloader
from api_exporter.settings.errors import ConfigurationError


class ReloaderTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.path = Path(self.mktemp())
        self.other = Path(self.mktemp())
        self.path.write_text("1")
        self.other.write_text("10")
        self.loads = 0
        self.reports: list[str | None] = []

    def load(self, read: ReadFile, before: int | None) -> int:
        """Return the sum of both files; raise if it has shrunk."""
        self.loads += 1
        try:
            if read(self.path) == b"secret":
                raise KeyError("secret")
            found = int(read(self.path)) + int(read(self.other))
        except (OSError, ValueError) as error:
            raise ConfigurationError(str(error)) from None
        if before is not None and found < before:
            raise ConfigurationError("it shrinks")
        return found

    def reloader(self) -> Reloader[int]:
        return Reloader(
            self.load,
            self.clock.seconds,
            lambda: 100 + self.clock.seconds(),
            lambda e: self.reports.append(None if e is None else str(e)),
        )

    def test_unchanged(self) -> None:
        """Unchanged files are not loaded again."""
        reloader = self.reloader()
        for _ in range(5):
            self.clock.advance(CHECK_INTERVAL)
            self.assertEqual(11, reloader())
            self.path.touch()
        self.assertEqual(1, self.loads)
        self.assertEqual(([], True), (self.reports, reloader.is_valid))

    def test_changed(self) -> None:
        """A change of any file is in force from the next check, once a second."""
        reloader = self.reloader()
        for path, text, expected in ((self.path, "2", 12), (self.other, "20", 22)):
            before = reloader()
            path.write_text(text)
            self.clock.advance(CHECK_INTERVAL / 2)
            self.assertEqual(before, reloader())
            self.clock.advance(CHECK_INTERVAL)
            self.assertEqual(expected, reloader())
        self.assertEqual([None, None], self.reports)

    def test_same_time(self) -> None:
        """A change of content alone, with the same size and time, is noticed."""
        reloader = self.reloader()
        before = self.path.stat()
        self.path.write_text("3")
        os.utime(self.path, ns=(before.st_atime_ns, before.st_mtime_ns))
        reloader.reload()
        self.assertEqual(13, reloader())

    def test_broken(self) -> None:
        """An invalid file is an error at the start, and is reported once later."""
        reloader = self.reloader()
        for break_, words in (
            (lambda: self.path.write_text("x"), "invalid literal"),
            (self.path.unlink, "No such file"),
        ):
            break_()
            for _ in range(3):
                self.clock.advance(CHECK_INTERVAL)
                self.assertEqual(11, reloader())
            self.assertFalse(reloader.is_valid)
            self.assertIn(words, str(self.reports[-1]))
            self.assertRaises(ConfigurationError, self.reloader)
        reloader.reload()
        self.assertEqual(self.reports[1:2], self.reports[2:])
        self.path.write_text("5")
        self.clock.advance(CHECK_INTERVAL)
        self.assertEqual((15, True), (reloader(), reloader.is_valid))
        reloader.reload()
        self.assertEqual([None], self.reports[3:])

    def test_defect(self) -> None:
        """After any error of a load, the last valid value stays, and a line says so."""
        reloader = self.reloader()
        self.path.write_text("secret")
        for _ in range(3):
            self.clock.advance(CHECK_INTERVAL)
            self.assertEqual(11, reloader())
        self.assertFalse(reloader.is_valid)
        self.assertEqual([f"{self.path}: internal error: KeyError"], self.reports)
        self.assertRaises(ConfigurationError, self.reloader)
        self.path.write_text("2")
        self.clock.advance(CHECK_INTERVAL)
        self.assertEqual((12, True), (reloader(), reloader.is_valid))

    def test_refused(self) -> None:
        """A load may refuse a change; a file that is not regular does not block."""
        reloader = self.reloader()
        self.path.write_text("0")
        reloader.reload()
        self.path.unlink()
        os.mkfifo(self.path)
        reloader.reload()
        reports = ["it shrinks", "the file is not a regular file"]
        self.assertEqual((11, reports), (reloader(), self.reports))

    def test_backwards(self) -> None:
        """A clock that is set back does not stop the checks."""
        now = [100.0]
        reloader = Reloader(self.load, lambda: now[0], lambda: 0, lambda _: None)
        now[0] = 1.0
        self.path.write_text("4")
        self.assertEqual(14, reloader())
