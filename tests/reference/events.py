"""The audit log."""

from tests.reference.bodies import Known
from tests.reference.fields import instant, text
from tests.reference.page import Page, Settings


def events(known: Known, _settings: Settings) -> Page:
    page = Page()
    for event in known.get("events", []):
        code = text(event, "activity_code")
        page.add("netbird_api_audit_events", 1, activity_code=code)
        page.latest(
            "netbird_api_audit_event_last_timestamp_seconds",
            instant(event, "timestamp"),
            activity_code=code,
        )
    return page
