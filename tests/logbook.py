"""The log lines of a test, as an operator would see them."""

from unittest import TestCase

from twisted.logger import ILogObserver, LogEvent, LogLevel, globalLogPublisher
from zope.interface import implementer

from api_exporter.daemon import logs


@implementer(ILogObserver)
class Logbook:
    """Collects the package's log lines, without their times."""

    def __init__(self) -> None:
        self.events: list[LogEvent] = []

    def __call__(self, event: LogEvent) -> None:
        namespace = event.get("log_namespace", "")
        if namespace.startswith("api_exporter") and not namespace.startswith(
            logs.TWISTED_NAMESPACES
        ):
            self.events.append(event)

    def lines(self, least: LogLevel = LogLevel.info) -> list[str]:
        """Return level and message of all lines of at least this level."""
        events = (e for e in self.events if e["log_level"] >= least)
        lines = (logs.text_line(event).partition(" ")[2] for event in events)
        return [line.rstrip("\n") for line in lines]


def logbook(test: TestCase) -> Logbook:
    book = Logbook()
    globalLogPublisher.addObserver(book)
    test.addCleanup(globalLogPublisher.removeObserver, book)
    return book
