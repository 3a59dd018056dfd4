"""Log lines: one event, one line. What is important goes to standard error.

`2026-11-21T09:25:52.123Z warning cannot refresh peers: … reason=timeout`
"""

import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from string import Formatter
from typing import TextIO

from twisted.logger import (
    FilteringLogObserver,
    ILogObserver,
    LogEvent,
    LogLevel,
    LogLevelFilterPredicate,
    formatEvent,
)
from zope.interface import implementer

_LEVELS = {
    "debug": LogLevel.debug,
    "info": LogLevel.info,
    "warning": LogLevel.warn,
    "error": LogLevel.error,
}

_NAMES = {LogLevel.warn: "warning", LogLevel.critical: "error"}


def json_line(event: LogEvent) -> str:
    """The same as a JSON object with stable keys; values of other types as text."""
    failure = event.get("log_failure")
    told: dict[str, object] = {
        "time": _stamp(event),
        "level": level_name(event),
        "logger": event.get("log_namespace", ""),
        "message": formatEvent(event),
    }
    fields = {
        name: value
        for name, value in event.items()
        if not name.startswith("log_") and name not in _LEGACY
    }
    if fields:
        told["fields"] = fields
    if failure is not None:
        told["traceback"] = failure.getTraceback()
    text = json.dumps(told, default=str, ensure_ascii=False)
    # What JSON allows in a string and some readers take for the end of a line.
    return re.sub(r"[\x7f-\x9f\u2028\u2029]", _escape, text) + "\n"


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


_LEGACY = {"message", "time", "system", "format", "isError", "failure", "why"}
"""What Twisted's older logging puts into events; all of it is told otherwise."""


def line(event: LogEvent) -> str:
    """Time, level, message, then the fields that the message does not tell."""
    parts = [_stamp(event), level_name(event), formatEvent(event), *_fields(event)]
    return _escaped(" ".join(parts)) + "\n"


def _stamp(event: LogEvent) -> str:
    time = datetime.fromtimestamp(event["log_time"], UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def level_name(event: LogEvent) -> str:
    """As in LOG_LEVEL."""
    level = event.get("log_level", LogLevel.info)
    return _NAMES.get(level) or str(level.name)


def _fields(event: LogEvent) -> list[str]:
    told = {
        re.split(r"[.\[(]", name, maxsplit=1)[0]
        for _, name, _, _ in Formatter().parse(event.get("log_format") or "")
        if name
    }
    fields = [
        f"{name}={value}"
        for name, value in event.items()
        if not name.startswith("log_") and name not in told | _LEGACY
    ]
    failure = event.get("log_failure")
    if failure is not None:
        fields.append(f"traceback={failure.getTraceback()!r}")
    return fields


def _escaped(text: str) -> str:
    return re.sub(
        r"[\x00-\x1f\x7f-\x9f\u2028\u2029]",
        lambda match: repr(match[0])[1:-1],
        text,
    )


@implementer(ILogObserver)
class LineObserver:
    """Writes events of a level and above.

    Args:
        form: makes a line of an event.
        out: for what is below warning.
        err: for warnings and errors; may be the same file.
    """

    def __init__(
        self, form: Callable[[LogEvent], str], out: TextIO, err: TextIO
    ) -> None:
        self._form = form
        self._out = out
        self._err = err

    def __call__(self, event: LogEvent) -> None:
        level = event.get("log_level", LogLevel.info)
        file = self._err if level >= LogLevel.warn else self._out
        file.write(self._form(event))
        file.flush()


_FORMS = {"text": line, "json": json_line}


def observer(level: str, form: str, out: TextIO, err: TextIO) -> ILogObserver:
    """An observer for LOG_LEVEL and LOG_FORMAT.

    Twisted's own small talk is kept for debugging.
    """
    threshold = LogLevelFilterPredicate(_LEVELS[level])
    if level == "info":
        threshold.setLogLevelForNamespace("twisted", LogLevel.warn)
        threshold.setLogLevelForNamespace("log_legacy", LogLevel.warn)
    return FilteringLogObserver(LineObserver(_FORMS[form], out, err), [threshold])


def standard_streams() -> tuple[TextIO, TextIO]:
    """The real ones: once twistd logs, `sys.stdout` and `sys.stderr` lead back here."""
    assert sys.__stdout__ is not None and sys.__stderr__ is not None
    return sys.__stdout__, sys.__stderr__
