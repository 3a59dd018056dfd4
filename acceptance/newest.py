"""The newest available Prometheus, in addition to Debian's."""

import os
import re
from pathlib import Path

from acceptance.check import Failed, go_tool, run, run_tests
from tests.bodies import inventory
from tests.collectors.samples import page

VERSION = "3.16.0"

# Service discovery by files and HTTP is enough, and needs no vendor's library.
_BUILD = (
    "-tags=remove_all_sd",
    f"-ldflags=-X github.com/prometheus/common/version.Version={VERSION}",
)

TESTS = (
    "tests.deploy.test_prometheus",
    "tests.deploy.test_unix_socket",
    "tests.deploy.test_monitoring_netbird",
    "tests.integration.test_prometheus",
    "tests.integration.test_accounts",
    "tests.integration.test_service_discovery",
    "tests.test_golden",
)
"""The tests that run Prometheus or promtool."""


def prometheus(folder: Path) -> str:
    """Check that all tests with Prometheus pass with it, and none is skipped."""
    for name in ("prometheus", "promtool"):
        module = f"github.com/prometheus/prometheus/cmd/{name}"
        # Its Go modules are numbered v0.3xx: 3.16.0 is v0.316.0.
        tool = go_tool(module, f"v0.{VERSION.replace('.', '', 1)}", *_BUILD)
        (folder / name).symlink_to(tool)
    said = run(folder / "prometheus", "--version").splitlines()[0]
    if VERSION not in said:
        raise Failed(said)
    golden = folder / "page.txt"
    golden.write_text(page(inventory()))
    run("sh", "-c", f"{folder}/promtool check metrics --extended <{golden}")
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    told = run_tests(*TESTS, folder=folder, env=path)
    counts = told.splitlines()[-1]
    if re.search(r"skips", counts):
        raise Failed(told)
    return f"{said.partition(' (')[0]}: {counts.lower()}"
