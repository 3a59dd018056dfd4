"""The audit log."""

from tests.reference.fields import Known, instant, text
from tests.reference.page import Page, Settings
from tests.reference.shapes import thing

RECORDS = {"events": thing("id activity_code", times="timestamp")}


def events(page: Page, known: Known, _settings: Settings) -> None:
    for event in known.get("events", []):
        code = text(event, "activity_code")
        page.add("audit_events", 1, activity_code=code)
        page.latest(
            "audit_event_last_timestamp_seconds",
            instant(event, "timestamp"),
            activity_code=code,
        )
