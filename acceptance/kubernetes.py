"""The manifests as kustomize builds them, before a critic's eyes."""

import json
import os
import subprocess
from pathlib import Path

from acceptance.check import ROOT, Failed, go_tool, run

BASE = ROOT / "deploy/kubernetes"

COMPONENTS = ("netbird", "servicemonitor")

KINDS = {"ConfigMap", "Deployment", "NetworkPolicy", "Service"}

EXPLAINED = {
    "container-ephemeral-storage-request-and-limit": "it writes nothing",
    "container-image-pull-policy": "a tag is not moved",
    "container-resources": "a limit of the processor makes a refresh slow, not small",
    "pod-networkpolicy": "the address of the API differs from place to place",
    "deployment-replicas": "two pods would share one token's budget",
    "deployment-strategy": "so would the old and the new one",
}
"""Findings that stay, and why."""


def builds(folder: Path) -> str:
    """The base builds by itself, and with each component has what that adds."""
    base, whole = _built(folder), _built(folder, *COMPONENTS)
    for built, kinds in ((base, KINDS), (whole, KINDS | {"ServiceMonitor"})):
        found = {
            x.removeprefix("kind: ") for x in built.splitlines() if x[:6] == "kind: "
        }
        if found != kinds:
            raise Failed(f"kinds: {sorted(found)}")
    for text in ("cidr: 100.64.0.0/10", "cidr: fc00::/7", "release: kube-"):
        if text in base or text not in whole:
            raise Failed(f"{text} is not what a component adds")
    return f"{len(base.splitlines())} lines, {len(whole.splitlines())} with components"


def score(folder: Path) -> str:
    """kube-score has no finding that is not explained."""
    tool = go_tool("github.com/zegl/kube-score/cmd/kube-score", "v1.20.0")
    printed = subprocess.run(
        [tool, "score", "--output-format", "json", "-"],
        check=False,
        capture_output=True,
        input=_built(folder, *COMPONENTS),
        text=True,
    ).stdout
    found = {
        (check["check"]["id"], grade)
        for thing in json.loads(printed)
        for check in thing["checks"]
        if not check["skipped"] and (grade := check["grade"]) < 10
    }
    new = {name for name, _ in found} - EXPLAINED.keys()
    if new:
        raise Failed(f"not explained: {', '.join(sorted(new))}")
    return f"{len(found)} findings, each explained: " + "; ".join(
        f"{name} ({EXPLAINED[name]})" for name in sorted({name for name, _ in found})
    )


def _built(folder: Path, *components: str) -> str:
    """What kustomize makes of the base with some components."""
    tool = go_tool("sigs.k8s.io/kustomize/kustomize/v5", "v5.7.1")
    base = os.path.relpath(BASE, folder)
    (folder / "kustomization.yaml").write_text(
        json.dumps(
            {
                "resources": [base],
                "components": [f"{base}/{name}" for name in components],
            }
        )
    )
    return run(tool, "build", folder)
