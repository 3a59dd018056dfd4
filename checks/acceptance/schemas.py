"""The schemas of Kubernetes' kinds and of the Prometheus operator's kinds."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from checks.acceptance.check import BUILD, Failed, Missing, go, run

WHEEL = "kubernetes-validate==1.37.0"
"""A package of PyPI with the schemas of many versions."""

OPERATOR = "github.com/prometheus-operator/prometheus-operator"
OPERATOR_VERSION = "v0.85.0"

VERSIONS = ("v1.25.0", "v1.31.0", "v1.37.0")
"""The oldest version that the chart allows, the newest one, and one between."""

KINDS = ("podmonitors", "prometheusrules", "scrapeconfigs", "servicemonitors")
"""The operator's kinds that the chart renders."""


def locations() -> list[str]:
    """Return the locations of the schemas in kubeconform's syntax."""
    name = "{{ .ResourceKind }}{{ .KindSuffix }}.json"
    version = "{{ .NormalizedKubernetesVersion }}"
    return [f"{_kubernetes()}/{version}/{name}", f"{_operator()}/{name}"]


def _kubernetes() -> Path:
    """Return the wheel's strict schemas in kubeconform's layout."""
    home = BUILD / f"kubernetes-{WHEEL.rpartition('=')[2]}"
    if not home.exists():
        wheel = BUILD / "wheel"
        target = ("--target", wheel, "--no-deps", "--upgrade")
        try:
            run(sys.executable, "-m", "pip", "install", "--quiet", *target, WHEEL)
        except Failed as error:
            raise Missing(f"{WHEEL}: {error}") from None
        made = _new_folder(home)
        for version in VERSIONS:
            source = (
                f"kubernetes_validate/kubernetes-json-schema/{version}-local-strict"
            )
            (made / version).mkdir()
            for file in (wheel / source).iterdir():
                text = file.read_text().replace('"/api/_definitions', '"_definitions')
                document = json.loads(text)
                document.pop("$id", None)
                (made / version / file.name).write_text(json.dumps(document))
        made.rename(home)
        shutil.rmtree(wheel)
    return home


def _new_folder(home: Path) -> Path:
    """Return an empty folder, which the caller renames when it is complete."""
    made = home.with_name(f"{home.name}.part")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    return made


def _operator() -> Path:
    """Return schemas of the operator's definitions that refuse unknown fields."""
    home = BUILD / f"operator-{OPERATOR_VERSION}"
    if not home.exists():
        work = BUILD / "module"
        work.mkdir(parents=True, exist_ok=True)
        (work / "go.mod").write_text("module tools\n")
        wanted = f"{OPERATOR}@{OPERATOR_VERSION}"
        try:
            command = (go(), "mod", "download", "-json", wanted)
            told = run(*command, cwd=work, stderr=subprocess.PIPE)
        except Failed as error:
            raise Missing(f"{wanted}: {error}") from None
        source = Path(json.loads(told)["Dir"])
        made = _new_folder(home)
        for kind in KINDS:
            file = f"example/prometheus-operator-crd/monitoring.coreos.com_{kind}.yaml"
            defined = yaml.safe_load((source / file).read_text())["spec"]
            for version in defined["versions"]:
                name = f"{defined['names']['singular']}-monitoring-{version['name']}"
                schema = _strict(version["schema"]["openAPIV3Schema"])
                (made / f"{name}.json").write_text(json.dumps(schema))
        made.rename(home)
    return home


def _strict(schema: Any) -> Any:
    """Return a strict JSON Schema that allows only named fields."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _strict(value) for key, value in schema.items()}
    if found.get("x-kubernetes-int-or-string"):
        found.pop("type", None)
        found["type"] = ["integer", "string"]
    known = found.get("properties")
    if known and "x-kubernetes-preserve-unknown-fields" not in found:
        found.setdefault("additionalProperties", False)
    return found
