"""Files that are looked at: what is good is used, what is broken changes nothing."""

import os
from pathlib import Path

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.door.live import INTERVAL, Live, Read
from api_exporter.settings.errors import ConfigurationError


class LiveTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.path = Path(self.mktemp())
        self.other = Path(self.mktemp())
        self.path.write_text("1")
        self.other.write_text("10")
        self.loads = 0
        self.told: list[str | None] = []

    def load(self, read: Read, before: int | None) -> int:
        """The sum of both files, as long as it grows."""
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

    def live(self) -> Live[int]:
        return Live(
            self.load,
            self.clock.seconds,
            lambda e: self.told.append(None if e is None else str(e)),
        )

    def test_unchanged(self) -> None:
        """What has not changed is read by nobody but the look."""
        live = self.live()
        for _ in range(5):
            self.clock.advance(INTERVAL)
            self.assertEqual(11, live())
        self.path.touch()
        self.clock.advance(INTERVAL)
        self.assertEqual(11, live())
        self.assertEqual(1, self.loads)
        self.assertEqual([], self.told)

    def test_changed(self) -> None:
        """A change of any of the files holds from the next look, once a second."""
        live = self.live()
        for path, text, expected in (
            (self.path, "2", 12),
            (self.other, "20", 22),
        ):
            before = live()
            path.write_text(text)
            self.assertEqual(before, live())
            self.clock.advance(INTERVAL)
            self.assertEqual(expected, live())
        self.assertEqual([None, None], self.told)

    def test_same_time(self) -> None:
        """A change that leaves size and time as they were is one."""
        live = self.live()
        before = self.path.stat()
        self.path.write_text("3")
        os.utime(self.path, ns=(before.st_atime_ns, before.st_mtime_ns))
        live.look()
        self.assertEqual(13, live())

    def test_broken(self) -> None:
        """What is broken is told once; the last good one stays until it is mended."""
        live = self.live()
        self.path.write_text("x")
        for _ in range(3):
            self.clock.advance(INTERVAL)
            self.assertEqual(11, live())
        self.assertFalse(live.fine)
        [told] = self.told
        self.assertIn("invalid literal", str(told))
        self.path.unlink()
        for _ in range(2):
            self.clock.advance(INTERVAL)
            self.assertEqual(11, live())
        self.assertIn("No such file", str(self.told[1:]))
        self.path.write_text("5")
        self.clock.advance(INTERVAL)
        self.assertEqual(15, live())
        self.assertTrue(live.fine)
        self.assertEqual(None, self.told[-1])
        self.assertEqual(3, len(self.told))

    def test_defect(self) -> None:
        """Whatever reading raises, the last good one stays, and a line says so."""
        live = self.live()
        self.path.write_text("secret")
        for _ in range(3):
            self.clock.advance(INTERVAL)
            self.assertEqual(11, live())
        self.assertFalse(live.fine)
        self.assertEqual([f"{self.path}: a defect: KeyError"], self.told)
        with self.assertRaises(ConfigurationError):
            self.live()
        self.path.write_text("2")
        self.clock.advance(INTERVAL)
        self.assertEqual((12, True), (live(), live.fine))

    def test_judged(self) -> None:
        """Whether a change can be made may depend on what is in force."""
        live = self.live()
        self.path.write_text("0")
        live.look()
        self.assertEqual((11, ["it shrinks"]), (live(), self.told))

    def test_backwards(self) -> None:
        """A clock that goes back is no reason never to look again."""
        now = [100.0]
        live = Live(self.load, lambda: now[0], lambda _: None)
        now[0] = 1.0
        self.path.write_text("4")
        self.assertEqual(14, live())

    def test_no_file(self) -> None:
        """What is no regular file is not waited for."""
        live = self.live()
        self.path.unlink()
        os.mkfifo(self.path)
        live.look()
        self.assertEqual((11, ["it is no regular file"]), (live(), self.told))

    def test_start(self) -> None:
        """What is broken at the start is refused there."""
        self.path.write_text("x")
        with self.assertRaises(ConfigurationError):
            self.live()
