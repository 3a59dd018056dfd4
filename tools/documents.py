"""The documents that are made from the code: `python -m tools.documents` writes them.

They are committed in `docs/`; a test fails if one of them is stale.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import yaml
from prometheus_client import CollectorRegistry

from api_exporter.attention.thresholds import SEVERITIES, default_thresholds
from api_exporter.collectors.collector import Collector
from api_exporter.exposition.pages import Pages
from api_exporter.exposition.text import Metric
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.netbird.unknown import Unknown
from api_exporter.ports import Attempt
from api_exporter.settings.definitions import ACCOUNT_SETTINGS, LIVE_SETTINGS, SECTIONS
from api_exporter.settings.setting import Setting
from api_exporter.subjects.table import COLLECTORS, RESOURCE_BY_NAME
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.gauges import (
    register_client_gauges,
    register_finding_gauges,
    register_page_gauges,
)
from api_exporter.telemetry.logs import AccessLogTelemetry, EventsTelemetry
from api_exporter.telemetry.process import (
    register_access_metrics,
    register_account_gauges,
)
from tests.bodies import inventory
from tests.parts import process_telemetry
from tools.correctness import correctness
from tools.manual import manual
from tools.markdown import table
from tools.prometheus import ALERTS
from tools.roles import roles_table

ROOT = Path(__file__).parent.parent

MADE = "<!-- Below: made from the code by `make docs`. -->\n"
"""A line of a document: what is above it is written by hand."""

EXPORTER = """\
### The exporter itself

The exporter also has `process_*`, `python_gc_*` and `python_info`.
"""


def completed(path: str, *parts: str) -> str:
    """Return a document whose part below the mark is replaced."""
    head = (ROOT / path).read_text(encoding="utf-8").partition(MADE)[0]
    return "\n".join([head + MADE, *parts])


def code(*words: str) -> str:
    """Format words as code; none is a dash."""
    return ", ".join(f"`{word}`" for word in words) or "–"


def metrics() -> str:
    """Return the page of metrics: the collectors' families, and our own."""
    return completed(
        "docs/metrics.md", *map(_collector, COLLECTORS), f"{EXPORTER}\n{_own()}"
    )


def _subject(collector: Collector) -> ModuleType:
    return sys.modules[f"api_exporter.subjects.{collector.name}"]


def _collector(collector: Collector) -> str:
    words = " ".join((_subject(collector).__doc__ or "").split())
    paths = {name: RESOURCE_BY_NAME[name].path for name in collector.reads}
    read = ", ".join(f"`{name}` (`/{path}`)" for name, path in paths.items())
    default = "" if collector.default else " Off unless `COLLECTORS` names it."
    families = _families(collector, personal=False)
    personal = _families(collector, personal=True)
    rows = (
        (
            code(metric.name),
            "gauge",
            ", ".join(
                [f"`{label}`" for label in labels]
                + [f"_`{label}`_" for label in personal[metric] if label not in labels]
            )
            or "–",
            _series(metric, labels or personal[metric]),
            metric.help
            + (
                f", always {metric.self_hosted} on a self-hosted server"
                if metric.self_hosted
                else ""
            ),
            metric.source,
            metric.alert or "–",
        )
        for metric, labels in families.items()
    )
    heads = ("metric", "type", "labels", "series", "meaning", "API field", "alert on")
    intro = f"### {collector.name}\n\n{words}{default} Reads {read}.\n\n"
    return intro + table(heads, rows)


_KEYS_BESIDE = ("router_id", "peer_id")
"""Ids that, beside another object's, make a series each."""


def _series(metric: Metric, labels: list[str]) -> str:
    """Return how many series a family has, according to its labels."""
    key = labels[0] if labels else ""
    if not key.endswith("_id"):  # not of objects
        if labels in (["connected"], ["enabled"]):
            return "2"
        single = not labels or metric.name.endswith("_info")
        return "1" if single else f"1 per {_words(labels)}"
    others = [
        label
        for label in labels[1:]
        if label in _KEYS_BESIDE or not (label.endswith("_id") or label in key)
    ]
    number = "1"
    if metric.name.endswith("_info"):
        others = []
    elif others == ["enabled"]:
        number, others = "2", []
    detail = ", as `PEER_DETAIL` allows" if metric.of_peer else ""
    return f"{number} per {_words([key, *others])}{detail}"


def _words(labels: list[str]) -> str:
    words = [label.removesuffix("_id").replace("_", " ") for label in labels]
    *before, last = dict.fromkeys(words)
    return " and ".join([*filter(None, [", ".join(before)]), last])


def _families(collector: Collector, *, personal: bool) -> dict[Metric, list[str]]:
    """Return the label names of each family, from its first sample."""
    return {
        family.metric: re.findall(
            r'(\w+)="(?:\\.|[^"\\])*"', next(iter(family.samples), ("", 0))[0]
        )
        for family in collector.make_families(inventory(personal=personal))
    }


PEERS_READ = ResourceState(
    interval=30,
    ended_at=1,
    seconds=1,
    last_success=1,
    records=1,
    unknown=Unknown(values=frozenset({("kind", "new")})),
)


def _own() -> str:
    telemetry = AccountTelemetry(
        registry=CollectorRegistry(),
        states={"peers": PEERS_READ},
        created=1,
        reasons={"timeout": 1},
        collectors=["peers"],
        budget=lambda: 6.0,
    )
    register_client_gauges(
        telemetry.registry,
        upstream_expiry=lambda: 1,
        client_expiry=lambda: 1,
        token_readable=lambda: True,
        certificate_readable=lambda: True,
    )
    EventsTelemetry(telemetry.registry)
    access_log = AccessLogTelemetry(telemetry.registry, now=lambda: 1, writes=True)
    access_log.set_services({"a": "web"})
    access_log.record_progress(0, 0)
    access_log.count_recent_rows([b'{"service_id":"a","status_code":401}'], 0)
    register_page_gauges(telemetry.registry, Pages(["peers"]))
    register_finding_gauges(
        telemetry.registry,
        findings=lambda: {"critical": 0},
        series=lambda: {("NetBirdPolicyEmpty", "info", "policy", "p", "all"): 1.0},
        omitted=lambda: {"NetBirdPolicyEmpty": 1},
        thresholds=lambda: {"days.management_update": 14},
    )
    process = process_telemetry()
    register_access_metrics(
        process.registry, is_valid=lambda: True, loaded_at=lambda: 1
    )
    register_account_gauges(process.registry, lambda: {"acme": telemetry})
    telemetry.count_attempt(
        Attempt(
            path="", number=1, started=1, status=200, received=1, seconds=1, error=None
        )
    )
    rows = (
        (
            code(family.name + ("_total" if family.type == "counter" else "")),
            family.type,
            code(*(name for name in family.samples[0].labels if name != "le")),
            family.documentation,
        )
        for family in (*telemetry.registry.collect(), *process.registry.collect())
        if not family.name.startswith(("process_", "python_"))
    )
    return table(("metric", "type", "labels", "meaning"), rows)


def configuration() -> str:
    """Return the page of settings, and of names that two of them use."""
    heads = ("name", "default", "of", "change", "allowed", "meaning")
    return completed(
        "docs/configuration.md",
        *(
            f"## {title}\n\n{table(heads, map(_setting, settings))}"
            for title, settings in SECTIONS.items()
        ),
        "## Names\n",
        f"`COLLECTORS`: {code('default', *(c.name for c in COLLECTORS))}.\n",
        "`REFRESH_INTERVALS`, with the defaults in seconds ([metrics](metrics.md)"
        " has the paths). `access_log` takes `off` only.\n",
        table(("default", "resources"), _intervals()),
    )


def _intervals() -> Iterator[tuple[str, str]]:
    names: dict[float, list[str]] = {}
    for resource in RESOURCE_BY_NAME.values():
        names.setdefault(resource.interval, []).append(resource.name)
    for interval in sorted(names):
        yield f"{interval:.0f}", code(*names[interval])


def _setting(setting: Setting) -> tuple[str, ...]:
    default = code(*filter(None, [setting.default]))
    return (
        code(setting.name),
        "required" if setting.default is None else default,
        "account" if setting in ACCOUNT_SETTINGS else "process",
        "reload" if setting.name in LIVE_SETTINGS else "restart",
        setting.allowed,
        setting.meaning,
    )


CONTENTS = "<!-- contents -->\n"

RUNBOOKS = {
    "Exporter": "ApiExporter",
    "Networks and routes": "NetBird(Network|Resource|Route)",
    "Peers and groups": "NetBird(Fleet|Peer|Login|Important)",
    "Reverse proxy": "NetBirdProxy",
    "Agent Network": "NetBirdAgent",
    "Account": "",
}
"""The beginning of the alerts of each subject; the first one counts."""


def runbooks() -> str:
    """Return the runbooks with a list of all by subject, the most severe first."""
    text = (ROOT / "docs/runbooks.md").read_text(encoding="utf-8")
    head, *_, rest = text.split(CONTENTS)
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    severity = default_thresholds().severities | {
        rule["alert"]: rule["labels"]["severity"]
        for group in groups
        for rule in group["rules"]
        if "severity" in rule.get("labels", {})
    }
    names = re.findall(r"^## (\w+)$", rest, re.MULTILINE)
    listed: dict[tuple[str, str], list[str]] = {}
    for name in names:
        subject = next(s for s, begin in RUNBOOKS.items() if re.match(begin, name))
        link = f"[{name}](#{name.lower()})"
        listed.setdefault((subject, severity[name]), []).append(link)
    lines = []
    for subject in RUNBOOKS:
        lines.append(f"* **{subject}**\n")
        lines += [
            f"  * {kind}: {', '.join(listed[subject, kind])}\n"
            for kind in SEVERITIES
            if (subject, kind) in listed
        ]
    return CONTENTS.join([head, f"\n{''.join(lines)}\n", rest])


def security() -> str:
    """Return the page of security, which ends with what each role reads."""
    return completed("docs/security.md", roles_table())


DOCUMENTS: dict[str, Callable[[], str]] = {
    "docs/metrics.md": metrics,
    "docs/configuration.md": configuration,
    "docs/develop/correctness.md": correctness,
    "docs/security.md": security,
    "docs/runbooks.md": runbooks,
    "deploy/debian/api-exporter.1": manual,
}

if __name__ == "__main__":
    for path, made in DOCUMENTS.items():
        (ROOT / path).write_text(made(), encoding="utf-8")
