"""Alerts and findings go by the same numbers of `thresholds.json`."""

import re

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import default_thresholds
from tests.prometheus import SOURCE

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
        source = "".join(
            path.read_text() for path in sorted((SOURCE / "subjects").rglob("*.py"))
        )
        named = set(re.findall(r'"((?:NetBird|ApiExporter)\w+)"', source))
        self.assertEqual(set(default_thresholds().severities) - OTHERS, named)
