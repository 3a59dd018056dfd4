"""The documents that are made from the code: `python -m tests.documents` writes them.

They are committed in `docs/`; a test fails if one of them is stale.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from prometheus_client import CollectorRegistry

from api_exporter.attention.thresholds import default_thresholds
from api_exporter.collectors.collector import Collector
from api_exporter.exposition.pages import Pages
from api_exporter.exposition.text import Metric
from api_exporter.netbird.resource_state import ResourceState
from api_exporter.netbird.unknown import Unknown
from api_exporter.ports import Attempt
from api_exporter.settings.definitions import ACCOUNT_SETTINGS, LIVE_SETTINGS, SECTIONS
from api_exporter.settings.example import example_file
from api_exporter.settings.setting import Setting
from api_exporter.subjects.table import COLLECTORS, FINDERS, RESOURCE_BY_NAME
from api_exporter.telemetry.access_log import AccessLogTelemetry
from api_exporter.telemetry.account import AccountTelemetry
from api_exporter.telemetry.events import EventsTelemetry
from api_exporter.telemetry.gauges import (
    register_client_gauges,
    register_network_gauges,
)
from api_exporter.telemetry.process import (
    register_account_gauges,
    register_reload_gauge,
    register_unauthorized_counter,
)
from tests.bodies import inventory
from tests.correctness import correctness
from tests.manual import manual
from tests.markdown import table
from tests.parts import process_telemetry
from tests.roles import HEADING, roles_table

ROOT = Path(__file__).parent.parent

METRICS = """\
# Metrics

Made from the code by `make docs`: change it there.

* **Freshness.** `api_exporter_resource_last_success_timestamp_seconds` is the time of
  the data. After `METRICS_MAX_AGE` without a successful refresh the series of a
  resource disappear. `api_exporter_resource_up` is 0 from the first failure on: alert
  on it.
* **No series** means "never", "not known" or "does not apply". A key that does not
  expire has no time of expiry. A family of two resources is absent while one of them
  is unknown. The series of a deleted object disappear with the next refresh.
* **Types.** All families under `netbird_api_` are gauges. Times are seconds since 1970,
  states are 1 and 0. Names of times and sizes end in `_seconds` or `_bytes`; in
  OpenMetrics they have a `# UNIT` line.
* **Lists of different ages.** A family of several resources is made of the newest list
  of each. After a change it may mix two moments, until the slower list is read again: 5
  to 15 minutes. A finding is reported once it was found again in newer lists: use
  `api_exporter_finding_since_timestamp_seconds` in rules of your own.
* **Joins.** Names may repeat, ids do not. Each series of an object has the object's id
  and name. Other properties are on its `_info` series, for a join. The Ubuntu machines
  that are offline, with address and client version:

  ```promql
  (netbird_api_peer_connected == 0)
    * on (peer_id) group_left (ip, version) netbird_api_peer_info{os=~"Ubuntu.*"}
  ```
* **Number of series.** `PEER_DETAIL` and `METRICS_DENY` reduce it
  ([how much detail](performance.md#how-much-detail)). `api_exporter_series` is the
  number of series now.
* **Long names.** A label value has at most 4,096 bytes. The exporter shortens a longer
  one, which then ends in `…` (`api_exporter_cut_labels`). It leaves out a record with
  a longer id.
* **Personal data.** Labels in _italics_ exist only with `EXPOSE_PERSONAL_DATA=true`, or
  where that setting lists them.

The column "API field" has paths below `/api/`.
"""

FINDINGS = """\
## Findings

`api_exporter_finding_since_timestamp_seconds` has one sample for each finding. Its
value is NetBird's own time where NetBird has one. Otherwise it is the time when the
exporter first found it. That is the start of the exporter for what is found as soon
as the lists are known, at the start or after one of them was unknown. So a finding
that is newer than the start is new.

`object` is the bare name of the object, `object_id` its id. `object_id` is empty for
what concerns the whole account. A peer that `PEER_DETAIL` leaves out has no name, and
neither has a user or an invite. The id of a route is its identifier and destination,
that of a resource begins with its network, and that of a budget has all properties of
the limit. No label has a number that changes.

At most 50 findings of each name and 500 of an account have a sample: the most severe,
then by name and id. `api_exporter_findings_omitted` counts the others by name;
`api_exporter_attention` counts all. `METRICS_DENY` does not apply to these families.
A scrape with `exclude[]=exporter` has none of them, and no alert follows from it.
"""

EXPORTER = """\
## The exporter itself

The exporter also has `process_*`, `python_gc_*` and `python_info`.
"""

CONFIGURATION = """\
# Configuration

Made from the code by `make docs`: change it there.

All settings are environment variables. An empty variable counts as not set. At the
start the exporter reports all mistakes at once, and stops.

With `ACCOUNTS_DIR`, the file of an account may have each setting **of** an account. The
setting then applies to this account only ([several accounts](accounts.md)).

SIGHUP, or `systemctl reload api-exporter`, reads the files of `--config` and of
accounts again. It applies a **change** with "reload"; the log names one that needs a
restart ([signals](operations.md#stop-restart-signals)).

A file of `--config` may also have `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`,
`SSL_CERT_*`, `PYTHON*` and `MALLOC_*`. Another name is a warning. A setting that
stands twice in the file is a warning, too: the last one counts.

Inherited variables of other programs must not change the exporter's libraries. It
removes such variables from its environment, `PROMETHEUS_*` for one.
"""


def code(*words: str) -> str:
    """Format words as code; none is a dash."""
    return ", ".join(f"`{word}`" for word in words) or "–"


def metrics() -> str:
    """Return a table of all families: the collectors', then the exporter's own."""
    collectors = map(_collector, COLLECTORS)
    findings = f"{FINDINGS}\n{_findings()}"
    return "\n".join([METRICS, *collectors, findings, EXPORTER + "\n" + _own()])


def _findings() -> str:
    """Return a table of all kinds of findings."""
    severities = default_thresholds().severities
    rows = (
        (
            code(kind.name),
            severities.get(kind.name, "warning"),
            code(kind.object_type),
            code(*finder.reads),
        )
        for finder in FINDERS
        for kind in finder.kinds
    )
    return table(("finding", "severity", "object_type", "reads"), rows)


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
    intro = f"## {collector.name}\n\n{words}{default} Reads {read}.\n\n"
    return intro + table(heads, rows)


_KEYS_BESIDE = ("router_id", "peer_id")
"""Ids that, beside another object's, make a series each."""


_YES_OR_NO = re.compile(
    r"is_\w+|\w+_(enabled|expired|required)|primary|valid|revoked|ephemeral|masquerade"
)
"""Labels of another exporter's that are `true` or `false`."""


def _series(metric: Metric, labels: list[str]) -> str:
    """Return how many series a family has, according to its labels."""
    if not metric.name.startswith("netbird_api_"):  # a family of another exporter
        ids = [label for label in labels if label.endswith("_id")]
        labels = [*ids[:1], *(x for x in labels if x == "resource_type")] or labels
        if labels and _YES_OR_NO.fullmatch(labels[0]):
            return "2"
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
        for family in collector.measure(inventory(personal=personal))
    }


PEERS_READ = ResourceState(
    period=30,
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
    access_log = AccessLogTelemetry(telemetry.registry, writes=True)
    access_log.set_services({"a": "web"})
    access_log.count_rows([b'{"service_id":"a","status_code":401}'], 0)
    register_network_gauges(
        telemetry.registry,
        Pages(["peers"]),
        findings=lambda: {"critical": 0},
        series=lambda: {("NetBirdPolicyEmpty", "info", "policy", "p", "all"): 1.0},
        omitted=lambda: {"NetBirdPolicyEmpty": 1},
        thresholds=lambda: {"days.management_update": 14},
    )
    process = process_telemetry()
    register_unauthorized_counter(process.registry)
    register_reload_gauge(process.registry, lambda: True)
    register_account_gauges(process.registry, lambda: {"acme": telemetry})
    telemetry.count_attempt(
        Attempt(path="", number=1, started=1, status=200, received=1, seconds=1)
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
    """Return tables of all settings, then of names that two of them use."""
    heads = ("name", "default", "of", "change", "allowed", "meaning")
    return "\n".join(
        [
            CONFIGURATION,
            *(
                f"## {title}\n\n{table(heads, map(_setting, settings))}"
                for title, settings in SECTIONS.items()
            ),
            "## Names\n",
            f"`COLLECTORS`: {code('default', *(c.name for c in COLLECTORS))}.\n",
            "`REFRESH_INTERVALS`, with the defaults in seconds ([metrics](metrics.md)"
            " has the paths). `access_log` takes `off` only.\n",
            table(("default", "resources"), _intervals()),
        ]
    )


def _intervals() -> Iterator[tuple[str, str]]:
    names: dict[float, list[str]] = {}
    for resource in RESOURCE_BY_NAME.values():
        names.setdefault(resource.period, []).append(resource.name)
    for period in sorted(names):
        yield f"{period:.0f}", code(*names[period])


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


def compatibility() -> str:
    """Return the document with a new last section."""
    text = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    return text.partition(HEADING)[0] + roles_table()


DOCUMENTS: dict[str, Callable[[], str]] = {
    "docs/metrics.md": metrics,
    "docs/configuration.md": configuration,
    "docs/develop/correctness.md": correctness,
    "docs/compatibility.md": compatibility,
    "deploy/debian/api-exporter.1": manual,
    "deploy/api-exporter.env.example": example_file,
}

if __name__ == "__main__":
    for path, made in DOCUMENTS.items():
        (ROOT / path).write_text(made(), encoding="utf-8")
