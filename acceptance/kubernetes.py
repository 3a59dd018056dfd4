"""The manifests as kustomize builds them, before a critic's eyes."""

import json
import re
import subprocess
from pathlib import Path

import yaml

from acceptance.check import ROOT, Failed, go_tool, run
from acceptance.installing import same

_ALONE = "resources: [api-exporter/deploy/kubernetes]"

_GUARDED = f"{_ALONE}\ncomponents: [api-exporter/deploy/kubernetes/front-door]"

PROBES = {
    "livenessProbe": ["api-exporter", "--health"],
    "readinessProbe": ["api-exporter", "--health", "/ready"],
}
"""What asks behind a front door."""

ADDED = (
    "alert: NetBirdFleetDropped",
    "cidr: 100.64.0.0/10",
    "cidr: fc00::/7",
    'grafana_dashboard: "1"',
    "image: registry.example/api-exporter:",
    "namespace: monitoring",
    "release: kube-prometheus-stack",
    "UPSTREAM_API_URL: https://netbird.example",
    "value: /run/secrets/api-exporter-web/web.yml",
)
"""What the documentation's has, and the base has not."""

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
    """The base builds by itself, and as the documentation builds on it, which adds what
    the components have.
    """
    base, whole = _built(folder, _ALONE), _built(folder, _documented())
    operated = {"PrometheusRule", "ServiceMonitor"}
    for built, kinds in ((base, KINDS), (whole, KINDS | operated)):
        found = set(re.findall(r"^kind: (.*)$", built, re.MULTILINE))
        if found != kinds:
            raise Failed(f"kinds: {sorted(found)}")
    for text in ADDED:
        if text in base or text not in whole:
            raise Failed(f"{text!r} is not what the documentation's adds")
    lines = f"{len(base.splitlines())} lines, {len(whole.splitlines())} as documented"
    _asked(whole)
    return f"{lines}\n{_mounted(_built(folder, _GUARDED))}"


def _mounted(built: str) -> str:
    """The component of the front door mounts one Secret more, which the exporter's user
    can read and nobody can write, where the setting says; the probes ask from inside.
    """
    things = yaml.safe_load_all(built)
    [pod] = [x["spec"]["template"]["spec"] for x in things if x["kind"] == "Deployment"]
    [container] = pod["containers"]
    settings = {one["name"]: one["value"] for one in container["env"]}
    mounts = {Path(one["mountPath"]): one for one in container["volumeMounts"]}
    volumes = {one["name"]: one for one in pod["volumes"]}
    same("volumes", sorted(one["name"] for one in mounts.values()), sorted(volumes))
    seen = []
    for name in ("UPSTREAM_API_TOKEN_FILE", "WEB_CONFIG_FILE"):
        file = Path(settings[name])
        mount = mounts[file.parent]
        secret = volumes[mount["name"]]["secret"]
        same("a mount that is read only", True, mount["readOnly"])
        same("a file of the Secret", True, _key(secret["secretName"], file.name))
        same("its mode", 0o440, secret["defaultMode"])
        seen.append(f"{secret['secretName']} at {file.parent}")
    context = pod["securityContext"]
    same("the files' group", context["runAsGroup"], context["fsGroup"])
    asked = {name: container[name]["exec"]["command"] for name in PROBES}
    same("probes", PROBES, asked)
    return f"front-door: {', '.join(seen)}; probes {asked}"


def _asked(built: str) -> None:
    """Where there is a ServiceMonitor, too, it comes by TLS and with a password."""
    things = yaml.safe_load_all(built)
    [monitor] = [x for x in things if x["kind"] == "ServiceMonitor"]
    [endpoint] = monitor["spec"]["endpoints"]
    same("scheme", "https", endpoint["scheme"])
    tls, login = endpoint["tlsConfig"], endpoint["basicAuth"]
    for one in (tls["ca"]["secret"], login["username"], login["password"]):
        same(f"{one['key']} of the Secret", True, _key(one["name"], one["key"]))


def _key(secret: str, file: str) -> bool:
    """Whether the comments have a Secret made with this file."""
    said = "".join(
        path.read_text() for path in ROOT.glob("deploy/kubernetes/**/*.yaml")
    )
    said = said.replace("\\\n#", "")
    made: list[str] = re.findall(rf"secret generic {secret} (.*)$", said, re.MULTILINE)
    given = rf"--from-(file|literal)={re.escape(file)}\b"
    return any(re.search(given, one) for one in made)


def score(folder: Path) -> str:
    """kube-score has no finding that is not explained."""
    tool = go_tool("github.com/zegl/kube-score/cmd/kube-score", "v1.20.0")
    printed = subprocess.run(
        [tool, "score", "--output-format", "json", "-"],
        check=False,
        capture_output=True,
        input=_built(folder, _documented()),
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


def manifests(folder: Path) -> str:
    """What is built as the documentation builds it."""
    return _built(folder, _documented())


def _documented() -> str:
    """What the documentation builds on the base."""
    text = (ROOT / "docs/deployment.md").read_text()
    found = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    [kustomization] = [str(x) for x in found if "kind: Kustomization" in x]
    return kustomization


def _built(folder: Path, kustomization: str) -> str:
    """What kustomize makes of it, beside a checkout that is called api-exporter."""
    tool = go_tool("sigs.k8s.io/kustomize/kustomize/v5", "v5.7.1")
    checkout = folder / "api-exporter"
    if not checkout.exists():
        checkout.symlink_to(ROOT)
    (folder / "kustomization.yaml").write_text(kustomization)
    return run(tool, "build", folder)
