"""The events collector."""

from datetime import UTC, datetime, timedelta

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.inventory import Inventory
from api_exporter.netbird.records import AuditEvent
from tests.collectors.samples import scrape

NOON = datetime(2026, 5, 22, 12, tzinfo=UTC)
EARLIER = NOON - timedelta(hours=1)


class EventsTests(SynchronousTestCase):
    def test_unknown(self) -> None:
        """Unknown or missing events have no series."""
        self.assertEqual({}, scrape("events", Inventory()))
        self.assertEqual({}, scrape("events", Inventory(events=())))

    def test_by_activity(self) -> None:
        """Events are counted by activity, each with the time of its newest event."""
        events = (
            AuditEvent(id="1", activity_code="user.block", timestamp=EARLIER),
            AuditEvent(id="2", activity_code="user.block", timestamp=NOON),
            AuditEvent(id="3", activity_code="user.block", timestamp=EARLIER),
            AuditEvent(id="4", activity_code="brand.new", timestamp=EARLIER),
            AuditEvent(id="5", activity_code="timeless"),
            AuditEvent(id="6", timestamp=datetime(1, 1, 1, tzinfo=UTC)),
        )
        self.assertEqual(
            {
                "audit_events": [
                    '{activity_code=""} 1',
                    '{activity_code="brand.new"} 1',
                    '{activity_code="timeless"} 1',
                    '{activity_code="user.block"} 3',
                ],
                "audit_event_last_timestamp_seconds": [
                    '{activity_code="brand.new"} 1779447600',
                    '{activity_code="user.block"} 1779451200',
                ],
            },
            scrape("events", Inventory(events=events)),
        )
