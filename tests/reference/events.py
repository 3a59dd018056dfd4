"""The audit log."""

from tests.reference.bodies import Known
from tests.reference.fields import instant, text
from tests.reference.page import Page, Settings


def events(page: Page, known: Known, _settings: Settings) -> None:
    for event in known.get("events", []):
        code = text(event, "activity_code")
        page.add("audit_events", 1, activity_code=code)
        page.latest(
            "audit_event_last_timestamp_seconds",
            instant(event, "timestamp"),
            activity_code=code,
        )
