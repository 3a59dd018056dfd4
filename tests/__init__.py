"""Tests, in the same folders as the modules that they test.

How long an example takes is no property of the code, because other programs share
the machine. `make check` uses the same examples each time; other runs use new ones.

Attributes:
    THOROUGH: whether all examples, seeds and hours run, and responses are measured
        in seconds: `make acceptance ONLY=thorough`, on a machine of its own.
"""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir

THOROUGH = "THOROUGH" in os.environ


def tries(many: int) -> int:
    """Return the number of examples, seeds or hours; a quarter unless thorough."""
    return many if THOROUGH else max(1, many // 4)


# What it reads in all our modules is read once, not by each worker in its own folder.
set_hypothesis_home_dir(Path(__file__).parents[1] / ".hypothesis")
settings.register_profile(
    "api-exporter",
    deadline=None,
    derandomize="CI" in os.environ,
    max_examples=tries(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("api-exporter")

if path := os.environ.get("TEST_DURATIONS"):
    from tools.durations import record

    record(Path(path))
