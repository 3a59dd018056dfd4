"""Log lines as an operator reads them."""

import io
import json
from itertools import product
from pathlib import Path

from twisted.logger import Logger, LogLevel, LogPublisher, globalLogPublisher
from twisted.python import log
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.daemon import logs
from api_exporter.serving.channel import Channel
from api_exporter.settings.definitions import LOG_FORMATS
from api_exporter.settings.parsers import LOG_LEVELS
from api_exporter.settings.token import Token


class Sheet(io.StringIO):
    """An outlet that accepts everything, or nothing.

    Attributes:
        takes: True if it accepts lines.
    """

    takes = True

    def write(self, line: str) -> bool:
        if self.takes:
            super().write(line)
        return self.takes


class Desk:
    """A logger with an observer for LOG_LEVEL."""

    def __init__(
        self, level: str, form: str = "text", namespace: str = "api_exporter.test"
    ) -> None:
        self.out, self.err = Sheet(), Sheet()
        self.observer = logs.LineObserver(
            level, logs.to_file(form, self.out), logs.to_file(form, self.err)
        )
        self.log = Logger(namespace, observer=LogPublisher(self.observer))

    def written(self) -> str:
        """Return both outlets' lines without the times."""
        lines = (self.out.getvalue() + self.err.getvalue()).splitlines()
        return "\n".join(line.partition(" ")[2] for line in lines)


class LineTests(SynchronousTestCase):
    def test_line(self) -> None:
        """An event is one line: time, level, message and other fields, no token."""
        odd = "a\nb\r\x1b[31m\u2028c"
        held = Token("nbp_canary")
        cases: tuple[tuple[str, dict[str, object], str], ...] = (
            ("read {a}", {"a": "peers", "records": 3}, "read peers records=3"),
            ("{a}", {"a": odd, "b": "x\ny"}, r"a\nb\r\x1b[31m\u2028c b=x\ny"),
            ("token {a}", {"a": held, "again": held}, "token <token> again=<token>"),
        )
        for form, fields, line in cases:
            desk = Desk("info")
            desk.log.info(form, **fields)
            self.assertEqual(f"info {line}", desk.written())
            time = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
            self.assertRegex(desk.out.getvalue(), time)

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
        for form in LOG_FORMATS:
            desk = Desk("debug", form)
            for level in LogLevel.iterconstants():
                desk.log.emit(level, "x")
            for sheet, levels in (
                (desk.out, ["debug", "info"]),
                (desk.err, ["warning", "error", "error"]),
            ):
                lines = sheet.getvalue().splitlines()
                self.assertEqual(len(levels), len(lines), form)
                for level, line in zip(levels, lines, strict=True):
                    self.assertIn(level, line)

    def test_levels(self) -> None:
        """Nothing below LOG_LEVEL is written."""
        for place, level in enumerate(LOG_LEVELS):
            desk = Desk(level)
            for name in ("debug", "info", "warn", "error"):
                desk.log.emit(LogLevel.levelWithName(name), "x")
            self.assertEqual(4 - place, len(desk.written().splitlines()))

    def test_small_talk(self) -> None:
        """Twisted's info messages are for debugging; warnings are always written."""
        talkers = ("twisted.web.client", Channel._log.namespace)
        for (level, expected), talker in product((("info", 1), ("debug", 2)), talkers):
            desk = Desk(level, namespace=talker)
            desk.log.info("starting factory")
            desk.log.warn("something is wrong")
            self.assertEqual(expected, len(desk.written().splitlines()))


class DroppedTests(SynchronousTestCase):
    def test_dropped(self) -> None:
        """Dropped lines are counted, and a later line reports them."""
        desk = Desk("info")
        desk.out.takes = False
        for _ in range(3):
            desk.log.info("lost")
        desk.log.warn("seen")
        self.assertEqual((3, "warning seen"), (desk.observer.dropped, desk.written()))
        desk.out.takes = True
        desk.log.info("again")
        desk.log.info("and again")
        line = "warning dropped 3 log lines: the log's reader is too slow"
        expected = [line, "info again", "info and again", "warning seen"]
        self.assertEqual(expected, desk.written().splitlines())
        self.assertEqual(3, desk.observer.dropped)

    def test_one_file(self) -> None:
        """Lines dropped by an outlet for both streams are counted once."""
        sheet = Sheet()
        sheet.takes = False
        both = logs.to_file("text", sheet)
        observer = logs.LineObserver("info", both, both)
        log = Logger("api_exporter.test", observer=LogPublisher(observer))
        log.info("a")
        log.warn("b")
        self.assertEqual(2, observer.dropped)


class JournalTests(SynchronousTestCase):
    def test_priority(self) -> None:
        """A line for the journal has its priority, and no time: the journal has one."""
        for level, priority in (
            (LogLevel.debug, "<7>debug"),
            (LogLevel.info, "<6>info"),
            (LogLevel.warn, "<4>warning"),
            (LogLevel.error, "<3>error"),
            (LogLevel.critical, "<3>error"),
        ):
            event = {"log_level": level, "log_format": "x", "log_time": 0.0, "a": 1}
            self.assertEqual(f"{priority} x a=1\n", logs.journal_line(event))
            told = logs.journal_json_line(event)
            self.assertEqual(priority[:3], told[:3])
            self.assertEqual(logs.json_line(event), told[3:])
            self.assertEqual("", json.loads(told[3:])["logger"])


class JsonTests(SynchronousTestCase):
    def told(self, desk: Desk) -> dict[str, object]:
        """Return the only written event: one line, one object."""
        [line] = (desk.out.getvalue() + desk.err.getvalue()).splitlines(keepends=True)
        self.assertTrue(line.endswith("}\n"), line)
        found = json.loads(line)
        assert isinstance(found, dict)
        return found

    def test_fields(self) -> None:
        """Four keys are always there; fields are optional, as JSON or text."""
        desk, held = Desk("info", "json"), Token("nbp_canary")
        path = Path("/a")
        desk.log.info("x {seconds}", seconds=0.5, status=None, path=path, t=[held])
        (key, time), *told = self.told(desk).items()
        self.assertRegex(f"{key}={time}", r"^time=\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$")
        logger = ("logger", "api_exporter.test")
        fields = {"seconds": 0.5, "status": None, "path": "/a", "t": ["<token>"]}
        always = [("level", "info"), logger, ("message", "x 0.5")]
        self.assertEqual([*always, ("fields", fields)], told)
        desk = Desk("info", "json")
        desk.log.info("x 0.5")
        self.assertEqual(always, [*self.told(desk).items()][1:])

    def test_traceback(self) -> None:
        """A traceback is one field of its own, with its lines."""
        desk = Desk("info", "json")
        try:
            raise ZeroDivisionError("oops")
        except ZeroDivisionError:
            desk.log.failure("a defect", failure=Failure())
        told = self.told(desk)
        keys = ["time", "level", "logger", "message", "traceback"]
        self.assertEqual(keys, list(told))
        self.assertEqual(("error", "a defect"), (told["level"], told["message"]))
        self.assertRegex(str(told["traceback"]), r"\n.*ZeroDivisionError: oops")

    def test_one_line(self) -> None:
        """Any event is one object on one line; other scripts are not escaped."""
        desk = Desk("info", "json")
        hostile = 'a\nb\r\x1b[31m\u2028\x85"c\\ Jörg 健太'
        fields = {"name": hostile, "other": {hostile: [hostile]}}
        desk.log.info("{name}", **fields)
        told = self.told(desk)
        self.assertEqual((hostile, fields), (told["message"], told["fields"]))
        self.assertIn("Jörg 健太", desk.out.getvalue())

    def test_older_logging(self) -> None:
        """Events of Twisted's older logging are written with the same keys."""
        out = Sheet()
        both = logs.to_file("json", out)
        observer = logs.LineObserver("debug", both, both)
        globalLogPublisher.addObserver(observer)
        self.addCleanup(globalLogPublisher.removeObserver, observer)
        log.msg("old news", system="-")
        log.err(ZeroDivisionError("oops"), "old trouble")
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        news, trouble = map(json.loads, out.getvalue().splitlines())
        self.assertEqual(("info", "old news"), (news["level"], news["message"]))
        self.assertEqual("error", trouble["level"])
        for words in ("old trouble", "ZeroDivisionError: oops"):
            self.assertIn(words, trouble["message"])
        for told in (news, trouble):
            self.assertNotIn("fields", told)
