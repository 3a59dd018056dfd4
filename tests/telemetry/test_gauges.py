"""The expiry times of certificates as metrics."""

from prometheus_client import CollectorRegistry
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.telemetry.gauges import register_certificate_expiry

NAME = "api_exporter_{}_certificate_expiration_timestamp_seconds"


class CertificateEndsTests(SynchronousTestCase):
    def test_absent(self) -> None:
        """An unknown expiry time has no series."""
        known: dict[str, float] = {}
        registry = CollectorRegistry()
        register_certificate_expiry(
            registry,
            upstream=lambda: known.get("upstream"),
            client=lambda: known.get("client"),
        )
        value = registry.get_sample_value
        self.assertIsNone(value(NAME.format("upstream")))
        self.assertIsNone(value(NAME.format("client")))
        known["upstream"], known["client"] = 1.0, 2.0
        self.assertEqual(1, value(NAME.format("upstream")))
        self.assertEqual(2, value(NAME.format("client")))
