"""Tests, in the same rooms as what they test.

How long an example takes is no property of the code: others use this machine, too.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "api-exporter", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("api-exporter")
