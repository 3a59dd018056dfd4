"""The expiry times of certificates as metrics."""

from functools import partial

from prometheus_client import CollectorRegistry
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.telemetry.gauges import register_client_gauges

NAME = "api_exporter_{}_certificate_expiration_timestamp_seconds"


class CertificateEndsTests(SynchronousTestCase):
    def test_absent(self) -> None:
        """An unknown expiry time has no series."""
        known: dict[str, float] = {}
        registry = CollectorRegistry()
        upstream, client = (partial(known.get, side) for side in ("upstream", "client"))
        register_client_gauges(registry, upstream_expiry=upstream, client_expiry=client)
        for known_ends in ({}, {"upstream": 1.0, "client": 2.0}):
            known.update(known_ends)
            for side in ("upstream", "client"):
                found = registry.get_sample_value(NAME.format(side))
                self.assertEqual(known_ends.get(side), found)
