"""Tests, in the same rooms as what they test.

How long an example takes is no property of the code: others use this machine, too. The
gate tries the same examples each time; at a desk they are others at each run.

Attributes:
    THOROUGH: whether all examples, seeds and hours are tried, and answers are measured
        in seconds: `make acceptance ONLY=thorough`, on a machine of its own.
"""

import os

from hypothesis import HealthCheck, settings

THOROUGH = "THOROUGH" in os.environ


def tries(many: int) -> int:
    """Examples, seeds or hours: all where the run is thorough, else a quarter."""
    return many if THOROUGH else max(1, many // 4)


settings.register_profile(
    "api-exporter",
    deadline=None,
    derandomize="CI" in os.environ,
    max_examples=tries(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("api-exporter")
