"""The TLS server under sslyze."""

import json
import re
import subprocess
from pathlib import Path

from checks.acceptance.check import Failed, pip_tool
from checks.acceptance.simulated import demo
from tests.authority import Authority

WEB = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n"

PROFILE = "intermediate"
"""The Mozilla profile for servers that also support clients older than the newest."""

WEAKNESSES = (
    ("heartbleed", "is_vulnerable_to_heartbleed"),
    ("openssl_ccs_injection", "is_vulnerable_to_ccs_injection"),
    ("tls_compression", "supports_compression"),
    ("session_renegotiation", "is_vulnerable_to_client_renegotiation_dos"),
    ("tls_1_3_early_data", "supports_early_data"),
)
"""The names of sslyze's tests, each with the result that reports the weakness."""


def sslyze(folder: Path) -> str:
    """Check that sslyze finds no weakness and nothing outside Mozilla's profile."""
    tool = pip_tool("sslyze", "sslyze")
    Authority().server().write(folder, "server")
    (folder / "web.yml").write_text(WEB)
    with demo(folder, WEB_CONFIG_FILE=f"{folder}/web.yml") as port:
        report = folder / "report.json"
        said = subprocess.run(
            [
                tool,
                f"--mozilla_config={PROFILE}",
                *("--heartbleed", "--openssl_ccs", "--compression"),
                *("--reneg", "--early_data"),
                f"--json_out={report}",
                f"localhost:{port}",
            ],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        ).stdout
    _, _, judged = said.partition("COMPLIANCE")
    objections = dict(re.findall(r"^ +\* (\w+): (.*)$", judged, re.MULTILINE))
    objections.pop("certificate_path_validation", None)  # the authority is our own
    if objections or not report.exists():
        raise Failed(judged or said)
    [scanned] = json.loads(report.read_text())["server_scan_results"]
    tried: list[str] = []
    weak: list[str] = []
    for name, key in WEAKNESSES:
        found = scanned["scan_result"][name]["result"]
        if found is not None:
            (weak if found[key] else tried).append(name)
    if weak or not tried:
        raise Failed(f"weak: {weak}")
    return f"all that Mozilla's {PROFILE} profile asks for; none of {', '.join(tried)}"
