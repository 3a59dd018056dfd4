"""The manifests before a critic's eyes."""

import json
import subprocess
from pathlib import Path

from acceptance.check import ROOT, Failed, go_tool

EXPLAINED = {
    "container-image-tag": "the operator's own registry and tag stand there",
    "container-ephemeral-storage-request-and-limit": "it writes nothing",
    "container-resources": "a limit of the processor makes a refresh slow, not small",
    "pod-networkpolicy": "the address of the API differs from place to place",
    "deployment-replicas": "two pods would share one token's budget",
}
"""Findings that stay, and why."""


def score(_folder: Path) -> str:
    """kube-score has no finding that is not explained."""
    tool = go_tool("github.com/zegl/kube-score/cmd/kube-score", "v1.20.0")
    manifests = [
        path
        for path in sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
        if path.name != "kustomization.yaml"
    ]
    printed = subprocess.run(
        [tool, "score", "--output-format", "json", *manifests],
        check=False,
        capture_output=True,
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
