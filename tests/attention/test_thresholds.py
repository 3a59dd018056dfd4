"""Alerts and findings go by the same numbers of `thresholds.json`."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import default_thresholds
from api_exporter.subjects.table import FINDERS

OTHERS = {
    # Only Prometheus can detect these.
    "ApiExporterDown",
    "ApiExporterEventLoopStalled",
    "NetBirdManagementUpdate",
    # This is part of the finding of its network.
    "NetBirdResourceUnreachable",
    # Other sections of the page show these: they are not about the network.
    "ApiExporterDataLate",
    "ApiExporterRateLimited",
    "ApiExporterTokenFileUnreadable",
    # Authentication belongs to the process, which may have many accounts: see its log.
    "ApiExporterWebConfigBroken",
    # Likewise for the two logs. A share of requests needs a history of counters.
    "NetBirdProxyLoginsRefused",
    "ApiExporterAccessLogLate",
    "ApiExporterAccessLogMissed",
    "NetBirdProxyServiceErrors",
    "NetBirdProxyServiceSilent",
    "ApiExporterAuditEventsMissed",
    "ApiExporterAuditEventsNotWritten",
}
"""Alerts without a finding."""


class ThresholdsTests(SynchronousTestCase):
    def test_names(self) -> None:
        """Each finding has an alert, and nearly each alert has a finding."""
        named = {k.name for finder in FINDERS for k in finder.kinds if k.has_alert}
        self.assertEqual(set(default_thresholds().severities) - OTHERS, named)
