"""The Helm chart: its objects for each file of `ci/`, and the values it refuses."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from checks.acceptance import schemas
from checks.acceptance.check import Failed, expect, go_tool, run, run_refused
from checks.acceptance.pages import checkout, script
from tests.deploy.programs import blocks
from tools.chart import CHART, DASHBOARDS, VALUES
from tools.prometheus import ALERTS, EXPORTER_RUNBOOKS, RULES

NAMESPACE = "monitoring"

NEWEST = schemas.VERSIONS[-1]

_STUB = """case $1 in
install | upgrade) ;;
*) exit ;;
esac
shift
for word; do
    shift
    case $word in --wait | --reset-then-reuse-values) ;; *) set -- "$@" "$word" ;; esac
done
exec {helm} template "$@" --kube-version {version}
"""
"""A script that replaces helm where there is no cluster."""

_IMAGE = 'image: "registry.example/api-exporter:mine"'

REFUSED: tuple[tuple[str, str], ...] = (
    ("settings: {COLECTORS: peers}", "COLECTORS"),
    ("settings: {UPSTREAM_API_TOKEN: x}", "UPSTREAM_API_TOKEN"),
    ('settings: {COLLECTORS: "a\\nb"}', "COLLECTORS"),
    ("settings: {UPSTREAM_PROXY: 'http://a:b@proxy.example'}", "UPSTREAM_PROXY"),
    ("upstream: {url: netbird.example}", "upstream/url"),
    ("upstream: {url: 'https://netbird.example/api'}", "upstream/url"),
    ("shards: 0", "shards"),
    ("shards: 2", "set accounts or accountsFrom"),
    ("accounts: {a b: {settings: {}}}", "'a b'"),
    ("accounts: {acme: {}}", "accounts/acme"),
    ("accounts: {acme: {token: {}}}", "accounts/acme/token"),
    ("accounts: {acme: {settings: {LOG_LEVEL: debug}}}", "LOG_LEVEL"),
    ("accounts: {acme: {settings: {}, existingSecret: a}}", "accounts/acme"),
    ("accounts: {a: {token: {existingSecret: b, value: c}}}", "accounts/a/token"),
    ("upstream: {token: {existingSecret: a, value: b}}", "only one"),
    ("upstream: {ca: {existingSecret: a, existingConfigMap: b}}", "only one"),
    ("shards: 2\naccountsFrom: [{existingSecret: a}]\nevents: {enabled: true}", "Many"),
    ("ingress: {enabled: true}", "ingress/hosts"),
    ("ingress: {enabled: true, hosts: [netbird.example]}", "ingress/hosts/0"),
    ("podDisruptionBudget: {enabled: true, minAvailable: 1}", "podDisruptionBudget"),
    ("podDisruptionBudget: {enabled: true, minAvailable: 1%}", "podDisruptionBudget"),
    ("podDisruptionBudget: {enabled: true, maxUnavailable: 0}", "podDisruptionBudget"),
    ("podDisruptionBudget: {enabled: true, maxUnavailable: 0%}", "drained"),
    (
        "podDisruptionBudget: {enabled: true, minAvailable: 0, maxUnavailable: 1}",
        "only one",
    ),
    ("fullnameOverride: '2026'", "fullnameOverride"),
    ("fullnameOverride: a.b", "fullnameOverride"),
    ("image: {digest: '1'}", "image/digest"),
    ("image: {pullPolicy: Sometimes}", "image/pullPolicy"),
    ("service: {type: Nodeport}", "service/type"),
    ("service: {ipFamilies: [IPv5]}", "service/ipFamilies"),
    ("scrape: {interval: soon}", "scrape/interval"),
    ("web: {config: {tls_config: {}}}", "tls_config"),
    ("web: {certificate: {existingSecret: a}}", "there would be no TLS"),
    ("web: {existingSecret: a, config: {basic_auth_users: {a: b}}}", "only one"),
    ("prometheusRule: {disabled: [NetBirdPolicy]}", "prometheusRule/disabled"),
    ("prometheusRule: {thresholds: {days: {soon: 1}}}", "soon"),
    ("prometheusRule: {thresholds: {days: {login_soon: 0}}}", "login_soon"),
    ("prometheusRule: {thresholds: {shares: {fleet_lost: 2}}}", "fleet_lost"),
    ("prometheusRule: {thresholds: {severities: {NetBirdX: info}}}", "NetBirdX"),
    ("networkPolicy: {ranges: [10.0.0.0]}", "networkPolicy/ranges"),
)
"""Refused values, and a text of each refusal."""

OPEN_TABLES = {
    "global",
    "resources.requests",
    "resources.limits",
    "podSecurityContext",
    "podSecurityContext.seccompProfile",
    "securityContext",
    "securityContext.capabilities",
    "livenessProbe",
    "readinessProbe",
    "dashboards.labels",
}
"""Tables of values that may have keys unknown to the chart."""


def examples() -> list[Path]:
    return sorted((CHART / "ci").glob("*.yaml"))


@cache
def rendered(*more: str | Path, version: str = NEWEST) -> list[dict[str, Any]]:
    """Return the objects that the chart renders: a cached value, not to be changed."""
    # On stderr, Helm says that it follows the chart's links.
    text = run(*_template(*more, version=version), stderr=subprocess.PIPE)
    return [found for found in yaml.load_all(text, yaml.CSafeLoader) if found]


def _template(*more: str | Path, version: str = NEWEST) -> tuple[str | Path, ...]:
    # A helm built by `go install` does not have a version of Kubernetes.
    kubernetes = ("--kube-version", version.removeprefix("v"))
    chart = ("template", "metrics", CHART, "--namespace", NAMESPACE)
    return (program(), *chart, *kubernetes, *more)


def _write(folder: Path, objects: list[dict[str, Any]]) -> Path:
    file = folder / "objects.yaml"
    file.write_text("\n---\n".join(map(json.dumps, objects)))
    return file


def lint(_folder: Path) -> str:
    """Check that `helm lint --strict` has no finding for any file of values."""
    helm, version = program(), NEWEST.removeprefix("v")
    for more in ((), *(("--values", path) for path in examples())):
        run(
            helm, "lint", "--strict", "--quiet", "--kube-version", version, CHART, *more
        )
    return f"no finding with the defaults and {len(examples())} files of values"


def valid(folder: Path) -> str:
    """Check that all objects match the schemas, which refuse unknown fields."""
    count, kinds = 0, {}
    for version in schemas.VERSIONS:
        found = [
            o for p in examples() for o in rendered("--values", p, version=version)
        ]
        judged = _validate(folder, version, found)
        bad = [f"{name}: {status}" for name, status in judged if status != "Valid"]
        if bad:
            raise Failed(f"{version}: {'; '.join(bad)}")
        kinds = {thing["kind"]: {**thing, "nonsense": 1} for thing in found}
        judged = _validate(folder, version, list(kinds.values()))
        accepting = [name for name, status in judged if "nonsense" not in status]
        if accepting:
            raise Failed(f"{version}: an unknown field is not refused: {accepting}")
        count += len(found)
    return f"{count} objects of {len(kinds)} kinds, {', '.join(schemas.VERSIONS)}"


def _validate(
    folder: Path, version: str, objects: list[dict[str, Any]]
) -> list[tuple[str, str]]:
    """Return the kind and name of each object, with "Valid" or its fault."""
    tool = go_tool("github.com/yannh/kubeconform", "v0.8.0", "cmd/kubeconform")
    file = _write(folder, objects)
    number = version.removeprefix("v")
    where = [f"--schema-location={place}" for place in schemas.locations()]
    asked = ("-strict", "-verbose", "-output=json", "-kubernetes-version", number)
    said = subprocess.run(
        [tool, *asked, *where, file], check=False, capture_output=True, text=True
    ).stdout
    found = [
        (
            f"{one['kind']} {one['name']}",
            one["msg"] or one["status"].removeprefix("status").capitalize(),
        )
        for one in json.loads(said)["resources"]
    ]
    if len(found) != len(objects):
        raise Failed(f"{len(found)} of {len(objects)} objects were judged")
    return found


def refused(folder: Path) -> str:
    """Check that unknown keys and wrong values are refused by name."""
    unknown = list(_add_unknown(yaml.safe_load(VALUES.read_text())))
    wrong = [(yaml.safe_load(text), named) for text, named in REFUSED]
    for values, named in [*unknown, *wrong]:
        file = folder / "values.yaml"
        file.write_text(json.dumps(values))
        refusal = run_refused(*_template("--values", file))
        if named not in refusal.replace(".", "/"):
            raise Failed(f"{values}: {refusal}")
    return f"{len(unknown)} unknown keys and {len(wrong)} wrong values"


def _add_unknown(
    defaults: dict[str, Any], path: str = ""
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield values with an unknown key in each table of the defaults."""
    if path not in OPEN_TABLES:
        yield {"nonsense": 1}, "nonsense"
    for key, value in defaults.items():
        if isinstance(value, dict) and value:
            for values, named in _add_unknown(value, f"{path}.{key}".lstrip(".")):
                yield {key: values}, named


def kept(_folder: Path) -> str:
    """Check the values that templates must keep. Names and settings that look like
    numbers remain strings. A spread constraint without a selector gets that of the
    pods; another keeps its own. Without a cluster IP, the port is that of the pod.
    """
    objects = rendered("--values", CHART / "ci/names-values.yaml")
    for thing in objects:
        metadata = thing["metadata"]
        labels = metadata["labels"].values()
        strings = [metadata["name"], metadata["namespace"], *labels]
        expect(f"{thing['kind']}: types", {str}, {*map(type, strings)})
    [work] = [o["spec"] for o in objects if o["kind"] == "Deployment"]
    [container] = work["template"]["spec"]["containers"]
    expect("image", "api-exporter:1", container["image"])
    told = {one["name"]: one["value"] for one in container["env"]}
    expect("UPSTREAM_ACCOUNT", "12345678", told["UPSTREAM_ACCOUNT"])
    spread = rendered("--values", CHART / "ci/kept-values.yaml")
    [work] = [o["spec"] for o in spread if o["kind"] == "Deployment"]
    told = work["template"]["spec"]["topologySpreadConstraints"]
    selectors = [one["labelSelector"] for one in told]
    own = {"matchLabels": {"team": "network"}}
    expect("selectors", [work["selector"], own], selectors)
    headless = rendered("--set=service.clusterIP=None,service.port=80")
    [test] = [o["spec"]["containers"][0] for o in headless if o["kind"] == "Pod"]
    url = f"http://metrics-api-exporter.{NAMESPACE}.svc:8080/ready"
    expect("headless", ["--health", url], test["args"])
    return f"{len(objects)} objects, {len(selectors)} constraints"


def documented(folder: Path) -> str:
    """Check the YAML of the chart's page, and the page's commands from a checkout.
    Without a cluster, `install` and `upgrade` print their objects, and kubectl
    succeeds.
    """
    tools = folder / "tools"
    tools.mkdir()
    shown = _STUB.format(helm=program(), version=NEWEST.removeprefix("v"))
    for name, text in (("kubectl", ""), ("helm", shown)):
        (tools / name).write_text(f"#!/bin/sh\n{text}")
        (tools / name).chmod(0o755)
    env = {"PATH": f"{tools}:{os.environ['PATH']}"}
    for heading in ("", "Upgrade", "Remove"):
        commands = script("helm.md", heading)
        text = re.sub(r"oci://\S+", lambda _: checkout("helm.md"), commands)
        shown = run("sh", "-c", text, env=env)
        if heading != "Remove" and _IMAGE not in shown:
            raise Failed(f"{heading}: {shown}")
    pieces = blocks("install/helm.md", "yaml")
    for piece in pieces:
        file = folder / "values.yaml"
        file.write_text(piece)
        run(*_template("--values", file))
    return f"{len(pieces)} pieces, and the commands"


def monitoring(_folder: Path) -> str:
    """Check that rules and dashboards equal those of `deploy`. The rules have the
    values' runbooks and no disabled alert.
    """
    on = "--set=prometheusRule.enabled=true,dashboards.enabled=true"
    objects = rendered(on)
    _check_rules(objects, set())
    shown = [o["data"] for o in objects if o["metadata"]["name"].find("dashboard") > 0]
    if shown != [{f"netbird-{p.name}": p.read_text()} for p in DASHBOARDS]:
        raise Failed("the dashboards are not those of deploy/grafana")
    example = CHART / "ci/monitoring-values.yaml"
    every = yaml.safe_load(example.read_text())
    values, runbooks = every["prometheusRule"], every["settings"]["RUNBOOKS_URL"]
    off = set(values["disabled"])
    left = _check_rules(rendered("--values", example), off, runbooks)
    if not rendered(
        "--set=prometheusRule=null,settings=null,serviceMonitor.enabled=true"
    ):
        raise Failed("nothing where there are no values of rules and no settings")
    return f"{left} alerts with values, {len(shown)} dashboards"


def _check_rules(
    objects: list[Any], off: set[str], runbooks: str = EXPORTER_RUNBOOKS
) -> int:
    made = [o["spec"]["groups"] for o in objects if o["kind"] == "PrometheusRule"]
    texts = (path.read_text() for path in (RULES, ALERTS))
    wanted = [
        yaml.safe_load(text.replace(EXPORTER_RUNBOOKS, runbooks))["groups"]
        for text in texts
    ]
    for groups in wanted:
        for group in groups:
            own = deepcopy(group["rules"]) or []
            group["rules"] = [rule for rule in own if rule.get("alert") not in off]
    if made != wanted:
        raise Failed("the rules are not those of deploy/prometheus")
    return sum("alert" in r for groups in made for g in groups for r in g["rules"])


def program() -> Path:
    return go_tool("helm.sh/helm/v3", "v3.22.0", "cmd/helm")
