"""Tests, in the same rooms as what they test.

How long an example takes is no property of the code: others use this machine, too. The
gate tries the same examples each time; at a desk they are others at each run.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "api-exporter",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("api-exporter")
