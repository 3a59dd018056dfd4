"""Alerts and findings go by the same numbers of `thresholds.json`."""

import re

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.attention.thresholds import shipped
from tests.prometheus import SOURCE

OTHERS = {
    # Only Prometheus can tell.
    "ApiExporterDown",
    "ApiExporterEventLoopStalled",
    "NetBirdManagementUpdate",
    # Part of the finding of its network.
    "NetBirdResourceUnreachable",
    # The page tells of these elsewhere: they are no concern of the network.
    "ApiExporterDataLate",
    "ApiExporterRateLimited",
    "ApiExporterTokenFileUnreadable",
    # The door is the process's, which may have many accounts: its log tells.
    "ApiExporterWebConfigBroken",
    # So does it of the two logs. A share of requests needs a history of counters.
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
        """Each finding is of an alert that there is, and nearly each alert has one."""
        source = "".join(
            path.read_text()
            for path in sorted((SOURCE / "attention").iterdir())
            if path.suffix == ".py"
        )
        named = set(re.findall(r'"((?:NetBird|ApiExporter)\w+)"', source))
        self.assertEqual(set(shipped().severities) - OTHERS, named)
