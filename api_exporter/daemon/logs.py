"""Log lines: one line for each event. Warnings and errors go to standard error.

`2026-11-21T09:25:52.123Z warning cannot refresh peers: … reason=timeout`, or, in the
journal, `<4>warning cannot refresh peers: … reason=timeout`.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from string import Formatter

from twisted.logger import (
    ILogObserver,
    LogEvent,
    LogLevel,
    LogLevelFilterPredicate,
    PredicateResult,
    formatEvent,
)
from zope.interface import implementer

from api_exporter.daemon.outlets import Outlet, Stream

_LEVELS = {
    "debug": LogLevel.debug,
    "info": LogLevel.info,
    "warning": LogLevel.warn,
    "error": LogLevel.error,
}

TWISTED_NAMESPACES = ("twisted", "log_legacy", "api_exporter.serving.channel")
"""Namespaces of Twisted's messages; classes in the last one inherit its logger."""

_LEVEL_NAMES = {LogLevel.warn: "warning", LogLevel.critical: "error"}


def json_line(event: LogEvent) -> str:
    """Return an event as a JSON object with stable keys; other types become text."""
    failure = event.get("log_failure")
    entry: dict[str, object] = {
        "time": _timestamp(event),
        "level": level_name(event),
        "logger": event.get("log_namespace", ""),
        "message": formatEvent(event),
    }
    if fields := _own_fields(event):
        entry["fields"] = fields
    if failure is not None:
        entry["traceback"] = failure.getTraceback()
    text = json.dumps(entry, default=str, ensure_ascii=False)
    # JSON allows these in a string, but some readers end a line at them.
    text = re.sub(r"[\x7f-\x9f\u2028\u2029]", lambda m: f"\\u{ord(m[0]):04x}", text)
    return f"{text}\n"


_LEGACY_FIELDS = {"message", "time", "system", "format", "isError", "failure", "why"}
"""Fields of events from Twisted's older logging, which other keys repeat."""


def _own_fields(event: LogEvent) -> dict[str, object]:
    return {
        name: value
        for name, value in event.items()
        if not name.startswith("log_") and name not in _LEGACY_FIELDS
    }


def text_line(event: LogEvent) -> str:
    """Return time, level and message, then the fields that are not in the message."""
    parts = [_timestamp(event), level_name(event), formatEvent(event), *_fields(event)]
    unsafe = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"
    return re.sub(unsafe, lambda m: repr(m[0])[1:-1], " ".join(parts)) + "\n"


def _timestamp(event: LogEvent) -> str:
    time = datetime.fromtimestamp(event["log_time"], UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def level_name(event: LogEvent) -> str:
    """Return the level in the words of LOG_LEVEL."""
    level = _level(event)
    return _LEVEL_NAMES.get(level) or str(level.name)


def _level(event: LogEvent) -> LogLevel:
    level: LogLevel = event.get("log_level", LogLevel.info)
    return level


def _fields(event: LogEvent) -> list[str]:
    named = {
        re.split(r"[.\[(]", name, maxsplit=1)[0]
        for _, name, _, _ in Formatter().parse(event.get("log_format") or "")
        if name
    }
    own = _own_fields(event).items()
    fields = [f"{name}={value}" for name, value in own if name not in named]
    failure = event.get("log_failure")
    if failure is not None:
        fields.append(f"traceback={failure.getTraceback()!r}")
    return fields


_PRIORITIES = {
    LogLevel.debug: 7,
    LogLevel.info: 6,
    LogLevel.warn: 4,
    LogLevel.error: 3,
    LogLevel.critical: 3,
}
"""Priorities, as in syslog(3)."""


def _priority(level: LogLevel) -> str:
    return f"<{_PRIORITIES[level]}>"


def journal_line(event: LogEvent) -> str:
    """Return the line with a priority in place of the time, for the journal."""
    return _priority(_level(event)) + text_line(event).partition(" ")[2]


def journal_json_line(event: LogEvent) -> str:
    return _priority(_level(event)) + json_line(event)


LineFormat = Callable[[LogEvent], str]

_FORMATS: dict[str, tuple[LineFormat, LineFormat]] = {
    "text": (text_line, journal_line),
    "json": (json_line, journal_json_line),
}
"""Formats by LOG_FORMAT: for most outlets, and for the journal."""


class LineWriter:
    """An outlet with the format of its lines.

    Lines that the outlet rejects are dropped. A later line reports their number.
    """

    def __init__(self, form: LineFormat, outlet: Outlet) -> None:
        self._form = form
        self._outlet = outlet
        self._unreported = 0
        self.dropped = 0

    def write(self, event: LogEvent) -> None:
        """Write one line; before it, report dropped lines."""
        if self._unreported and self._outlet.write(self._form(self._report(event))):
            self._unreported = 0
        if self._unreported or not self._outlet.write(self._form(event)):
            self._unreported += 1
            self.dropped += 1

    def _report(self, event: LogEvent) -> LogEvent:
        return {
            "log_time": event["log_time"],
            "log_level": LogLevel.warn,
            "log_namespace": __name__,
            "log_format": "dropped {lines} log lines: the log's reader is too slow",
            "lines": self._unreported,
        }


@implementer(ILogObserver)
class LineObserver:
    """A log observer that writes events of a level and above.

    Twisted's own info messages are written only at the level debug. Warnings and errors
    go to `err`.
    """

    def __init__(self, level: str, out: LineWriter, err: LineWriter) -> None:
        self._out = out
        self._err = err
        self.set_level(level)

    def set_level(self, level: str) -> None:
        self._level = LogLevelFilterPredicate(_LEVELS[level])
        if level == "info":
            for namespace in TWISTED_NAMESPACES:
                self._level.setLogLevelForNamespace(namespace, LogLevel.warn)

    def __call__(self, event: LogEvent) -> None:
        if self._level(event) is PredicateResult.no:
            return
        (self._err if _level(event) >= LogLevel.warn else self._out).write(event)

    @property
    def dropped(self) -> int:
        return sum(found.dropped for found in {self._out, self._err})


def to_file(form: str, file: Outlet) -> LineWriter:
    return LineWriter(_FORMATS[form][0], file)


def to_streams(form: str, environ: Mapping[str, str]) -> tuple[LineWriter, LineWriter]:
    out, err = (
        LineWriter(_FORMATS[form][stream.is_journal(environ)], stream)
        for stream in standard_streams()
    )
    return out, err


def error_prefix(stream: Stream, environ: Mapping[str, str]) -> str:
    """Return the prefix of an error outside of the log."""
    return _priority(LogLevel.error) if stream.is_journal(environ) else ""


def standard_streams() -> tuple[Stream, Stream]:
    """Return the real ones: twistd logs what `sys.stdout` and `sys.stderr` get."""
    return Stream(1), Stream(2)
