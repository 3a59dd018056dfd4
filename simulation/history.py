"""The history of a run: the last events as text, all events as a digest."""

from collections import deque
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from twisted.logger import ILogObserver, LogEvent, LogLevel, formatEvent
from zope.interface import implementer

MAX_RECENT_EVENTS = 40
"""Events that the report of a failure shows."""

KEPT = "the previous settings stay in use"
"""The end of a line about settings that a reload refuses."""


@implementer(ILogObserver)
class History:
    """An observer of all events, the exporter's log lines included.

    Args:
        seconds: returns seconds of the simulated clock.
        folder: the folder of the run. Its random name is removed from all texts.

    Attributes:
        errors: log events that no log may have, with their tracebacks.
        is_deaf: whether log events are ignored.
        lines: the account and the text of each of the exporter's log lines.
    """

    def __init__(self, seconds: Callable[[], float], folder: Path) -> None:
        self._seconds = seconds
        self._folder = str(folder)
        self._digest = sha256()
        self.recent: deque[str] = deque(maxlen=MAX_RECENT_EVENTS)
        self.errors: list[str] = []
        self.is_deaf = False
        self.lines: list[tuple[str, str]] = []
        self.counts: dict[str, int] = {}

    def note(self, kind: str, words: str) -> None:
        words = words.replace(self._folder, "")
        line = f"{self._seconds():.3f} {kind}: {words}"
        self._digest.update(line.encode() + b"\n")
        self.recent.append(line)
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def __call__(self, event: LogEvent) -> None:
        """See ILogObserver."""
        if self.is_deaf or event.get("log_level") is LogLevel.debug:
            return
        words = formatEvent(event).replace(self._folder, "")  # it may look personal
        if "log_failure" in event:
            self.errors.append(f"{words}\n{event['log_failure'].getTraceback()}")
        elif event.get("log_level") not in {
            LogLevel.info,
            LogLevel.warn,
        } and not words.endswith(KEPT):  # A file is missing at a reload.
            self.errors.append(words)
        if event.get("log_namespace", "").startswith("api_exporter"):
            account = event.get("account", "")
            self.lines.append((account, words))
            self.note("log", f"{account} {words}")

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()
