"""Log lines as an operator reads them."""

import io

from twisted.logger import Logger, LogLevel, LogPublisher
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from api_exporter import logs
from api_exporter.settings import LOG_LEVELS, Token


class Desk:
    """A logger whose lines go where LOG_LEVEL sends them."""

    def __init__(
        self, level: str, form: str = "text", namespace: str = "api_exporter.test"
    ) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        observer = logs.observer(level, form, self.out, self.err)
        self.log = Logger(namespace, observer=LogPublisher(observer))

    def written(self) -> str:
        """Both files, without the times."""
        lines = (self.out.getvalue() + self.err.getvalue()).splitlines()
        return "\n".join(line.partition(" ")[2] for line in lines)


class LineTests(SynchronousTestCase):
    def test_line(self) -> None:
        """Time, level, message, then what the message does not tell."""
        desk = Desk("info")
        desk.log.info("read {resource}", resource="peers", records=3)
        self.assertEqual("info read peers records=3", desk.written())
        self.assertRegex(
            desk.out.getvalue(), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
        )

    def test_one_line(self) -> None:
        """Whatever a field holds, an event stays one line."""
        desk = Desk("info")
        desk.log.info("name {name}", name="a\nb\r\x1b[31m\u2028c", other="x\ny")
        self.assertEqual(
            "info name a\\nb\\r\\x1b[31m\\u2028c other=x\\ny", desk.written()
        )

    def test_traceback(self) -> None:
        """A traceback is one field of one line."""
        desk = Desk("info")
        try:
            raise ZeroDivisionError("oops")
        except ZeroDivisionError:
            desk.log.failure("a defect", failure=Failure())
        self.assertEqual(1, desk.err.getvalue().count("\n"))
        self.assertIn("error a defect traceback=", desk.written())
        self.assertIn("ZeroDivisionError: oops", desk.written())

    def test_streams(self) -> None:
        """Warnings and errors go to standard error, the rest to standard output."""
        desk = Desk("debug")
        for level in LogLevel.iterconstants():
            desk.log.emit(level, "x")
        levels = [line.split()[1] for line in desk.out.getvalue().splitlines()]
        self.assertEqual(["debug", "info"], levels)
        levels = [line.split()[1] for line in desk.err.getvalue().splitlines()]
        self.assertEqual(["warning", "error", "error"], levels)

    def test_levels(self) -> None:
        """Nothing below LOG_LEVEL is written."""
        for place, level in enumerate(LOG_LEVELS):
            desk = Desk(level)
            for name in ("debug", "info", "warn", "error"):
                desk.log.emit(LogLevel.levelWithName(name), "x")
            self.assertEqual(4 - place, len(desk.written().splitlines()))

    def test_small_talk(self) -> None:
        """Twisted's own news is for debugging; its warnings are for everybody."""
        for level, expected in (("info", 1), ("debug", 2)):
            desk = Desk(level, namespace="twisted.web.client")
            desk.log.info("starting factory")
            desk.log.warn("something is wrong")
            self.assertEqual(expected, len(desk.written().splitlines()))

    def test_token(self) -> None:
        """A token that gets into an event by mistake stays secret."""
        desk = Desk("info")
        desk.log.info("token {token}", token=Token("nbp_canary"), again=Token("nbp_x"))
        self.assertEqual("info token <token> again=<token>", desk.written())
